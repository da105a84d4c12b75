"""A corpus of our own and a recipe so small that a run takes seconds, most of them tracing."""

import dataclasses
import hashlib
import io
import itertools
from pathlib import Path

from rich.console import Console

from tf_transformer.translator import Translator
from training.recipe import load_recipe
from training.train import train

SUBJECTS = [
    ("le chat", "the cat"),
    ("le chien", "the dog"),
    ("la fille", "the girl"),
    ("un homme", "a man"),
    ("ma mère", "my mother"),
]
VERBS = [("voit", "sees"), ("aime", "likes"), ("cherche", "looks for"), ("trouve", "finds")]
OBJECTS = [
    ("la maison", "the house"),
    ("le jardin", "the garden"),
    ("une lettre", "a letter"),
    ("du pain", "some bread"),
]
PAIRS = [
    tuple(" ".join([*words, "."]) for words in zip(*parts, strict=True))
    for parts in itertools.product(SUBJECTS, VERBS, OBJECTS)
]
TRAIN, VALID = PAIRS[:60], PAIRS[60:70]
BATCHES = 10  # of an epoch
RECIPE = """
[tokenizer]
vocabulary_size = 50
[model]
num_layers = 1
hidden_dim = 16
num_heads = 2
intermediate_dim = 32
[training]
epochs = 3
batch_tokens = 160
warmup_steps = 20
[decoding]
num_beams = 2
extra_length = 5
[evaluation]
samples = 0
"""
SETTINGS = (
    "evaluation.samples=2",
    "evaluation.bleu=greedy",
    "training.average_checkpoints=2",
    "training.save_every_minutes=1e-9",  # after each update
)


def write_pairs(folder: Path, split: str, pairs) -> None:
    """`split`.src and `split`.tgt."""
    folder.mkdir(parents=True, exist_ok=True)
    for side, end in enumerate(("src", "tgt")):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"{split}.{end}").write_text(lines, encoding="utf-8")


def write_corpus(folder: Path, train=TRAIN, valid=VALID) -> Path:
    """A data folder."""
    write_pairs(folder, "train", train)
    write_pairs(folder, "valid", valid)
    return folder


class Place:
    """A data folder, a recipe, and `train`, which returns what was printed."""

    printed: str
    translator: Translator

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = write_corpus(folder / "data")
        self.recipe = folder / "tiny.toml"
        self.recipe.write_text(RECIPE, encoding="utf-8")

    def train(self, run: Path, *settings: str, data: Path | None = None) -> str:
        """Trains by the recipe with `settings` over it; keeps `printed` and `translator`."""
        screen = io.StringIO()
        try:
            recipe = load_recipe(self.recipe, settings)
            console = Console(file=screen, width=200)
            self.translator = train(recipe, data or self.data, run, console)
        finally:
            self.printed = screen.getvalue()
        return self.printed


@dataclasses.dataclass(frozen=True)
class TinyRun:
    """A run without a stop, with all there is to see; dropout is 0.1."""

    place: Place
    run: Path
    printed: str
    translator: Translator


def make_run(folder: Path) -> TinyRun:
    """Trains it by SETTINGS."""
    place, run = Place(folder), folder / "unbroken"
    printed = place.train(run, *SETTINGS)
    return TinyRun(place, run, printed, place.translator)


def digest(path: Path) -> dict[str, str]:
    """The content of a file or of all files of a folder, by name; equal when nothing changed."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        if file.is_file()
        else "folder"
        for file in files
    }
