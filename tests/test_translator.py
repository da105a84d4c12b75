"""Text to text: each sentence as if it were alone, scores that can be recomputed, sound files."""

import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.tiny_translator import (
    ENGLISH,
    FRENCH,
    TEXTS,
    make_translator,
    teacher_forced,
    tokenizers,
)
from tests.trained_translator import config_of, trained_config, trained_translator
from tests.weights import fill_with_random
from tf_transformer import (
    POSITIONS,
    DecodingOptions,
    InputError,
    SentencePieceTokenizer,
    Translator,
    build_transformer,
)
from tf_transformer.run_files import load_weights, save_weights

NEVER = -1e4


@pytest.fixture(scope="module")
def beam() -> Translator:
    """Beam 4, extra_length 20."""
    return trained_translator()


@pytest.fixture(scope="module")
def greedy(beam) -> Translator:
    return beam.with_options(search="greedy")


@pytest.fixture(scope="module")
def run(beam, tmp_path_factory):
    """Its run directory; tests that harm it take a copy."""
    directory = tmp_path_factory.mktemp("run")
    beam.save(directory, trained_config())
    return directory


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run, tmp_path / "copy")


def answers(translator, texts):
    """Texts and scores of one call of the graph."""
    found = translator.translate(tf.constant(texts, tf.string))
    return [text.decode("utf-8") for text in found["text"].numpy()], found["score"].numpy()


def of_length(length):
    """A text of exactly so many tokens, from what the tokenizer learnt."""
    words = " ".join(FRENCH).split()
    text = ""
    for start in range(len(words) + 1):
        for word in words[start:] + words[:start]:
            longer = f"{text} {word}".strip()
            if len(tokenizers()[0].encode([longer])[0]) <= length:
                text = longer
        if len(tokenizers()[0].encode([text])[0]) == length:
            return text
    raise AssertionError(f"no text of {length} tokens")


def assert_same(found, expected):
    """Texts equal, scores within 1e-4."""
    assert found[0] == expected[0]
    np.testing.assert_allclose(found[1], expected[1], atol=1e-4)


def rows(found, places):
    """Some of the answers."""
    return [found[0][place] for place in places], found[1][places]


# What it says


def test_it_knows_what_it_learnt(beam, greedy):
    assert beam(FRENCH) == ENGLISH
    assert greedy(FRENCH) == ENGLISH


def test_any_iterable_of_strings_is_taken(beam):
    expected = ENGLISH[:3]
    assert beam(FRENCH[:3]) == expected
    assert beam(tuple(FRENCH[:3])) == expected
    assert beam(text for text in FRENCH[:3]) == expected
    assert beam(iter([])) == [] == beam([])


@pytest.mark.parametrize("text", ["je suis étudiant .", b"je suis"])
def test_one_string_for_a_list_is_refused(beam, text):
    """It is a list of letters to Python, and would come back as nonsense."""
    with pytest.raises(ValueError, match=r"list of strings.*je suis"):
        beam(text)


def test_the_graph_takes_any_bytes_and_gives_utf8(beam):
    texts, scores = answers(beam, TEXTS)
    assert len(texts) == len(TEXTS) and np.isfinite(scores).all()
    assert texts[: len(FRENCH)] == ENGLISH
    assert not any({"\ufffd", "\0"} & set(text) for text in texts)


def test_control_tokens_that_users_type_end_nothing(beam):
    token_ids, lengths, _ = beam.encode_source(tf.constant(["</s>", "le <pad> chat </s> dort <s>"]))
    for row, length in zip(token_ids.numpy(), lengths.numpy(), strict=True):
        inside = row[: length - 1].tolist()
        assert inside and not {0, 2, 3} & set(inside)
        assert row[length - 1] == 3 and not row[length:].any()


# Alone, together, in any order


@pytest.mark.case("47")
@pytest.mark.parametrize("name", ["beam", "greedy"])
def test_a_sentence_is_translated_as_if_it_were_alone(name, request):
    translator = request.getfixturevalue(name)
    lengths = [1, 30, 3, 12, 0, 7, 30]
    texts = [of_length(length) for length in lengths]
    texts[-1] = " ".join(reversed(texts[1].split()))  # of the same words, another sentence
    alone = [answers(translator, [text]) for text in texts]
    expected = [one[0][0] for one in alone], np.concatenate([one[1] for one in alone])
    assert len(set(expected[0])) > 4, "answers that are all the same prove nothing"
    assert_same(answers(translator, texts), expected)
    backwards = list(range(len(texts)))[::-1]
    assert_same(answers(translator, texts[::-1]), rows(expected, backwards))
    for start in range(0, len(texts), 2):
        some = list(range(start, min(start + 2, len(texts))))
        assert_same(answers(translator, [texts[place] for place in some]), rows(expected, some))
    longer = answers(translator, [*texts, of_length(60)])
    assert_same(rows(longer, list(range(len(texts)))), expected)
    assert translator(texts) == expected[0]
    assert translator([*texts[::-1], of_length(60)])[:-1] == expected[0][::-1]


@pytest.mark.case("51")
@pytest.mark.parametrize("name", ["beam", "greedy"])
def test_an_empty_source_is_an_empty_text(name, request):
    translator = request.getfixturevalue(name)
    texts = [FRENCH[1], "", "   ", "\t", FRENCH[0]]
    expected = [ENGLISH[1], "", "", "", ENGLISH[0]]
    found = answers(translator, texts)
    assert found[0] == expected == translator(texts)
    assert found[1][1:4].tolist() == [0.0, 0.0, 0.0] and (found[1][[0, 4]] < 0).all()
    assert_same(rows(found, [0]), answers(translator, [FRENCH[1]]))
    for empty in ([""], ["", " "]):
        assert answers(translator, empty)[0] == [""] * len(empty)
    none = translator.translate(tf.zeros([0], tf.string))
    assert none["text"].shape == none["score"].shape == (0,)
    assert none["text"].dtype == tf.string and none["score"].dtype == tf.float32


@pytest.mark.case("53")
def test_a_source_that_is_too_long_is_cut_and_harms_nobody(beam):
    """5,000 words at a limit of 64: as its first 63 tokens and END."""
    translator = beam.with_options(max_source_length=64)
    long = " ".join(FRENCH[place % 8] for place in range(700))
    assert len(long.split()) > 4_000
    found = answers(translator, [FRENCH[0], long, FRENCH[2]])
    assert [found[0][0], found[0][2]] == [ENGLISH[0], ENGLISH[2]]
    assert_same(rows(found, [0, 2]), answers(beam, [FRENCH[0], FRENCH[2]]))
    token_ids, lengths, _ = translator.encode_source(tf.constant([FRENCH[0], long]))
    assert token_ids.shape == (2, 64) and lengths[1] == 64
    first_ids = tokenizers()[0].encode([long])[0][:63]
    assert token_ids[1].numpy().tolist() == [*first_ids, 3]
    assert found[0][1], "cut, not dropped"


@pytest.mark.case("53")
@pytest.mark.parametrize("search", ["beam", "greedy"])
def test_the_limit_of_an_output_follows_its_source(search):
    """A model that never ends: 60 tokens and END give 61 + 50; a neighbour's limit is its own."""
    model = build_transformer(config_of(output_bias=True))
    fill_with_random(model, seed=3, scale=0.5)
    bias = model.get_layer("decoder_embedding").bias
    bias.assign(np.where(np.arange(bias.shape[0]) == 3, NEVER, 0.0))
    translator = Translator(model, *tokenizers(), DecodingOptions(search=search, num_beams=2))
    token_ids, lengths, _ = translator.encode_source(tf.constant([of_length(60), of_length(2)]))
    assert lengths.numpy().tolist() == [61, 3]
    found = tf.function(translator.generate)(token_ids, lengths + 50)
    assert found.lengths[:, 0].numpy().tolist() == [61 + 50, 3 + 50]
    assert not found.finished.numpy().any()
    texts, scores = answers(translator, [of_length(60), of_length(2)])  # 50 is the default
    assert all(texts), "what has not ended gives the text so far"
    penalties = ((5 + found.lengths[:, 0].numpy()) / 6) ** 0.6
    np.testing.assert_allclose(scores, found.log_probs[:, 0].numpy() / penalties, rtol=1e-4)


# Options


def test_greedy_search_is_one_beam(beam, greedy):
    one = beam.with_options(num_beams=1)
    texts = [*FRENCH, *(of_length(length) for length in (1, 5, 17, 30))]
    found, expected = answers(one, texts), answers(greedy, texts)
    assert found[0] == expected[0]
    np.testing.assert_array_equal(found[1], expected[1])


def test_options_change_a_copy_over_the_same_weights(beam):
    before = answers(beam, FRENCH)
    other = beam.with_options(num_beams=2, alpha=-1.0, extra_length=30)
    assert other.options == DecodingOptions(num_beams=2, alpha=-1.0, extra_length=30)
    assert beam.options == DecodingOptions(extra_length=20)
    assert other.model is beam.model
    texts, scores = answers(other, FRENCH)
    assert texts == ENGLISH
    # The same hypotheses with another exponent: log P = score * ((5 + n) / 6)^alpha.
    lengths = np.array([len(ids) + 1 for ids in tokenizers()[1].encode(ENGLISH)])
    penalty = (5 + lengths) / 6
    np.testing.assert_allclose(scores * penalty**-1.0, before[1] * penalty**0.6, atol=1e-4)
    assert_same(answers(beam, FRENCH), before)


# Scores


@pytest.mark.parametrize(
    ("position", "fields"),
    [
        *((position, {}) for position in POSITIONS),
        ("relative", {"norm_first": True}),
        ("sinusoidal", {"head_dim": 6, "value_dim": 5, "activation": "swish", "gated": True}),
        ("rotary", {"tie_embeddings": "none", "output_bias": True, "pad_vocabulary_to": 8}),
        ("learned", {"max_positions": 5}),
        ("sinusoidal", {"tie_embeddings": "three_way", "pad_vocabulary_to": 64}),
    ],
)
def test_scores_are_those_of_the_whole_model(position, fields):
    """Cached steps, beams, gathers and the penalty against teacher forcing, each hypothesis."""
    source, target = tokenizers()
    if fields.get("tie_embeddings") == "three_way":
        target = source
        fields = {**fields, "target_vocabulary_size": source.vocabulary_size}
    model = build_transformer(config_of(position=position, **fields))
    fill_with_random(model, seed=4, scale=0.4)
    translator = Translator(model, source, target, DecodingOptions(num_beams=3, alpha=0.6))
    token_ids, lengths, _ = translator.encode_source(tf.constant([FRENCH[1], of_length(2), "la"]))
    found = translator.generate(token_ids, tf.constant([7, 9, 3]))
    seen = 0
    for row in range(3):
        alone = token_ids[row, : lengths[row]].numpy()
        for k in range(3):
            tokens = found.token_ids[row, k, : found.lengths[row, k]].numpy().tolist()
            assert max(tokens) < target.vocabulary_size
            total = teacher_forced(model, alone, tokens).sum()
            assert found.log_probs[row, k].numpy() == pytest.approx(total, abs=1e-4)
            penalty = ((5 + len(tokens)) / 6) ** 0.6
            assert found.scores[row, k].numpy() == pytest.approx(total / penalty, abs=1e-4)
            seen += len(set(tokens))
    assert seen > 12, "hypotheses of one repeated token prove little"


def test_the_score_of_the_graph_is_that_of_its_text(beam):
    """For a text that reads back as the ids that were emitted, from outside: text to score."""
    texts, scores = answers(beam, FRENCH)
    for source, target, score in zip(FRENCH, texts, scores, strict=True):
        tokens = [*tokenizers()[1].encode([target])[0], 3]
        source_ids = np.array([*tokenizers()[0].encode([source])[0], 3], "int32")
        total = teacher_forced(beam.model, source_ids, tokens).sum()
        assert score == pytest.approx(total / ((5 + len(tokens)) / 6) ** 0.6, abs=1e-4)


# Files


def test_a_run_directory_gives_the_same_translator(run, beam):
    loaded = Translator.load(run)
    assert loaded.options == beam.options
    texts = [*FRENCH, "", of_length(20)]
    assert_same(answers(loaded, texts), answers(beam, texts))
    assert sorted(path.name for path in run.iterdir()) == [
        "model.json",
        "model.weights.h5",
        "source.model",
        "target.model",
        "translator.json",
    ]
    changed = Translator.load(run, search="greedy", max_source_length=32)
    assert changed.options == DecodingOptions(
        search="greedy", extra_length=20, max_source_length=32
    )


def test_one_tokenizer_for_both_sides_is_saved_once(tmp_path):
    (source, _), size = tokenizers(), tokenizers()[0].vocabulary_size
    config = config_of(target_vocabulary_size=size, tie_embeddings="three_way")
    Translator(build_transformer(config), source, source).save(tmp_path / "new" / "run", config)
    assert not (tmp_path / "new" / "run" / "target.model").exists()
    loaded = Translator.load(tmp_path / "new" / "run")
    assert loaded.tokenizers.source is loaded.tokenizers.target


def test_saving_over_a_run_replaces_it(copy, beam):
    other = make_translator(seed=9)
    other.save(copy, config_of())
    assert Translator.load(copy).options == other.options
    for one, two in zip(
        Translator.load(copy).model.get_weights(), other.model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, two)
    assert not list(copy.glob("*writing*"))


def test_a_keras_file_gives_the_same_translator(beam, tmp_path):
    beam.model.save(tmp_path / "model.keras")
    model = keras.models.load_model(tmp_path / "model.keras")
    loaded = Translator(model, *tokenizers(), beam.options)
    assert_same(answers(loaded, FRENCH[:2]), answers(beam, FRENCH[:2]))


def test_a_half_precision_policy_does_not_change_a_loaded_translator(run, beam):
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        loaded = Translator.load(run)
        found = answers(loaded, FRENCH)
        assert keras.config.dtype_policy().name == "mixed_bfloat16", "the policy is the user's"
    finally:
        keras.config.set_dtype_policy(policy)
    expected = answers(beam, FRENCH)
    assert found[0] == expected[0]
    np.testing.assert_allclose(found[1], expected[1], atol=1e-5)


def damage_missing(copy, file):
    (copy / file).unlink()


def damage_cut(copy, file):
    content = (copy / file).read_bytes()
    (copy / file).write_bytes(content[: len(content) // 2])


def damage_empty(copy, file):
    (copy / file).write_bytes(b"")


@pytest.mark.parametrize("damage", [damage_missing, damage_cut, damage_empty])
@pytest.mark.parametrize(
    "file",
    ["translator.json", "model.json", "model.weights.h5", "source.model", "target.model"],
)
def test_a_damaged_run_is_refused_with_the_file_named(copy, damage, file):
    damage(copy, file)
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    with pytest.raises(InputError) as caught:
        Translator.load(copy)
    message = str(caught.value)
    assert file in message and str(copy) in message
    assert "\n" not in message and len(message) < 400
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before


@pytest.mark.parametrize("cut", [100, 2_000, 20_000, -1])
def test_weights_cut_anywhere_are_refused(copy, cut):
    content = (copy / "model.weights.h5").read_bytes()
    assert len(content) > 20_000
    (copy / "model.weights.h5").write_bytes(content[:cut])
    with pytest.raises(InputError, match="model.weights.h5"):
        Translator.load(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(tokenizers=[]), "translator.json"),
        (lambda data: data.update(tokenizers={}), "translator.json"),
        (lambda data: data.pop("decoding"), "translator.json"),
        (lambda data: data.update(decoding=[1]), "translator.json"),
        (lambda data: data["decoding"].update(beams=4), "translator.json.*beams"),
        (lambda data: data["decoding"].update(num_beams="four"), "num_beams.*four"),
        (lambda data: data["tokenizers"]["source"].pop("file"), "translator.json.*file"),
        (lambda data: data["tokenizers"]["source"].update(file=7), "translator.json"),
        (lambda data: data["tokenizers"]["source"].update(type="bytes"), "translator.json.*bytes"),
        (lambda data: data["tokenizers"]["source"].update(type=["a"]), "translator.json"),
        (lambda data: data["tokenizers"]["source"].update(file="no.model"), "no.model"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(copy, change, message):
    path = copy / "translator.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=message) as caught:
        Translator.load(copy)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["[]", "7", '"text"', "null", '{"a": 1}', "{"])
@pytest.mark.parametrize("file", ["translator.json", "model.json"])
def test_json_of_another_kind_is_refused(copy, file, content):
    (copy / file).write_text(content)
    with pytest.raises(InputError, match=file) as caught:
        Translator.load(copy)
    assert "\n" not in str(caught.value)


def test_an_unknown_change_of_options_is_refused(run):
    with pytest.raises((InputError, TypeError), match="beams"):
        Translator.load(run, beams=4)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_tokenizer_of_another_vocabulary_is_refused(copy, side):
    tokenizer = SentencePieceTokenizer.train(FRENCH + ENGLISH, 70)
    size = tokenizer.vocabulary_size
    tokenizer.save(copy / f"{side}.model")
    with pytest.raises(InputError, match=rf"{side} tokenizer.*{size}") as caught:
        Translator.load(copy)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:Skipping nested container")  # Keras, on its way to an error
@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        ({}, {"num_layers": 2}),
        ({"num_layers": 2}, {}),
        ({"num_decoder_layers": 2}, {}),
        ({}, {"hidden_dim": 32}),
        ({}, {"position": "learned"}),
        ({"position": "relative"}, {}),
        ({}, {"norm_first": True}),
        ({"norm_first": True}, {}),
        ({"gated": True}, {}),
        ({"output_bias": True}, {}),
        ({"tie_embeddings": "none"}, {}),
    ],
)
def test_weights_of_another_model_are_refused(stored, wanted, tmp_path):
    """Larger or smaller: Keras alone loads what is larger without a word."""
    save_weights(build_transformer(config_of(**stored)), tmp_path)
    with pytest.raises(InputError, match="model.weights.h5") as caught:
        load_weights(build_transformer(config_of(**wanted)), tmp_path)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_path_that_is_no_run_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "none", tmp_path / "file"):
        with pytest.raises(InputError, match="not a run directory.*translator.json"):
            Translator.load(path)


def test_a_stream_keeps_its_translator_alive():
    translator = trained_translator()
    found = translator.with_options(num_beams=2).stream(FRENCH[:1])
    assert [one["text"] for one in found] == translator(FRENCH[:1])
    pairs = translator.with_options(num_beams=2).score(list(zip(FRENCH, ENGLISH, strict=True))[:1])
    assert [one["length"] > 1 for one in pairs] == [True]
