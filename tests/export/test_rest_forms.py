"""What TensorFlow Serving makes of JSON (its api_rest.md), and that every form gets one answer."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from export import SessionModel
from tests.export.asking import as_strings, assert_alike

ROOT = Path(__file__).resolve().parents[2]


def value(item: Any) -> Any:
    """A JSON value: lists of numbers or strings, and {"b64": ...}, which the server decodes."""
    if isinstance(item, list):
        return [value(each) for each in item]
    if isinstance(item, dict):
        assert set(item) == {"b64"}
        return base64.b64decode(item["b64"], validate=True)
    return item.encode() if isinstance(item, str) else item


def asked(body: str, session: SessionModel) -> tuple[str, dict[str, np.ndarray]]:
    """The signature and tensors of a request's body, in rows or columns."""
    content = json.loads(body)
    name = content.get("signature_name", "serving_default")
    inputs = session.signatures[name].inputs
    if "inputs" in content:
        columns = content["inputs"]
    else:
        rows = [
            row if isinstance(row, dict) and "b64" not in row else {"text": row}
            for row in content["instances"]
        ]
        columns = {key: [row[key] for row in rows] for key in rows[0]}
    if not isinstance(columns, dict):  # of one input the name may be left out
        columns = {"text": columns}
    kinds = {key: tf.dtypes.as_dtype(inputs[key].dtype).as_numpy_dtype for key in columns}
    return name, {key: np.array(value(x), kinds[key]) for key, x in columns.items()}


TEXTS = ["un café à l’été", "漢字 😀", "le chat dort ."]


@pytest.mark.case("67")
def test_every_form_of_a_text_gets_one_answer(session: SessionModel) -> None:
    coded = [{"b64": base64.b64encode(text.encode()).decode()} for text in TEXTS]
    bodies = [
        json.dumps({"inputs": {"text": TEXTS}}, ensure_ascii=False),
        json.dumps({"inputs": {"text": TEXTS}}, ensure_ascii=True),  # \\u escapes
        json.dumps({"inputs": TEXTS}),
        json.dumps({"inputs": {"text": coded}}),
        json.dumps({"instances": TEXTS}),
        json.dumps({"instances": coded}),
        json.dumps({"instances": [{"text": text} for text in TEXTS]}),
        json.dumps({"instances": [{"text": text} for text in coded]}),
        json.dumps({"signature_name": "translate", "inputs": {"text": [TEXTS[0], *coded[1:]]}}),
    ]
    assert "\\u" in bodies[1] and "\\u" not in bodies[0]
    expected = session("serving_default", {"text": as_strings(TEXTS)})
    assert len(set(expected["text"])) == 3
    for body in bodies:
        assert_alike(session(*asked(body, session)), expected)


def test_answers_are_json(session: SessionModel) -> None:
    """As a server writes them: text as it is, and no number that JSON lacks."""
    answer = session("translate_n_best", {"text": as_strings([*TEXTS, "", b"\xff"])})
    plain = {
        key: [[x.decode() for x in row] for row in values]
        if values.dtype == object
        else values.tolist()
        for key, values in answer.items()
    }
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def bodies_of(page: Path) -> list[str]:
    """Every -d '{...}' of a curl line; grpcurl's is in test_kit.py."""
    text = page.read_text(encoding="utf-8")
    lines = re.findall(r"^curl .*?(?=\n(?:curl|grpcurl|```|\S))", text, re.MULTILINE | re.DOTALL)
    return [body for line in lines for body in re.findall(r"-d '(\{.*?\})'", line, re.DOTALL)]


@pytest.mark.parametrize("page", ["README.md", "docs/serving.md", "serving/README.md"])
def test_the_requests_of_the_pages_are_answered(
    page: str, session: SessionModel, exported: Path
) -> None:
    bodies = bodies_of((exported.parent if page.startswith("serving") else ROOT) / page)
    assert len(bodies) == {"README.md": 1, "docs/serving.md": 4, "serving/README.md": 3}[page]
    for body in bodies:
        name, inputs = asked(body, session)
        assert set(inputs) == set(session.signatures[name].inputs)
        (rows,) = {len(x) for x in inputs.values()}
        assert {len(x) for x in session(name, inputs).values()} == {rows}


def test_the_table_of_signatures_is_the_exports(session: SessionModel) -> None:
    """docs/serving.md, with this export's sizes for its letters."""
    letters = {"B": "-1", "any": "-1", "K": "4", "S": "64", "T": "72"}
    rows = re.findall(
        r"^\| `(\w+)`[^|]*\| ([^|]+) \| ([^|]+) \|$",
        (ROOT / "docs/serving.md").read_text(),
        re.MULTILINE,
    )
    told = {}
    for name, *sides in rows:
        told[name] = [
            {
                key: (kind, [int(letters[size]) for size in sizes.split(", ")])
                for keys, kind, sizes in re.findall(r"((?:`\w+`(?:, )?)+) (\w+) \(([^)]+)\)", side)
                for key in re.findall(r"`(\w+)`", keys)
            }
            for side in sides
        ]
    found = {
        name: [
            {
                key: (tf.dtypes.as_dtype(x.dtype).name, [d.size for d in x.tensor_shape.dim])
                for key, x in side.items()
            }
            for side in (signature.inputs, signature.outputs)
        ]
        for name, signature in session.signatures.items()
        if name != "serving_default"
    }
    assert told == found
