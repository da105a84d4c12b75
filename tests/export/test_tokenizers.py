"""Every kind of tokenizer, as source and as target, passes all that an export is checked for."""

import numpy as np
import pytest
import tensorflow as tf

from export import SessionModel, export_saved_model
from tests.tiny_translator import TEXTS
from tests.tokenizers.texts import SENTENCES, trained
from tests.weights import fill_with_random
from tf_transformer import (
    DecodingOptions,
    TransformerConfig,
    Translator,
    WordPieceTokenizer,
    build_transformer,
)

SIGNATURES = ["translate", "tokenize", "detokenize"]  # all nine take minutes


def with_lines(*lines):
    """A WordPiece tokenizer of SENTENCES with further pieces."""
    content = trained("wordpiece").content + "".join(f"{line}\n" for line in lines).encode()
    return WordPieceTokenizer.from_foreign(content)


@pytest.mark.parametrize(
    ("source", "target"),
    [("wordpiece", "bytes"), ("bytes", "wordpiece")],  # SentencePiece: all other tests here
)
def test_an_export_with_it_answers_everywhere(source, target, tmp_path):
    # Pieces of text that are paths of this machine are no finding.
    kinds = {"bytes": trained("bytes"), "wordpiece": with_lines("/tmp", "##/tmp")}
    tokenizers = kinds[source], kinds[target]
    config = TransformerConfig(
        source_vocabulary_size=tokenizers[0].vocabulary_size,
        target_vocabulary_size=tokenizers[1].vocabulary_size,
        num_layers=1,
        hidden_dim=16,
        num_heads=2,
        intermediate_dim=32,
        tie_embeddings="two_way",
    )
    model = build_transformer(config)
    fill_with_random(model, 3, scale=0.5)
    options = DecodingOptions(extra_length=8, max_source_length=64)
    translator = Translator(model, *tokenizers, options)
    # Refused unless the scans pass, and every loader and the C library answer alike.
    folder = export_saved_model(translator, tmp_path / "models", signatures=SIGNATURES, kit=False)
    texts = [*(text.encode() for text in SENTENCES), *TEXTS]
    expected = translator.translate(tf.constant(texts))["text"].numpy().tolist()
    assert len(set(expected)) > 10
    with SessionModel(folder) as served:
        assert served("translate", {"text": np.array(texts, object)})["text"].tolist() == expected
