"""A translator that knows eight of our own sentences by heart: its answers mean something."""

import dataclasses
import functools
from typing import Any

import keras

from tests.tiny_translator import make_batch, make_config, tokenizers
from tf_transformer import DecodingOptions, TransformerConfig, Translator, build_transformer


def config_of(**fields: Any) -> TransformerConfig:
    """The sizes of `make_translator` with any fields over them."""
    return dataclasses.replace(make_config(), **fields)


def trained_config() -> TransformerConfig:
    """The sizes of `trained_translator`."""
    return config_of(hidden_dim=32, intermediate_dim=64, dropout=0.0)


@functools.cache
def trained_translator() -> Translator:
    """Learnt once a process; dropout off, so that the same seed gives the same weights."""
    keras.utils.set_random_seed(7)
    model = build_transformer(trained_config())
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    model.compile(keras.optimizers.Adam(5e-3), loss, jit_compile=False)
    inputs, labels = make_batch()
    model.fit(inputs, labels, epochs=100, batch_size=len(labels), verbose=0)
    return Translator(model, *tokenizers(), DecodingOptions(extra_length=20))
