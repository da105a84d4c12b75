"""One tiny translator and its export, made once for all tests here."""

from pathlib import Path

import pytest

from export import export_saved_model
from tests.tiny_translator import make_translator
from tf_transformer.translator import Translator


@pytest.fixture(scope="session")
def translator() -> Translator:
    return make_translator()


@pytest.fixture(scope="session")
def exported(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version folder, through all checks."""
    return export_saved_model(translator, tmp_path_factory.mktemp("models"))
