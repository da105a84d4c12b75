"""A translator small enough for any test: random weights, one tokenizer a side, our own text."""

import functools
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

from export import export_saved_model
from tests.weights import fill_with_random
from tf_transformer.config import TransformerConfig
from tf_transformer.model import build_transformer
from tf_transformer.options import DecodingOptions
from tf_transformer.tokenizers import SentencePieceTokenizer
from tf_transformer.translator import Translator

FRENCH = [
    "le chat dort sur la chaise .",
    "je suis étudiant .",
    "nous mangeons du pain et du fromage .",
    "où est la gare ?",
    "elle n'a pas vu la lettre .",
    "les enfants jouent dans le jardin .",
    "il pleut depuis ce matin .",
    "ma sœur habite à Genève .",
]
ENGLISH = [
    "the cat sleeps on the chair .",
    "i am a student .",
    "we eat bread and cheese .",
    "where is the station ?",
    "she has not seen the letter .",
    "the children play in the garden .",
    "it has rained since this morning .",
    "my sister lives in Geneva .",
]
# Twenty of every kind that a server may be sent.
TEXTS = [
    *(text.encode() for text in FRENCH),
    *(
        text.encode()
        for text in ("", " ", "\t  ", "x", "une phrase inconnue !", "ÀÉÎÕÜ", "漢字 😀")
    ),
    b"le chat dort sur la chaise et " * 12,
    b"le chat \xff\xfe dort",
    b"\xc3",
    b"le\0chat",
    b"<s> je </s> suis <pad>",
]


@functools.cache
def tokenizers() -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    """Source and target, of different sizes, so that one taken for the other shows."""
    return (
        SentencePieceTokenizer.train(FRENCH, 55, hard_vocab_limit=True),
        SentencePieceTokenizer.train(ENGLISH, 45, hard_vocab_limit=True),
    )


def make_config(**fields: Any) -> TransformerConfig:
    """The sizes of `make_translator`."""
    sizes = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=32)
    source, target = tokenizers()
    return TransformerConfig(
        source_vocabulary_size=source.vocabulary_size,
        target_vocabulary_size=target.vocabulary_size,
        tie_embeddings="two_way",
        **{**sizes, **fields},
    )


def make_translator(seed: int = 1, **fields: Any) -> Translator:
    """A translator whose answers are nonsense and differ from text to text."""
    model = build_transformer(make_config(**fields))
    fill_with_random(model, seed, scale=0.5)
    return Translator(model, *tokenizers(), DecodingOptions(extra_length=8))


def make_batch() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The sentences as one batch for `model.fit`: inputs and labels, padded."""
    source, target = tokenizers()
    pad = functools.partial(keras.utils.pad_sequences, padding="post")
    labels = pad([[*ids, 3] for ids in target.encode(ENGLISH)])
    inputs = {
        "encoder_token_ids": pad([[*ids, 3] for ids in source.encode(FRENCH)]),
        "decoder_token_ids": np.pad(labels, ((0, 0), (1, 0)), constant_values=2)[:, :-1],
    }
    return inputs, labels


def export_unchecked(translator: Translator, directory: Path, **options: Any) -> Path:
    """An export without its checks, which take seconds; by default only `translate`, no kit."""
    options = {"signatures": ["translate", "source_length"], "kit": False, **options}
    with mock.patch("export.checks.run_checks", return_value=[]):
        return export_saved_model(translator, directory, **options)


def save_module(module: tf.Module, directory: Path, **functions: Any) -> Path:
    """A SavedModel as anybody may write one; the functions are its signatures."""
    tf.saved_model.save(module, str(directory), signatures=functions)
    return directory


def teacher_forced(model, source, tokens):
    """log P of each token after START, (T,) float64, by one pass through the whole model."""
    inputs = {
        "encoder_token_ids": source[None],
        "decoder_token_ids": np.array([[2, *tokens[:-1]]], "int32"),
    }
    logits = np.asarray(model(inputs), "float64")[0]
    highest = logits.max(axis=-1, keepdims=True)
    log_probs = logits - highest - np.log(np.exp(logits - highest).sum(-1, keepdims=True))
    return log_probs[np.arange(len(tokens)), tokens]
