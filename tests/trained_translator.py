"""A translator that knows eight of our own sentences by heart: its answers differ and mean something."""

import functools

import keras

from tests.tiny_translator import make_batch, make_config, tokenizers
from tf_transformer import DecodingOptions, TransformerConfig, Translator, build_transformer


@functools.cache
def trained_config() -> TransformerConfig:
    """The sizes of `trained_translator`."""
    return make_config(hidden_dim=32, intermediate_dim=64, dropout=0.0)


@functools.cache
def trained_translator() -> Translator:
    """Learnt once a process; dropout off, so that the same seed gives the same weights."""
    keras.utils.set_random_seed(7)
    model = build_transformer(trained_config())
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    model.compile(keras.optimizers.Adam(3e-3), loss, jit_compile=False)
    inputs, labels = make_batch()
    model.fit(inputs, labels, epochs=150, batch_size=len(labels), verbose=0)
    return Translator(model, *tokenizers(), DecodingOptions(extra_length=20))
