"""What every entry of every table owes to its table. A new entry is tested by being there."""

import re

import numpy as np
import pytest
import tensorflow as tf

from tests.decoding.brute_force import KINDS, Ids, draw
from tests.decoding.steps import check, hypotheses, in_graph, run, tasks_of
from tests.tokenizers.texts import NASTY, SENTENCES
from tests.weights import fill_with_random
from tf_transformer import END_ID, PAD_ID, START_ID, InputError
from tf_transformer.config import POSITION_NAMES
from tf_transformer.decoding import SEARCHES, Search
from tf_transformer.layers import POSITIONS, PositionEncoding, positions
from tf_transformer.tokenizers import TOKENIZERS, Tokenizer

# Tokenizers


@pytest.fixture(scope="module", params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param].train(SENTENCES * 3, 400)


def test_a_tokenizer_is_one(tokenizer):
    assert isinstance(tokenizer, Tokenizer)
    assert (PAD_ID, START_ID, END_ID) == (0, 2, 3)
    assert 4 < tokenizer.vocabulary_size <= 400


def test_text_becomes_the_same_ids_in_the_graph_and_in_python(tokenizer):
    texts = [*SENTENCES, *NASTY]
    found = tokenizer.tokenize(tf.constant(texts))
    assert found.dtype == tf.int32 and found.shape.as_list()[0] in (None, len(texts))
    ids = tokenizer.encode(texts)
    assert found.to_list() == ids
    for row in ids:
        assert not {PAD_ID, START_ID, END_ID} & set(row)
        assert all(0 <= token < tokenizer.vocabulary_size for token in row)
    assert tokenizer.encode(["", "the"])[0] == [] != tokenizer.encode(["", "the"])[1]


def test_every_id_has_its_piece(tokenizer):
    """Pieces are what people see: one an id, without blanks, and they can be typed back."""
    texts = [*SENTENCES, *NASTY, "<pad> <unk> <s> </s> [PAD] [UNK] [START] [END]"]
    for text, ids in zip(texts, tokenizer.encode(texts), strict=True):
        pieces = tokenizer.pieces(text)
        assert tokenizer.piece_ids(pieces) == ids
        assert not any(" " in piece or not piece for piece in pieces)
    assert "".join(tokenizer.pieces("the")).endswith("the")
    for name in ("<pad>", "<s>", "</s>", "[PAD]", "[START]", "[END]"):
        assert not {PAD_ID, START_ID, END_ID} & set(tokenizer.piece_ids([name]))


def test_its_vocabulary_is_in_the_order_of_ids(tokenizer):
    pieces = tokenizer.vocabulary()
    assert len(pieces) == tokenizer.vocabulary_size
    assert tokenizer.piece_ids(pieces[4:]) == list(range(4, len(pieces)))
    for text in SENTENCES:
        assert [pieces[token] for token in tokenizer.encode([text])[0]] == tokenizer.pieces(text)


def test_it_can_be_told(tokenizer):
    assert re.fullmatch(r"[A-Z]\w+( .+)?", tokenizer.description)
    assert tokenizer.litert_obstacle == "" or not tokenizer.litert_obstacle.endswith(".")


def test_its_own_sentences_come_back(tokenizer):
    ids = tokenizer.tokenize(tf.constant(SENTENCES))
    ended = tf.concat([ids, tf.fill([len(SENTENCES), 1], END_ID), ids], axis=1).to_tensor()
    found = tokenizer.detokenize(ended).numpy().tolist()
    assert [text.decode("utf-8") for text in found] == SENTENCES


def test_any_ids_give_utf8(tokenizer):
    size = tokenizer.vocabulary_size
    every = np.arange(-3, size + 3, dtype="int32")
    random = np.random.default_rng(0).integers(-3, size + 3, (200, 12), dtype="int32")
    for ids in (every[:, None], random, np.array([[2**31 - 1, -(2**31)]], "int32")):
        for text in tokenizer.detokenize(tf.constant(ids)).numpy():
            text.decode("utf-8")
    (strange,) = tokenizer.detokenize(tf.constant([[-1, size, PAD_ID, START_ID]])).numpy()
    assert strange == b""


@pytest.mark.case("27")
def test_bytes_that_are_not_utf8_harm_no_neighbour(tokenizer):
    found = tokenizer.tokenize(tf.constant([b"the cat", b"the \xe9\xff cat", b"\xc3", b"the mat"]))
    assert [found[0].numpy().tolist(), found[3].numpy().tolist()] == tokenizer.encode(
        ["the cat", "the mat"]
    )
    for text in tokenizer.detokenize(found.to_tensor()).numpy():
        text.decode("utf-8")


def test_empty_batches_and_widths(tokenizer):
    none = tokenizer.tokenize(tf.zeros([0], tf.string))
    assert none.to_list() == [] and none.dtype == tf.int32
    assert tokenizer.encode([]) == []
    for rows, width in ((0, 0), (0, 5), (2, 0)):
        found = tokenizer.detokenize(tf.zeros([rows, width], tf.int32))
        assert found.numpy().tolist() == [b""] * rows


def test_the_ops_work_inside_a_graph(tokenizer):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def there_and_back(texts):
        return tokenizer.detokenize(tokenizer.tokenize(texts).to_tensor())

    assert there_and_back(tf.constant(SENTENCES)).numpy().tolist() == [
        text.encode() for text in SENTENCES
    ]
    assert there_and_back(tf.zeros([0], tf.string)).shape == (0,)


def test_a_tokenizer_survives_its_file(tokenizer, tmp_path):
    path = tmp_path / f"tokenizer{tokenizer.suffix}"
    path.write_bytes(b"of before")
    tokenizer.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    loaded = type(tokenizer).load(path)
    assert loaded.vocabulary_size == tokenizer.vocabulary_size
    texts = [*SENTENCES, *NASTY]
    assert loaded.encode(texts) == tokenizer.encode(texts)
    assert loaded.tokenize(tf.constant(texts)).to_list() == tokenizer.encode(texts)


@pytest.mark.parametrize("content", [None, b"", b"no tokenizer", bytes(range(256)) * 9])
def test_a_file_that_holds_none_is_refused_by_name(tokenizer, content, tmp_path):
    path = tmp_path / "some.file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"some\.file") as caught:
        type(tokenizer).load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("size", [-1, 0, 3])
def test_a_vocabulary_without_room_is_refused(name, size):
    with pytest.raises(InputError, match=rf"vocabulary.*{size}"):
        TOKENIZERS[name].train(SENTENCES, size)


# Searches


def make_search(name, alpha=0.6, **ids):
    search = SEARCHES[name](alpha=alpha, **ids)
    assert isinstance(search, Search) and search.num_beams >= 1 and search.alpha == alpha
    return search


@pytest.mark.case("49")
@pytest.mark.parametrize("alpha", [0.6, 0.0, -1.2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SEARCHES)
def test_every_result_is_what_it_says(name, kind, alpha):
    ids = Ids(pad=6, start=0, end=5)
    search = make_search(name, alpha, pad_id=ids.pad, start_id=ids.start, end_id=ids.end)
    language = draw(kind, 40, 7, seed=11, ids=ids)
    limits = [1 + row % 8 for row in range(40)]
    check(search, language, tasks_of(search, limits), run(search, language, limits))


@pytest.mark.parametrize("name", SEARCHES)
def test_a_certain_sequence_is_found(name):
    """Each step has one token of almost all the mass, so no search may miss it."""
    language = draw("position", 3, 6, seed=12)
    wanted = [4, 5, 1, 4, 3]
    language.logits[:] = -20.0
    for place, token in enumerate(wanted):
        language.logits[:, place, :, token] = 0.0
    found = hypotheses(run(make_search(name), language, [5, 9, 6]))
    assert [row[0].tokens for row in found] == [(4, 5, 1, 4, 3)] * 3
    assert [row[0].finished for row in found] == [True] * 3


@pytest.mark.case("47")
@pytest.mark.parametrize("name", SEARCHES)
def test_rows_do_not_see_each_other_in_any_graph(name):
    language = draw("history", 12, 6, seed=13)
    search = make_search(name)

    graph = in_graph(search, language)
    limits = [1 + row % 6 for row in range(12)]
    together = graph(language.logits, limits)
    for row in range(12):
        alone = graph(language.logits[row : row + 1], limits[row : row + 1])
        np.testing.assert_array_equal(together.token_ids[row, :, : limits[row]], alone.token_ids[0])
    assert [part.shape[0] for part in graph(language.logits[:0], [])[:6]] == [0] * 6


# Position schemes


def test_the_names_of_the_configuration_are_those_of_the_table():
    assert tuple(POSITIONS) == POSITION_NAMES


def test_only_the_scheme_of_no_positions_is_no_layer():
    assert [name for name in POSITIONS if positions.get(name) is None] == ["none"]


@pytest.fixture(scope="module", params=[name for name in POSITIONS if name != "none"])
def scheme(request):
    """A layer with random weights."""
    layer = positions.get(request.param)
    assert isinstance(layer, PositionEncoding)
    layer.build((None, None, None, 8) if layer.in_attention else (None, None, 8))
    fill_with_random(layer, seed=1)
    return layer


def some(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def test_a_position_knows_its_place(scheme):
    """Rows from `start` on are the rows of the whole: cached steps equal teacher forcing."""
    x, heads, weights = some(2, 7, 8), some(2, 3, 7, 8), some(2, 3, 7, 7)
    whole = scheme(x), scheme.rotate(heads), scheme.score_bias(heads, heads)
    context = scheme.add_to_context(heads, weights)
    assert whole[0].shape == x.shape and whole[1].shape == context.shape == heads.shape
    for t in range(7):
        one, head = x[:, t : t + 1], heads[:, :, t : t + 1]
        for place in (t, tf.constant(t)):
            near = dict(rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(scheme(one, start=place), whole[0][:, t : t + 1], **near)
            np.testing.assert_allclose(
                scheme.rotate(head, start=place), whole[1][:, :, t : t + 1], **near
            )
            np.testing.assert_allclose(
                scheme.add_to_context(head, weights[:, :, t : t + 1], start=place),
                context[:, :, t : t + 1],
                **near,
            )
            if whole[2] is not None:
                bias = scheme.score_bias(head, heads, start=place)
                np.testing.assert_allclose(bias, whole[2][:, :, t : t + 1], **near)


def test_a_position_makes_a_difference(scheme):
    """Equal rows at different places must not stay equal, by one hook at least."""
    x, heads = np.ones((1, 4, 8), "float32"), np.ones((1, 2, 4, 8), "float32")
    weights = np.full((1, 2, 4, 4), 0.25, "float32")
    found = [
        (scheme(x), x),
        (scheme.rotate(heads), heads),
        (scheme.add_to_context(heads, weights), heads),
    ]
    moved = [np.abs(np.diff(np.asarray(y), axis=-2)).max() > 1e-3 for y, _ in found]
    assert any(moved)
    in_sums = not np.allclose(found[0][0], x)
    assert in_sums != scheme.in_attention


def test_a_position_survives_its_config(scheme):
    again = positions.get(positions.serialize(scheme))
    assert type(again) is type(scheme) and again.get_config() == scheme.get_config()
