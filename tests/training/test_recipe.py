"""Recipes: what they hold, how the command line changes them, what is refused and how."""

import dataclasses
import re
import sys
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.config import PRESETS, TransformerConfig
from tf_transformer.errors import InputError
from tf_transformer.options import DecodingOptions
from training.optimizers.optimizer import OPTIMIZERS
from training.optimizers.schedule import SCHEDULES
from training.recipe import RECIPES, Recipe, bundled_recipes, load_recipe

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BUNDLED = pytest.mark.parametrize("name", bundled_recipes())
MANUALS = ["demo", "multi30k_en_de", "tatoeba_en_fr"]  # the others start from one of them


@pytest.fixture
def recipe_file(tmp_path):
    def write(text: str | bytes) -> Path:
        path = tmp_path / "mine.toml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def test_the_bundled_recipes_are_there():
    others = ["multi30k_en_fr", "tatoeba_en_de", "wmt14_en_de_base", "wmt14_en_de_big"]
    assert bundled_recipes() == sorted([*MANUALS, *others])


@BUNDLED
def test_a_bundled_recipe_makes_a_model(name):
    recipe = load_recipe(name)
    assert load_recipe(RECIPES / f"{name}.toml") == recipe
    size = recipe.tokenizer.vocabulary_size
    config = recipe.model.to_config(size, size)
    assert isinstance(config, TransformerConfig)
    assert config.source_vocabulary_size == config.target_vocabulary_size == size


def manual(name: str) -> list[tuple[str, str, str]]:
    """(section, key, the comment above it and its neighbours) of each key, set or commented out."""
    keys, section, comment, fresh = [], "", "", True
    for line in (RECIPES / f"{name}.toml").read_text().splitlines():
        if match := re.fullmatch(r"\[(\w+)\]", line):
            section, comment = match[1], ""
        elif match := re.match(r"(?:# )?(\w+) = ", line):
            keys.append((section, match[1], comment))
            fresh = True
        elif line.startswith("#"):
            comment = line if fresh else f"{comment} {line}"
            fresh = False
    return keys


@pytest.mark.parametrize("name", MANUALS)
def test_a_bundled_recipe_is_the_manual_of_every_key(name):
    defaults = Recipe().model_dump()
    expected = [(section, key) for section, keys in defaults.items() for key in keys]
    found = manual(name)
    assert sorted((section, key) for section, key, _ in found) == sorted(expected)
    for section, key, comment in found:
        default = defaults[section][key]
        if isinstance(default, bool):
            said = re.findall(r"\b(?:true|false)\b", comment)
            assert str(default).lower() in said, (key, comment)
        elif isinstance(default, str):
            assert f'"{default}"' in comment, (key, comment)
        elif default is None:
            assert comment, key
        elif isinstance(default, list):
            assert str(default) in comment, (key, comment)
        else:
            said = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?", comment)
            assert default in [float(number) for number in said], (key, comment)


@pytest.mark.parametrize("name", sorted({*bundled_recipes()} - {*MANUALS}))
def test_a_recipe_with_a_base_says_so_and_only_what_differs(name):
    text = (RECIPES / f"{name}.toml").read_text()
    tables = tomllib.loads(text)
    base = tables.pop("base")
    under = (Recipe() if base == "defaults" else load_recipe(base)).model_dump()
    assert "not run to its end" in text
    for section, table in tables.items():
        for key, value in table.items():
            assert under[section][key] != value, (section, key)


@pytest.mark.parametrize("size", ["base", "big"])
def test_the_wmt14_recipes_are_the_papers(size):
    """Sections 5.1 to 5.4 and 6.1, and the rows of table 3."""
    recipe = load_recipe(f"wmt14_en_de_{size}")
    names = {"source_vocabulary_size": 37_000, "target_vocabulary_size": 37_000}
    assert recipe.model.to_config(37_000, 37_000) == TransformerConfig.from_preset(size, **names)
    assert recipe.tokenizer.model_type == "bpe" and recipe.tokenizer.vocabulary_size == 37_000
    training = recipe.training
    assert training.batch_tokens == 25_000 and training.warmup_steps == 4000
    assert (training.beta_1, training.beta_2, training.epsilon) == (0.9, 0.98, 1e-9)
    assert training.label_smoothing == 0.1
    steps, averaged, seconds = {"base": (100_000, 5, 0.4), "big": (300_000, 20, 1.0)}[size]
    assert training.max_steps == steps and training.average_checkpoints == averaged
    assert recipe.evaluation.every_steps * seconds == 10 * 60
    tokens = 4_500_000 * 20  # of an epoch, and fewer than there are: the steps must end it
    assert training.epochs * tokens / training.batch_tokens > steps
    assert (recipe.decoding.search, recipe.decoding.num_beams, recipe.decoding.alpha) == (
        *("beam", 4, 0.6),
    )


@pytest.fixture
def chain(tmp_path):
    """`chain(base, child)`: child.toml starts from base.toml, both with this text."""

    def write(base: str, child: str) -> Path:
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "base.toml").write_text(base)
        path = tmp_path / "mine" / "child.toml"
        path.write_text(f'base = "../base.toml"\n{child}')
        return path

    return write


def test_a_recipe_starts_from_its_base(chain):
    path = chain(
        'base = "demo"\n[training]\nepochs = 3\nseed = 5\n[model]\ndropout = 0.25\n',
        "[training]\nepochs = 4\n[decoding]\nalpha = 1.0\n",
    )
    same = ["training.epochs=4", "training.seed=5", "decoding.alpha=1.0", "model.dropout=0.25"]
    assert load_recipe(path) == load_recipe("demo", same)
    assert load_recipe(path, ["training.seed=9"]).training.seed == 9


def test_a_preset_over_a_base_replaces_its_model(chain):
    path = chain("[model]\ndropout = 0.25\nnum_layers = 3\n", '[model]\npreset = "tiny"\n')
    assert load_recipe(path).model.to_config(9, 9) == TransformerConfig.from_preset(
        "tiny", source_vocabulary_size=9, target_vocabulary_size=9
    )


@pytest.mark.parametrize(
    ("base", "child", "message"),
    [
        ("", 'base = "x"\n', "child.toml must be TOML"),
        ('base = "mine/child.toml"\n', "", r"base.toml: base = 'mine/child.toml' leads back to"),
        ('base = "base.toml"\n', "", r"base.toml: base = 'base.toml' leads back to itself"),
        ("base = 3\n", "", r"base.toml: base must be the name of a recipe; received 3"),
        ('base = "nowhere"\n', "", r"There is no recipe \S*/nowhere"),
        ("training = 3\n", "[training]\nepochs = 3\nlr = 1\n", r"child.toml: training.lr is not a"),
        ("", "training = 3\n", r"training must be a section"),
    ],
)
def test_a_base_that_cannot_be_used_is_refused(chain, base, child, message):
    with pytest.raises(InputError, match=message):
        load_recipe(chain(base, child))


def test_defaults_are_the_papers_base_model_and_training():
    recipe = Recipe()
    assert recipe.model.to_config(37_000, 37_000) == TransformerConfig(
        source_vocabulary_size=37_000, target_vocabulary_size=37_000
    )
    training = recipe.training
    assert (training.beta_1, training.beta_2, training.epsilon) == (0.9, 0.98, 1e-9)
    assert (training.warmup_steps, training.label_smoothing) == (4000, 0.1)
    assert (recipe.decoding.num_beams, recipe.decoding.alpha) == (4, 0.6)
    assert recipe.decoding.extra_length == 50


def test_the_recipes_names_are_those_of_the_tables():
    fields = type(Recipe().training).model_fields
    for key, table in (("optimizer", OPTIMIZERS), ("schedule", SCHEDULES)):
        assert list(get_args(fields[key].annotation)) == list(table)


def test_every_field_of_the_model_but_the_vocabularies_is_a_key():
    fields = {field.name for field in dataclasses.fields(TransformerConfig)}
    vocabularies = {"source_vocabulary_size", "target_vocabulary_size"}
    assert set(Recipe().model.model_dump()) == fields - vocabularies | {"preset"}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_the_models_and_keys_win_over_it(recipe_file, preset):
    path = recipe_file(f'[model]\npreset = "{preset}"\n')
    expected = TransformerConfig.from_preset(
        preset, source_vocabulary_size=9, target_vocabulary_size=9
    )
    recipe = load_recipe(path)
    assert recipe.model.to_config(9, 9) == expected
    changed = load_recipe(path, ["model.dropout=0.25", "model.num_layers=1"])
    assert changed.model.to_config(9, 9) == dataclasses.replace(
        expected, dropout=0.25, num_layers=1
    )
    assert load_recipe(recipe_file(recipe.to_toml())) == recipe


def test_a_preset_on_the_command_line_replaces_the_models_section():
    recipe = load_recipe("multi30k_en_de", ["model.dropout=0.2", "model.preset=tiny"])
    assert recipe.model.to_config(9, 9) == TransformerConfig.from_preset(
        "tiny", source_vocabulary_size=9, target_vocabulary_size=9, dropout=0.2
    )
    # In a resolved recipe every key is written; the preset must still have its effect.
    assert load_recipe("multi30k_en_de", ["model.preset=big"]).model.to_config(9, 9).num_heads == 16
    kept = load_recipe("multi30k_en_de", ["model.preset=null"])
    assert kept == load_recipe("multi30k_en_de")


@BUNDLED
def test_to_toml_is_read_back_equal(name, recipe_file):
    for recipe in (load_recipe(name), load_recipe(name, ["data.train=x.tsv"]), Recipe()):
        assert load_recipe(recipe_file(recipe.to_toml())) == recipe


@given(
    name=st.text(st.characters(exclude_categories=["Cs"])),
    rate=st.floats(0, 1, exclude_min=True),
    epochs=st.integers(1, 2**62),
    steps=st.none() | st.integers(1, 2**62),
)
def test_any_recipe_is_read_back_equal(tmp_path_factory, name, rate, epochs, steps):
    recipe = Recipe.model_validate(
        {
            "data": {"source_language": name, "train": ["a", "b.gz"]},
            "training": {"learning_rate": rate, "epochs": epochs, "max_steps": steps},
        }
    )
    path = tmp_path_factory.mktemp("run") / "config.toml"
    path.write_text(recipe.to_toml(), encoding="utf-8")
    assert load_recipe(path) == recipe


@pytest.mark.parametrize(
    "override, value",
    [
        ("training.epochs=3", 3),
        (" training.epochs = 3 ", 3),
        ("training.learning_rate=1", 1.0),
        ("training.learning_rate=2e-1", 0.2),
        ("training.jit_compile=true", True),
        ("training.precision=mixed_bfloat16", "mixed_bfloat16"),
        ('training.precision="mixed_bfloat16"', "mixed_bfloat16"),
        ("training.max_minutes=2.5", 2.5),
        ("training.max_minutes=null", None),
        ("training.epochs=null", 10),
        ("data.source_language=Français = oui", "Français = oui"),
        ('data.source_language="null"', "null"),
        ("data.source_language=1\ntarget_language = 2", "1\ntarget_language = 2"),
        ("data.train=train.tsv.gz", ["train.tsv.gz"]),
        ('data.train=["a.src", "a.tgt"]', ["a.src", "a.tgt"]),
        ("model.num_decoder_layers=1", 1),
        ("model.dropout=0", 0.0),
    ],
)
def test_overrides(override, value):
    section, _, rest = override.strip().partition(".")
    key = rest.partition("=")[0].strip()
    got = load_recipe("tatoeba_en_fr", ["training.epochs=7", override]).model_dump()
    assert got[section][key] == value and type(got[section][key]) is type(value)
    expected = load_recipe("tatoeba_en_fr", ["training.epochs=7"]).model_dump()
    expected[section][key] = value
    assert got == expected


@pytest.mark.parametrize(
    "key, hint",
    [
        ("training.epocs", "training.epochs"),
        ("training.batch_size", "training.batch_tokens"),
        ("training.warmup", "training.warmup_steps"),
        ("training.num_heads", "model.num_heads"),
        ("model.droput", "model.dropout"),
        ("tokenizer.vocab_size", "tokenizer.vocabulary_size"),
        ("decoding.beams", "decoding.num_beams"),
        ("data.max_lenght", "data.max_length"),
        ("evaluation.sample", "evaluation.samples"),
        ("model.source_vocabulary_size", None),
        ("training.qqq", None),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(recipe_file, key, hint):
    section, _, name = key.partition(".")
    path = recipe_file(f"[{section}]\n{name} = 3\n")
    end = f"; did you mean {hint}?" if hint else "."
    for arguments, origin in (((path,), path), (("demo", [f"{key}=3"]), "--set")):
        with pytest.raises(InputError) as raised:
            load_recipe(*arguments)
        message = str(raised.value)
        assert message.startswith(f"{origin}: {key} is not a key of a recipe")
        assert message.endswith(end) or hint is None


@pytest.mark.parametrize(
    "text, message",
    [
        ("[trainig]\nepochs = 3", "trainig is not a section of a recipe; did you mean training?"),
        ("[optimizer]\nname = 3", "optimizer is not a section of a recipe"),
        ("epochs = 3", "epochs is not a key of a recipe; did you mean training.epochs?"),
        ("training = 3", "training must be a section, [training]; received 3."),
        ("model = [1]", "model must be a section, [model]; received [1]."),
        ("[[data]]\ntrain = 'x'", "data must be a section, [data]; received [{'train': 'x'}]."),
        ('[training]\nepochs = "3"', "training.epochs must be a valid integer; received '3'."),
        ("[training]\nepochs = 3.0", "training.epochs must be a valid integer; received 3.0."),
        ("[training]\nepochs = true", "training.epochs must be a valid integer; received True."),
        ("[training]\nepochs = 0", "training.epochs must be greater than or equal to 1; rec"),
        ("[training]\nlearning_rate = nan", "training.learning_rate must be a finite number"),
        ("[training]\nlearning_rate = '1'", "training.learning_rate must be a valid number"),
        ("[training]\njit_compile = 1", "training.jit_compile must be a valid boolean; received 1"),
        ("[training]\nbeta_2 = 1", "training.beta_2 must be less than 1; received 1"),
        ("[training]\nprecision = 'int8'", "must be 'float32', 'mixed_float16' or 'mixed_bf"),
        ("[training]\naverage_checkpoints = 6", "`average_checkpoints` must not be above"),
        ("[training]\nschedule = 'constant'", "`learning_rate` is the highest rate itself"),
        ("[training]\nschedule = 'noam'", "must be 'transformer', 'inverse_sqrt', 'linear'"),
        (
            "[training]\nschedule = 'cosine'\nlearning_rate = 0.01",
            'schedule = "cosine" needs `decay_steps`; received None',
        ),
        ("[training]\ndecay_steps = 10", 'schedule = "transformer" has no `decay_steps`; re'),
        (
            "[training]\nschedule = 'linear'\nlearning_rate = 0.01\ndecay_steps = 4000",
            "`decay_steps` must be above `warmup_steps`; received 4000 and 4000",
        ),
        ("[training]\nweight_decay = 0.1", '`weight_decay` is of optimizer = "adamw"; received'),
        ("[training]\nema_decay = 1.0", "training.ema_decay must be less than 1; received 1.0"),
        ("[data]\ntrain = 3", 'data.train must be a TSV name or ["a.src", "a.tgt"]; received 3.'),
        ("[data]\ntrain = ['a', 'b', 'c']", "data.train must be a TSV name or"),
        ("[data]\ntest = ['a', '']", "data.test must be a TSV name or"),
        ("[tokenizer]\nmodel_type = 'word'", "tokenizer.model_type must be 'unigram' or 'bpe'"),
        ("[tokenizer]\nvocabulary_size = 4", "tokenizer.vocabulary_size must be greater than 4"),
        ("[tokenizer]\nshared = false", 'model.tie_embeddings = "three_way" needs tokenizer.'),
        ("[model]\nnum_layers = 1.5", "model.num_layers must be a valid integer; received 1.5"),
        ("[model]\nnorm_first = 'yes'", "model.norm_first must be a valid boolean; received 'yes'"),
        ("[model]\nhidden_dim = 10", "model: `hidden_dim` must be divisible by `num_heads`"),
        ("[model]\ndropout = 1.5", "model: `dropout` must be a number of at least 0 and below 1"),
        ("[model]\nposition = 'x'", "model: `position` must be one of sinusoidal, "),
        ("[model]\npreset = 'huge'", "model: `preset` must be one of tiny, base, "),
        ("[model]\npreset = 1", "model.preset must be a valid string; received 1"),
        ("[decoding]\nsearch = 'best'", "decoding.search must be 'beam', 'greedy', 'diverse' or"),
    ],
)  # fmt: skip
def test_a_value_that_breaks_its_rule_is_refused(recipe_file, text, message):
    path = recipe_file(text)
    with pytest.raises(InputError) as raised:
        load_recipe(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "override, message",
    [
        ("training.epochs", "--set must be section.key=value; received 'training.epochs'."),
        ("training=3", "--set must be section.key=value; received 'training=3'."),
        ("epochs=3", "--set: epochs is not a key of a recipe; did you mean training.epochs?"),
        ("trainig.epochs=3", "--set: trainig.epochs is not a key of a recipe; did you mean train"),
        ("training.epochs=three", "--set: training.epochs must be a valid integer; received 'thr"),
        ("training.epochs=", "--set: training.epochs must be a valid integer; received ''."),
        ("training.adam.beta_1=3", "--set: training.adam.beta_1 is not a key of a recipe"),
        ("model.hidden_dim=10", "demo.toml with --set: model: `hidden_dim` must be divisible by"),
    ],
)
def test_an_override_that_breaks_its_rule_is_refused(override, message):
    with pytest.raises(InputError) as raised:
        load_recipe("demo", [override])
    assert message in str(raised.value)


def test_an_override_of_what_is_no_section(recipe_file):
    path = recipe_file("training = 3\n")
    with pytest.raises(InputError, match=r"training must be a section, \[training\]; received 3"):
        load_recipe(path, ["training.epochs=3"])


@pytest.mark.parametrize(
    "content, message",
    [
        (b"[training]\nepochs = \n", "must be TOML, but: .*line 2"),
        (b"[training]\nepochs = 3\nepochs = 4\n", "must be TOML, but: .*line 3"),
        (b"{}", "must be TOML, but: .*line 1"),
        (b"[data]\nsource_language = '\xe9'\n", "must be UTF-8, but line 2 has the byte 0xE9"),
    ],
)
def test_what_is_not_toml_is_refused(recipe_file, content, message):
    with pytest.raises(InputError, match=r"mine\.toml " + message):
        load_recipe(recipe_file(content))


def test_windows_files_are_read(recipe_file):
    path = recipe_file(b"\xef\xbb\xbf[training]\r\nepochs = 3\r\n")
    assert load_recipe(path).training.epochs == 3
    assert load_recipe(recipe_file(b"")) == Recipe()


def test_a_missing_recipe_is_refused_with_the_bundled_ones(tmp_path):
    with pytest.raises(InputError, match="There is no recipe demmo: .* of demo, multi30k_en_de, m"):
        load_recipe("demmo")
    with pytest.raises(InputError, match="There is no recipe .*nowhere.toml"):
        load_recipe(tmp_path / "nowhere.toml")
    with pytest.raises(InputError, match="must be a text file, but it is a folder"):
        load_recipe(tmp_path)


def test_a_folder_called_like_a_bundled_recipe_does_not_hide_it(tmp_path, monkeypatch):
    expected = load_recipe("demo")
    (tmp_path / "demo").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_recipe("demo") == expected


def test_a_recipe_is_frozen():
    with pytest.raises(ValueError, match="frozen"):
        Recipe().training.epochs = 3


def test_the_decoding_section_is_the_options_of_a_translator():
    """Key by key, with the same defaults."""
    defaults = Recipe().decoding.model_dump()
    assert DecodingOptions(**defaults) == DecodingOptions()
    assert list(defaults) == [field.name for field in dataclasses.fields(DecodingOptions)]
