"""export/signatures.py: each signature as a server asks it, against other ways to its answer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from export import SIGNATURES, SessionModel, make_endpoints
from export.meta_graph import all_nodes, read_meta_graph, signatures
from tests.export.asking import as_strings, assert_alike
from tests.tiny_translator import ENGLISH, FRENCH, TEXTS, tokenizers
from tf_transformer.errors import InputError
from tf_transformer.translator import Translator

K, S, T = 4, 64, 72  # beams, tokens of a source, tokens of an output at most
NOTHING = np.finfo("float32").min
LONG = b"le chat dort sur la chaise et " * 3500  # 105,000 bytes
TEXT, SCORE = ("string", [-1]), ("float32", [-1])
LENGTH, TRUNCATED = ("int32", [-1]), ("bool", [-1])
IDS = {"ids": ("int32", [-1, -1]), "length": LENGTH}
EXPECTED = {
    "translate": ({"text": TEXT}, {"text": TEXT, "score": SCORE, "truncated": TRUNCATED}),
    "translate_n_best": (
        {"text": TEXT},
        {
            "texts": ("string", [-1, K]),
            "scores": ("float32", [-1, K]),
            "log_probs": ("float32", [-1, K]),
            "lengths": ("int32", [-1, K]),
            "finished": ("bool", [-1, K]),
            "truncated": TRUNCATED,
        },
    ),
    "translate_with_alignments": (
        {"text": TEXT},
        {
            "text": TEXT,
            "score": SCORE,
            "log_prob": SCORE,
            "length": LENGTH,
            "finished": TRUNCATED,
            "truncated": TRUNCATED,
            "alignment": TEXT,
            "source_pieces": ("string", [-1, S]),
            "pieces": ("string", [-1, T]),
            "token_log_probs": ("float32", [-1, T]),
            "piece_alignment": ("int32", [-1, T]),
            "word_alignment": ("int32", [-1, T]),
        },
    ),
    "translate_with_options": (
        {
            "text": TEXT,
            "num_beams": LENGTH,
            "alpha": SCORE,
            "max_length": LENGTH,
            "prefix": TEXT,
        },
        {
            "text": TEXT,
            "score": SCORE,
            "finished": TRUNCATED,
            "truncated": TRUNCATED,
            "num_beams": LENGTH,
            "alpha": SCORE,
            "max_length": LENGTH,
        },
    ),
    "score": (
        {"source": TEXT, "target": TEXT},
        {
            "log_prob": SCORE,
            "score": SCORE,
            "token_log_probs": ("float32", [-1, T]),
            "pieces": ("string", [-1, T]),
            "length": LENGTH,
            "finished": TRUNCATED,
            "truncated": TRUNCATED,
        },
    ),
    "generate_ids": (
        IDS,
        {"ids": ("int32", [-1, T]), "length": LENGTH, "score": SCORE, "truncated": TRUNCATED},
    ),
    "tokenize": (
        {"text": TEXT},
        {"ids": ("int32", [-1, S]), "length": LENGTH, "truncated": TRUNCATED},
    ),
    "detokenize": (IDS, {"text": TEXT}),
    "source_length": ({"text": TEXT}, {"length": LENGTH}),
}


def described(tensors: Any) -> dict[str, tuple[str, list[int]]]:
    return {
        key: (tf.dtypes.as_dtype(x.dtype).name, [d.size for d in x.tensor_shape.dim])
        for key, x in tensors.items()
    }


def test_the_signatures_are_what_clients_expect(exported: Path) -> None:
    found = signatures(read_meta_graph(exported))
    shapes = {name: (described(x.inputs), described(x.outputs)) for name, x in found.items()}
    assert shapes == {**EXPECTED, "serving_default": EXPECTED["translate"]}
    assert {x.method_name for x in found.values()} == {"tensorflow/serving/predict"}


@pytest.mark.case("67")
def test_no_name_and_no_operation_of_base64(exported: Path) -> None:
    """A server decodes {"b64": ...} itself, and encodes what is called ..._bytes."""
    graph = read_meta_graph(exported)
    for signature in signatures(graph).values():
        names = [*signature.inputs, *signature.outputs]
        assert not [name for name in names if name.endswith("_bytes")]
    assert not [node.op for node in all_nodes(graph) if "Base64" in node.op]


def ids_of(*rows: list[int], fill: list[int] | None = None) -> dict[str, np.ndarray]:
    """Rows made equally long with 0, or each with its own `fill`; beyond `length` either way."""
    width = max(map(len, rows))
    fills = fill or [0] * len(rows)
    ids = [[*row, *[each] * (width - len(row))] for row, each in zip(rows, fills, strict=True)]
    return {"ids": np.array(ids, "int32"), "length": np.array([len(row) for row in rows], "int32")}


def one_by_one(
    session: SessionModel, name: str, inputs: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The answer to each row sent alone, joined: what widths that depend on a batch would break."""
    count = len(next(iter(inputs.values())))
    answers = [
        session(name, {key: x[place : place + 1] for key, x in inputs.items()})
        for place in range(count)
    ]
    return {key: np.concatenate([answer[key] for answer in answers]) for key in answers[0]}


def test_translate_answers_like_the_translator(
    session: SessionModel, translator: Translator
) -> None:
    expected = {key: x.numpy() for key, x in translator.translate(tf.constant(TEXTS)).items()}
    for name in ("translate", "serving_default"):
        assert_alike(session(name, {"text": as_strings(TEXTS)}), expected)


def of_tokens(count: int) -> str:
    """A text of so many tokens: a word that is one, and is not joined with its neighbours."""
    encode = tokenizers()[0].encode
    word = next(word for word in " ".join(FRENCH).split() if len(encode([word])[0]) == 1)
    text = " ".join([word] * count)
    assert len(encode([text])[0]) == count
    return text


def test_a_cut_text_says_so(session: SessionModel) -> None:
    """63 tokens and END are read; one more, and it is flagged."""
    texts = as_strings(["", *(of_tokens(count) for count in (1, 63, 64, 900))])
    cut = [False, False, False, True, True]
    for name in ("translate", "translate_n_best", "translate_with_alignments", "tokenize"):
        assert session(name, {"text": texts})["truncated"].tolist() == cut, name
    assert session("translate_with_options", wish(texts))["truncated"].tolist() == cut
    short = as_strings(["", *["a cat"] * 4])
    assert session("score", {"source": texts, "target": short})["truncated"].tolist() == cut
    assert session("source_length", {"text": texts})["length"].tolist() == [1, 2, 64, 65, 901]
    assert session("tokenize", {"text": texts})["length"].tolist() == [1, 2, 64, 64, 64]
    ids = ids_of([], [9], [9] * 63, [9] * 64, [*[9] * 900, 3])
    assert session("generate_ids", ids)["truncated"].tolist() == cut


def test_the_n_best_are_in_order_and_the_best_is_the_translation(session: SessionModel) -> None:
    found = session("translate_n_best", {"text": as_strings(TEXTS)})
    best = session("translate", {"text": as_strings(TEXTS)})
    np.testing.assert_array_equal(found["texts"][:, 0], best["text"])
    np.testing.assert_allclose(found["scores"][:, 0], best["score"], atol=1e-5)
    tokens = tokenizers()[0].encode([text.decode("utf-8", "replace") for text in TEXTS])
    is_blank = np.array([not ids for ids in tokens])
    assert 3 <= is_blank.sum() < 6
    some = {key: x[~is_blank] for key, x in found.items()}
    # Finished ones first, each part best first; the score is log P / ((5 + n) / 6)^0.6.
    order = np.where(some["finished"], 0.0, -1e6) + some["scores"]
    assert (np.diff(order, axis=1) <= 0).all()
    assert (some["lengths"] > 0).all()
    penalties = ((5 + some["lengths"]) / 6) ** 0.6
    np.testing.assert_allclose(some["scores"], some["log_probs"] / penalties, rtol=1e-5)
    assert len({text for row in some["texts"] for text in row}) > 3 * len(some["texts"])
    for row in found["texts"][is_blank], found["lengths"][is_blank]:
        assert not row.any()
    for scores in (found["scores"], found["log_probs"]):
        assert scores[is_blank].tolist() == [[0.0, *[NOTHING] * 3]] * is_blank.sum()
    assert found["finished"][is_blank].tolist() == [[True, *[False] * 3]] * is_blank.sum()


def test_alignments_are_of_the_translation(session: SessionModel, translator: Translator) -> None:
    """Pieces that spell both texts, and the links that the translator itself finds."""
    texts = as_strings([*FRENCH, ""])
    found = session("translate_with_alignments", {"text": texts})
    expected = translator.translate_with_alignments(tf.constant(texts))
    best = session("translate_n_best", {"text": texts})
    for one, all_ in (("text", "texts"), ("score", "scores"), ("log_prob", "log_probs")):
        np.testing.assert_array_equal(found[one], best[all_][:, 0])
    np.testing.assert_array_equal(found["length"], best["lengths"][:, 0])
    total = found["token_log_probs"].sum(axis=1)
    np.testing.assert_allclose(total, found["log_prob"], rtol=1e-4)
    for row, text in enumerate([*FRENCH, ""]):
        pieces = [*tokenizers()[0].pieces(text), "</s>"]
        assert found["source_pieces"][row, : len(pieces)].tolist() == [x.encode() for x in pieces]
        assert not any(found["source_pieces"][row, len(pieces) :])
        target = [x.decode() for x in found["pieces"][row] if x not in (b"", b"</s>")]
        spelt = "".join(target).replace("\u2581", " ").strip()
        assert spelt == found["text"][row].decode()
        links = found["piece_alignment"][row]
        assert ((links >= 0) == (np.arange(T) < len(target))).all()
        assert (links < len(pieces) - 1).all(), "no word comes from the end sign"
        words = expected["word_alignment"].numpy()[row, 0]
        np.testing.assert_array_equal(found["word_alignment"][row, : len(words)], words)
        line = " ".join(f"{source}-{place}" for place, source in enumerate(words) if source >= 0)
        assert found["alignment"][row].decode() == line
        of_words = [int(link.split("-")[1]) for link in line.split()]
        assert of_words == list(range(len(found["text"][row].split())))


def wish(text: np.ndarray, **options: Any) -> dict[str, np.ndarray]:
    """A request to translate_with_options: what is not given is the export's own, 0 or ""."""
    count = len(text)
    return {
        "text": text,
        "num_beams": np.full([count], options.get("num_beams", 0), "int32"),
        "alpha": np.full([count], options.get("alpha", np.nan), "float32"),
        "max_length": np.full([count], options.get("max_length", 0), "int32"),
        "prefix": as_strings([options.get("prefix", "")] * count),
    }


WISHES: list[dict[str, Any]] = [
    {},
    {"num_beams": 1},
    {"num_beams": 3, "alpha": -2.0},
    {"num_beams": 9, "alpha": 99.0},
    {"max_length": 5},
    {"max_length": 10**6, "prefix": "we eat"},
    {"num_beams": 2, "alpha": 1.5, "max_length": 12, "prefix": "the"},
    {"num_beams": -4, "max_length": -4},
]


def test_each_row_gets_its_own_options(session: SessionModel, translator: Translator) -> None:
    """In one batch, each as a translator of these options alone would answer."""
    text = as_strings([FRENCH[0]])
    requests = [wish(text, **options) for options in WISHES]
    together = {key: np.concatenate([x[key] for x in requests]) for key in requests[0]}
    found = session("translate_with_options", together)
    assert_alike(found, one_by_one(session, "translate_with_options", together))
    assert found["num_beams"].tolist() == [4, 1, 3, 4, 4, 4, 2, 4]
    np.testing.assert_allclose(found["alpha"], [0.6, 0.6, -2, 10, 0.6, 0.6, 1.5, 0.6])
    own = len(tokenizers()[0].encode(FRENCH[:1])[0]) + 1 + 8
    assert found["max_length"].tolist() == [own] * 4 + [5, T, 12, own]
    for row in (0, 1, 2):
        alone = translator.with_options(**WISHES[row])
        expected = alone.translate(tf.constant(text))
        assert found["text"][row] == expected["text"].numpy()[0], WISHES[row]
        np.testing.assert_allclose(found["score"][row], expected["score"][0], rtol=1e-6)
    assert len({*found["text"][:3]}) == 3, "options that change nothing prove nothing"
    for row, begun in ((5, b"we eat"), (6, b"the")):
        assert found["text"][row].startswith(begun)
        assert found["text"][row] != found["text"][0]


def test_the_limit_of_a_row_is_of_its_tokens(session: SessionModel) -> None:
    text = as_strings([FRENCH[0]] * 3)
    request = {**wish(text), "max_length": np.array([1, 5, 12], "int32")}
    found = session("translate_with_options", request)
    assert not found["finished"].any(), "of an untrained model that never ends so early"
    ids = tokenizers()[1].encode([x.decode() for x in found["text"]])
    assert [len(row) for row in ids] == sorted(len(row) for row in ids)
    assert len(ids[0]) <= 2 and found["max_length"].tolist() == [1, 5, 12]


def test_scores_are_those_of_the_search(session: SessionModel) -> None:
    """What was found, scored again, is as likely as the search said."""
    texts = as_strings(FRENCH)
    best = session("translate_n_best", {"text": texts})
    asked = {"source": np.repeat(texts, 2), "target": best["texts"][:, :2].ravel()}
    found = session("score", asked)
    pieces = [len(row) + 1 for row in tokenizers()[1].encode([x.decode() for x in asked["target"]])]
    np.testing.assert_array_equal(found["length"], pieces)
    is_read = np.arange(T) < found["length"][:, None]
    assert (found["token_log_probs"][is_read] < 0).all()
    assert not found["token_log_probs"][~is_read].any()
    total = found["token_log_probs"].sum(axis=1)
    np.testing.assert_allclose(found["log_prob"], total, rtol=1e-5)
    np.testing.assert_allclose(
        found["score"], total / ((5 + found["length"]) / 6) ** 0.6, rtol=1e-5
    )
    # Where the text is cut into the pieces that the search had chosen, and it had ended.
    same = best["finished"][:, :2].ravel() & (found["length"] == best["lengths"][:, :2].ravel())
    np.testing.assert_allclose(
        found["log_prob"][same], best["log_probs"][:, :2].ravel()[same], rtol=1e-4
    )


def test_ids_are_those_of_the_sentencepiece_package(session: SessionModel) -> None:
    texts = [*FRENCH, "", "漢字"]
    found = session("tokenize", {"text": as_strings(texts)})
    for row, length, text in zip(found["ids"], found["length"], texts, strict=True):
        expected = [*tokenizers()[0]._python.encode(text), 3]
        assert row[:length].tolist() == expected
        assert not row[length:].any()


def test_text_again_from_ids(session: SessionModel) -> None:
    rows = tokenizers()[1]._python.encode(ENGLISH)
    assert session("detokenize", ids_of(*rows))["text"].tolist() == [x.encode() for x in ENGLISH]
    # END, and what `length` leaves out, end a text; ids that are no text are nothing.
    nasty = [[*rows[0], 3, *rows[1]], [0, 2, *rows[0], -1, 10**6], [3], [*rows[0], *rows[1]]]
    inputs = ids_of(*nasty)
    inputs["length"] = np.array([10**6, 10**6, -5, len(rows[0])], "int32")
    assert session("detokenize", inputs)["text"].tolist() == [
        ENGLISH[0].encode(),
        ENGLISH[0].encode(),
        b"",
        ENGLISH[0].encode(),
    ]


def test_tokenize_generate_detokenize_is_translate(session: SessionModel) -> None:
    text = {"text": as_strings(TEXTS)}
    expected, ids = session("translate", text), session("tokenize", text)
    truncated = ids.pop("truncated")
    found = session("generate_ids", ids)
    np.testing.assert_array_equal(found["truncated"], False)
    np.testing.assert_array_equal(truncated, expected["truncated"])
    np.testing.assert_allclose(found["score"], expected["score"], atol=1e-4)
    ids = {key: found[key] for key in ("ids", "length")}
    assert session("detokenize", ids)["text"].tolist() == expected["text"].tolist()
    is_read = np.arange(T) < found["length"][:, None]
    assert ((found["ids"] != 0) == is_read).all()


@pytest.mark.case("65")
def test_a_row_that_the_server_filled_up_answers_as_alone(session: SessionModel) -> None:
    """TF Serving fills up with the first id of the shorter request, not with PAD."""
    long, short = (tokenizers()[0].encode([text])[0] for text in (of_tokens(18), "un chat"))
    assert len(long) == 18 and 2 <= len(short) <= 9
    alone = session("generate_ids", ids_of(short))
    filled = session("generate_ids", ids_of(long, short, fill=[0, short[0]]))
    assert_alike({key: x[1:] for key, x in filled.items()}, alone)
    # The same sentences as strings are never filled up.
    texts = as_strings([of_tokens(18), "un chat"])
    score = session("translate", {"text": texts})["score"]
    np.testing.assert_allclose(filled["score"], score, atol=1e-4)
    back = ids_of([*tokenizers()[1].encode(["a cat"])[0]], tokenizers()[1].encode(["a"])[0])
    first = back["ids"][1, 0]
    back["ids"][1, back["length"][1] :] = first
    assert session("detokenize", back)["text"].tolist() == [b"a cat", b"a"]


def test_any_ids_are_answered(session: SessionModel) -> None:
    """END or none, ids of no text, a length that is wrong: as the ids that are left."""
    ids = tokenizers()[0].encode([FRENCH[0]])[0]
    (expected,) = session("generate_ids", ids_of(ids))["ids"]
    with_unknown = session("generate_ids", ids_of([*ids[:2], 1, *ids[2:]]))["ids"][0]
    rows = [[*ids, 3], [*ids, 3, 7, 7], [*ids[:2], 10**6, *ids[2:]], [*ids[:2], -1, *ids[2:]]]
    rows += [[*ids[:2], 0, *ids[2:]], [*ids[:2], 2, *ids[2:]], [3, *ids]]
    found = session("generate_ids", ids_of(*rows))
    np.testing.assert_array_equal(found["ids"][:2], [expected] * 2)
    np.testing.assert_array_equal(found["ids"][2:6], [with_unknown] * 4)
    assert found["length"][6] == 0 and not found["ids"][6].any()
    odd = ids_of(ids, ids, ids)
    odd["length"] = np.array([-3, 10**6, len(ids)], "int32")
    assert session("generate_ids", odd)["length"].tolist()[0] == 0
    np.testing.assert_array_equal(session("generate_ids", odd)["ids"][1:], [expected] * 2)
    empty = {"ids": np.zeros([2, 0], "int32"), "length": np.zeros([2], "int32")}
    assert session("generate_ids", empty)["length"].tolist() == [0, 0]
    assert session("detokenize", empty)["text"].tolist() == [b"", b""]


@pytest.mark.case("27")
@pytest.mark.parametrize("name", list(SIGNATURES))
def test_a_row_is_answered_as_if_it_were_alone(
    name: str, session: SessionModel, translator: Translator
) -> None:
    """Bytes that are no text, blanks, 100,000 letters, in one batch with clean sentences."""
    request = make_endpoints(translator)[name].request([*FRENCH[:3], *[""] * 5])
    for values in request.values():
        if values.dtype == object:  # in text, prefix, source and target alike
            values[3:] = [b"", b"\xff\xfe\xc3", LONG, b"a\0b", b"  \t"]
    together = session(name, request)
    alone = one_by_one(session, name, request)
    for values in together.values():
        if values.dtype == object:
            [text.decode() for text in values.ravel()]  # valid UTF-8, or this raises
    assert_alike(together, alone)


@pytest.mark.parametrize("name", list(SIGNATURES))
def test_no_rows_are_answered_with_none(
    name: str, session: SessionModel, translator: Translator
) -> None:
    found = session(name, make_endpoints(translator)[name].request([]))
    assert {key: list(x.shape) for key, x in found.items()} == {
        key: [0, *shape[1:]] for key, (_, shape) in EXPECTED[name][1].items()
    }


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["translate", "translate_best"], "`signatures` must be names of .*'translate_best'"),
        (["tokenize"], "`signatures` must have translate, .*Received: tokenize"),
    ],
)
def test_wrong_signatures_are_named(names: list[str], message: str, translator: Translator) -> None:
    with pytest.raises(InputError, match=message):
        make_endpoints(translator, names)


def test_chosen_signatures_only(translator: Translator) -> None:
    assert list(make_endpoints(translator, ["tokenize", "translate"])) == ["translate", "tokenize"]
