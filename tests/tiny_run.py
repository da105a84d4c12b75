"""A corpus of our own and a recipe so small that a run takes seconds, most of them tracing."""

import hashlib
import io
import itertools
from pathlib import Path

from rich.console import Console

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
vocabulary_size = 70
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


def write_recipe(folder: Path) -> Path:
    """RECIPE as a file."""
    path = folder / "tiny.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return path


def silent() -> Console:
    """A console whose text can be read back: `console.file.getvalue()`."""
    return Console(file=io.StringIO(), width=200)


def digest(path: Path) -> dict[str, str]:
    """The content of a file or of all files of a folder, by name; equal when nothing changed."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        if file.is_file()
        else "folder"
        for file in files
    }
