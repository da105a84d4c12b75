"""A run directory keeps any tokenizer, on any side."""

import json

import pytest

from tests.tokenizers.texts import NASTY, SENTENCES, trained
from tf_transformer import DecodingOptions, InputError, TransformerConfig, build_transformer
from tf_transformer.run_files import TRANSLATOR_FILE, read_run, write_run


@pytest.mark.parametrize(
    ("source", "target"),
    [("wordpiece", "bytes"), ("bytes", "bpe, bytes"), ("unigram", "wordpiece"), ("bytes", "bytes")],
)
def test_tokenizers_come_back_as_they_were(source, target, tmp_path):
    tokenizers = {"source": trained(source), "target": trained(target)}
    sizes = [tokenizer.vocabulary_size for tokenizer in tokenizers.values()]
    config = TransformerConfig(
        source_vocabulary_size=sizes[0],
        target_vocabulary_size=sizes[1],
        num_layers=1,
        hidden_dim=8,
        num_heads=2,
        intermediate_dim=8,
        tie_embeddings="two_way",
    )
    write_run(tmp_path, config, build_transformer(config), tokenizers, DecodingOptions())
    found = dict(zip(tokenizers, read_run(tmp_path)[1:3], strict=True))
    for side, tokenizer in tokenizers.items():
        assert type(found[side]) is type(tokenizer) and found[side].name == tokenizer.name
        assert found[side].encode([*SENTENCES, *NASTY]) == tokenizer.encode([*SENTENCES, *NASTY])
    assert (found["source"] is found["target"]) == (source == target)

    # The type is what the manifest says, not what a file is called.
    manifest = json.loads((tmp_path / TRANSLATOR_FILE).read_text())
    manifest["tokenizers"]["source"]["type"] = "wordpiece" if source != "wordpiece" else "byte"
    (tmp_path / TRANSLATOR_FILE).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=manifest["tokenizers"]["source"]["file"]):
        read_run(tmp_path)
