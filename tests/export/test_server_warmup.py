"""export/server/models.py: a version is served when every record of its warm-up was answered."""

import logging
from pathlib import Path
from unittest import mock

import pytest

from export import SessionModel
from export.answers import Request
from export.server import Models
from export.warmup import WARMUP_FILE, read_warmup, write_warmup
from tests.export.asking import text_requests
from tests.export.serving import MODEL, put_version
from tf_transformer.errors import InputError


@pytest.fixture
def folder(unchecked, tmp_path) -> Path:
    """With version 1."""
    put_version(unchecked, tmp_path / "models", 1)
    return tmp_path / "models"


def keys(requests: list[Request]) -> list[tuple]:
    return [(name, {k: x.tolist() for k, x in inputs.items()}) for name, inputs in requests]


def test_a_new_version_is_warm_before_it_is_served(unchecked, folder):
    models, asked, serving = Models(folder, MODEL), [], set()
    put_version(unchecked, folder, 2)
    ask = SessionModel.__call__

    def seen(model, signature, inputs):
        asked.append(Request(signature, inputs))
        serving.add(models.find(MODEL).number)
        return ask(model, signature, inputs)

    with mock.patch.object(SessionModel, "__call__", seen):
        assert models.refresh()
    assert models.find(MODEL).number == 2
    assert serving == {1}
    assert len(asked) >= 12 and keys(asked) == keys(read_warmup(folder / "2"))
    models.close()


@pytest.mark.case("69")
@pytest.mark.parametrize("kind", ["no records", "unknown", "fails"])
def test_a_version_whose_warm_up_fails_is_not_served(kind, unchecked, folder, caplog):
    models = Models(folder, MODEL)
    second = put_version(unchecked, folder.parent / "aside", 2)
    (fine,) = text_requests(["a"])
    if kind == "no records":
        (second / WARMUP_FILE).write_bytes(b"This is a file of text, not of records. " * 9)
        why = "corrupted record at 0"
    elif kind == "unknown":
        write_warmup(second, [fine, Request("translate_back", fine.inputs)])
        why = "record 2, for translate_back, fails: "
    else:
        write_warmup(second, [Request("serving_default", {"words": fine.inputs["text"]})])
        why = "record 1, for serving_default, fails: "
    second.rename(folder / "2")
    with caplog.at_level(logging.WARNING):
        assert not models.refresh()
        assert not models.refresh()  # and it is said once
    assert models.find(MODEL).number == 1
    assert models.predict(MODEL, None, *fine)[1]["text"].shape == (1,)
    (said,) = [x.getMessage() for x in caplog.records if x.name == "export.server.models"]
    assert said.startswith("Version 2 does not load and is left out: warm-up: ") and why in said
    assert "\n" not in said
    # As soon as it is repaired it is taken.
    write_warmup(folder / "2", [fine])
    assert models.refresh() and models.find(MODEL).number == 2
    models.close()


def test_without_another_version_nothing_is_served(unchecked, folder):
    write_warmup(folder / "1", [])
    with pytest.raises(InputError, match="No version in .* loads"):
        Models(folder, MODEL)
    (folder / "1" / WARMUP_FILE).unlink()  # none at all is no failure
    models = Models(folder, MODEL)
    assert models.find(MODEL).number == 1
    models.close()
