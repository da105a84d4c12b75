"""[tokenizer]: every key acts or is refused by name; what is made elsewhere is taken."""

import pytest

from tests.tokenizers.texts import SENTENCES, trained
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import TOKENIZERS, ByteTokenizer, WordPieceTokenizer
from training.corpora.corpus import Corpus
from training.corpora.tokenizer_pair import tokenizers_of
from training.recipe import Recipe, load_recipe
from training.settings.tokenizer import TokenizerSettings

CORPUS = Corpus(SENTENCES[:6], SENTENCES[2:])
# A value for every key that is not its default.
VALUES = {
    "model_type": "bpe",
    "vocabulary_size": 70,
    "character_coverage": 0.99,
    "byte_fallback": True,
    "normalization": "identity",
    "user_symbols": ["<br>"],
}
ACTS = {
    "sentencepiece": set(VALUES),
    "wordpiece": {"vocabulary_size", "character_coverage"},
    "byte": set(),
}


def settings(**keys):
    return TokenizerSettings.model_validate(keys)


def test_every_tokenizer_has_its_type():
    assert set(ACTS) == set(TOKENIZERS)
    for name, kind in TOKENIZERS.items():
        size = {} if name == "byte" else {"vocabulary_size": 300}
        assert type(tokenizers_of(settings(type=name, **size), CORPUS).source) is kind
    assert {"type", "shared", "model", *VALUES} == set(TokenizerSettings.model_fields)


@pytest.mark.case("83")
@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("key", VALUES)
def test_a_key_acts_or_is_refused_by_name(name, key):
    if key in ACTS[name]:
        value = 150 if (name, key) == ("wordpiece", "vocabulary_size") else VALUES[key]
        given = {"type": name, "vocabulary_size": 320}
        plain = tokenizers_of(settings(**given), CORPUS).source
        changed = tokenizers_of(settings(**{**given, key: value}), CORPUS).source
        assert changed.content != plain.content
    else:
        default = TokenizerSettings.model_fields[key].default
        for value in (VALUES[key], default):  # the default too: whoever writes it expects it to act
            with pytest.raises(ValueError, match=rf"`{key}` has no meaning .*\"{name}\""):
                settings(type=name, **{key: value})


@pytest.mark.case("83")
@pytest.mark.parametrize("key", VALUES)
def test_with_a_model_nothing_is_to_be_learnt(key):
    with pytest.raises(ValueError, match=f"`{key}` is a choice of whoever made `model`"):
        settings(model="a.model", **{key: VALUES[key]})
    with pytest.raises(ValueError, match="`model` has no meaning"):
        settings(type="byte", model="a.model")


def test_one_model_or_two():
    assert settings(model="a").model == settings(model=["a"]).model == ["a"]
    assert settings(model=["a", "b"], shared=False).model == ["a", "b"]
    for keys in (
        {"model": ["a", "b"]},
        {"model": "a", "shared": False},
        {"model": []},
        {"model": ["a", "b", "c"], "shared": False},
        {"model": 3},
    ):
        with pytest.raises(ValueError, match="model"):
            settings(**keys)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_what_is_written_out_is_read_back_equal(name, tmp_path):
    path = tmp_path / "config.toml"
    recipes = [load_recipe("demo", [f"tokenizer.type={name}"])]
    if name != "byte":
        recipes.append(load_recipe("demo", [f"tokenizer.type={name}", "tokenizer.model=a b.txt"]))
    for recipe in recipes:
        path.write_text(recipe.to_toml(), encoding="utf-8")
        assert load_recipe(path) == recipe
        assert load_recipe(path).tokenizer.options() == recipe.tokenizer.options()
    assert "tokenizer" in Recipe().to_toml()


def test_another_type_drops_the_keys_of_the_recipe_that_it_has_no_use_for(tmp_path):
    kept = {"type": "wordpiece", "shared": True, "vocabulary_size": 800, "character_coverage": 1.0}
    assert load_recipe("demo", ["tokenizer.type=wordpiece"]).tokenizer == settings(**kept)
    assert load_recipe("demo", ["tokenizer.type=byte"]).tokenizer == settings(type="byte")
    assert load_recipe("demo", ["tokenizer.model=a"]).tokenizer == settings(model="a")
    assert load_recipe("demo", ["tokenizer.model=null"]) == load_recipe("demo")
    path = tmp_path / "mine.toml"
    path.write_text('base = "demo"\n[tokenizer]\ntype = "wordpiece"\nvocabulary_size = 900\n')
    assert load_recipe(path).tokenizer == settings(**{**kept, "vocabulary_size": 900})


@pytest.mark.case("83")
def test_keys_that_were_typed_are_never_dropped(tmp_path):
    with pytest.raises(InputError, match='`byte_fallback` has no meaning with type = "byte"'):
        load_recipe("demo", ["tokenizer.type=byte", "tokenizer.byte_fallback=true"])
    path = tmp_path / "mine.toml"
    path.write_text('base = "demo"\n[tokenizer]\ntype = "byte"\nvocabulary_size = 900\n')
    with pytest.raises(InputError, match=r"mine\.toml: tokenizer: `vocabulary_size` has no"):
        load_recipe(path)


def test_models_made_elsewhere_are_taken(tmp_path):
    trained("bpe").save(tmp_path / "a.model")
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\nthe\ncat\n##s\n", encoding="utf-8")
    one = tokenizers_of(settings(model=str(tmp_path / "a.model")), CORPUS)
    assert one.source is one.target and one.source.content == trained("bpe").content
    assert list(one.files()) == ["source.model"]
    two = tokenizers_of(
        settings(type="wordpiece", shared=False, model=[str(tmp_path / "vocab.txt")] * 2), CORPUS
    )
    assert list(two.files()) == ["source.vocab.txt", "target.vocab.txt"]
    assert two.target.pieces("the cats") == ["the", "cat", "##s"]
    with pytest.raises(InputError, match="no.model cannot be read: No such file"):
        tokenizers_of(settings(model=str(tmp_path / "no.model")), CORPUS)


def test_a_run_that_goes_on_has_its_own(tmp_path):
    of_run = WordPieceTokenizer.train(SENTENCES, 200)
    of_run.save(tmp_path / "source.vocab.txt")
    found = tokenizers_of(settings(type="wordpiece", model="gone.txt"), CORPUS, tmp_path)
    assert found.source.content == of_run.content and found.source is found.target
    ByteTokenizer().save(tmp_path / "source.bytes")
    assert tokenizers_of(settings(type="byte"), CORPUS, tmp_path).source.vocabulary_size == 260
