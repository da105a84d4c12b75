"""What the processes of one training tell each other besides gradients."""

import dataclasses
import json
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from tf_transformer.errors import InputError

from ..corpora.corpus import Corpus
from ..corpora.tokenizer_pair import TokenizerPair
from ..keeping.checkpoints import Checkpoints
from ..keeping.run_directory import summary
from ..keeping.run_state import RunState
from ..recipe import Recipe
from ..settings.tokenizer import TokenizerSettings
from .distribution import Distribution


@contextmanager
def run_directory_of(distribution: Distribution, run: Path) -> Iterator[Path]:
    """The run directory for the chief; for another process one of its own that does not stay.

    Raises:
        InputError: another process is gone, so that nothing can be exchanged with it.
    """
    with tempfile.TemporaryDirectory() as own:
        try:
            yield run if distribution.is_chief else Path(own)
        except tf.errors.OpError as error:
            if not distribution.has_peers:
                raise
            raise InputError(
                "Another worker is gone: start the same command on all of them again, and the run "
                f"goes on from its last save ({type(error).__name__})."
            ) from error


def check_equal(distribution: Distribution, recipe: Recipe, corpus: Corpus) -> None:
    """Refuses, with an InputError, to train on what is not the chief's recipe and corpus."""
    own = json.dumps([recipe.model_dump(), summary(corpus)], sort_keys=True).encode()
    if distribution.tell(own) != own:
        raise InputError(
            "This worker's recipe, settings or training text are not the chief's: give all workers "
            "the same command and the same data."
        )


def share_tokenizers(
    distribution: Distribution, make: Callable[[], TokenizerPair], settings: TokenizerSettings
) -> TokenizerPair:
    """The chief's tokenizers; only there they are made."""
    if not distribution.has_peers:
        return make()
    files, made = {}, make() if distribution.is_chief else None
    with tempfile.TemporaryDirectory() as folder:
        if made is not None:
            for name, tokenizer in made.files().items():
                tokenizer.save(Path(folder) / name)
                files[name] = b64encode((Path(folder) / name).read_bytes()).decode()
        for name, text in json.loads(distribution.tell(json.dumps(files).encode())).items():
            (Path(folder) / name).write_bytes(b64decode(text))
        return made or TokenizerPair.load(Path(folder), settings)


def share_state(distribution: Distribution, checkpoints: Checkpoints) -> None:
    """Gives all processes the chief's weights, optimizer, random generators and counters."""
    if distribution.has_peers:
        facts = json.dumps(dataclasses.asdict(checkpoints.state)).encode()
        checkpoints.state = RunState(**json.loads(distribution.tell(facts)))
        distribution.share(list(checkpoints.variables()))
