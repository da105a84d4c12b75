"""One tiny translator and its export, made once for all tests here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from export import SessionModel, export_saved_model
from tests.tiny_translator import export_unchecked, make_translator
from tf_transformer.translator import Translator


@pytest.fixture(scope="session")
def translator() -> Translator:
    """Reads at most 64 tokens, so that a text that is cut costs little."""
    return make_translator().with_options(max_source_length=64)


@pytest.fixture(scope="session")
def exported(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version folder, through all checks."""
    return export_saved_model(translator, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def unchecked(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Version 1 of a folder to serve from: `translate` and `source_length`, without checks."""
    return export_unchecked(translator, tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def session(exported: Path) -> Iterator[SessionModel]:
    """It, loaded as a server loads it."""
    with SessionModel(exported) as model:
        yield model
