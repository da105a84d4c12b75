"""Signatures that take text and give text. What they promise is told in `signatures.py`."""

import numpy as np
import tensorflow as tf

from tf_transformer.config import PAD_ID
from tf_transformer.decoding import ForcedPrefix, RowOptions
from tf_transformer.decoding.scoring import MAX_ALPHA

from .parts import (
    ALPHA,
    MAX_LENGTH,
    NUM_BEAMS,
    PREFIX,
    SOURCE,
    TARGET,
    TEXT,
    Endpoint,
    Parts,
    Tensors,
    finite,
    of_texts,
    pharaoh,
    strings,
    widened,
)
from .session_model import Arrays


def translate(parts: Parts) -> Endpoint:
    """`text` (B,) -> `text`, `score`, `truncated` (B,); see `Translator.translate`."""
    return Endpoint([TEXT], lambda text: parts.translate(text), of_texts)


def translate_n_best(parts: Parts) -> Endpoint:
    """`text` (B,) -> `texts`, `scores`, `log_probs`, `lengths`, `finished` (B, K), `truncated`.

    Best first. `scores` are normalised by length, `log_probs` are not; `lengths` count END;
    `finished` is false where the limit came before END. A place without a hypothesis has an empty
    text, length 0 and the lowest float32 as its scores; so have all but the first of a blank text.
    """

    names = "texts", "scores", "log_probs", "lengths", "finished", "truncated"

    def answer(text: tf.Tensor) -> Tensors:
        found = parts.translate_n_best(text)
        found["scores"], found["log_probs"] = finite(found["scores"]), finite(found["log_probs"])
        return {name: found[name] for name in names}

    return Endpoint([TEXT], answer, of_texts)


def translate_with_alignments(parts: Parts) -> Endpoint:
    """`text` (B,) -> the best of `translate_n_best`, and where it comes from.

    `alignment` (B,) says in Pharaoh's format, "0-0 1-2", which source word each word was written
    from; words are what blanks separate. `word_alignment` (B, T) says the same in numbers, -1 for
    none; `piece_alignment` (B, T) says it of `pieces` (B, T), the translation's, as places in
    `source_pieces` (B, S); `token_log_probs` (B, T) are the pieces'. Behind the last stands -1, ""
    or 0.
    """
    longest, most = parts.options.max_source_length, parts.options.max_target_length

    def answer(text: tf.Tensor) -> Tensors:
        found = parts.translate_with_alignments(text)
        best = {name: found[name][:, 0] for name in ("piece_alignment", "word_alignment")}
        return {
            "text": found["texts"][:, 0],
            "score": finite(found["scores"][:, 0]),
            "log_prob": finite(found["log_probs"][:, 0]),
            "length": found["lengths"][:, 0],
            "finished": found["finished"][:, 0],
            "truncated": found["truncated"],
            "alignment": pharaoh(best["word_alignment"]),
            "source_pieces": widened(found["source_pieces"], longest, ""),
            "pieces": widened(found["pieces"][:, 0], most, ""),
            "token_log_probs": widened(finite(found["token_log_probs"][:, 0]), most, 0.0),
            **{name: widened(places, most, -1) for name, places in best.items()},
        }

    return Endpoint([TEXT], answer, of_texts)


def translate_with_options(parts: Parts) -> Endpoint:
    """`text`, `num_beams`, `alpha`, `max_length`, `prefix` (B,) -> as `translate`, row by row.

    Each row is searched as it asks, with at most the export's K beams and T tokens. 0 and less of
    `num_beams` and `max_length`, and an `alpha` that is no number, stand for the export's own. What
    a row got, where it asked for more, is in the outputs of the same names. A translation begins
    with the pieces of its `prefix`, and `finished` (B,) is false where the limit came before END.
    """
    default, most = parts.options, parts.options.max_target_length

    def answer(
        text: tf.Tensor,
        num_beams: tf.Tensor,
        alpha: tf.Tensor,
        max_length: tf.Tensor,
        prefix: tf.Tensor,
    ) -> Tensors:
        source = parts.encode_source(text)
        is_blank = source.lengths <= 1
        wished = tf.where(max_length > 0, tf.minimum(max_length, most), most)
        own = parts.max_lengths(source.lengths)
        limits = tf.where((max_length > 0) & ~is_blank, wished, own)
        beams = tf.where(num_beams > 0, tf.minimum(num_beams, parts.most_beams), parts.most_beams)
        alpha = tf.where(tf.math.is_finite(alpha), alpha, default.alpha)
        alpha = tf.clip_by_value(alpha, -MAX_ALPHA, MAX_ALPHA)
        begun = ForcedPrefix(parts.tokenizers.target.tokenize(prefix).to_tensor(PAD_ID))
        rows = RowOptions(alpha=alpha, num_beams=beams)
        found = parts.generate(source.token_ids, limits, rows=rows, rules=[begun], wanted=1)
        best = parts.detokenize(found.token_ids[:, 0])
        return {
            "text": tf.where(is_blank, "", best),
            "score": tf.where(is_blank, 0.0, finite(found.scores[:, 0])),
            "finished": is_blank | found.finished[:, 0],
            "truncated": source.truncated,
            "num_beams": beams,
            "alpha": alpha,
            "max_length": limits,
        }

    def request(texts: list[str]) -> Arrays:
        ones = np.ones([len(texts)], "int32")
        own = {"num_beams": 0 * ones, "alpha": default.alpha * ones.astype("float32")}
        return {
            **of_texts(texts),
            **own,
            "max_length": 0 * ones,
            "prefix": strings([""] * len(texts)),
        }

    return Endpoint([TEXT, NUM_BEAMS, ALPHA, MAX_LENGTH, PREFIX], answer, request)


def score(parts: Parts) -> Endpoint:
    """`source`, `target` (B,) -> how likely the model holds each translation for.

    `log_prob` (B,), its sum over tokens; `score` (B,), the same normalised by length as `translate`
    has it; `token_log_probs` (B, T) of `pieces` (B, T), 0 and "" behind the last; `length` (B,),
    END counts; `truncated` (B,): one of the two was longer than the model reads; `finished` (B,) is
    false where that was the target: of it END is not asked.
    """
    most = parts.options.max_target_length

    def answer(source: tf.Tensor, target: tf.Tensor) -> Tensors:
        found = parts.score_pairs(source, target)
        return {
            "log_prob": finite(found["log_prob"]),
            "score": finite(found["score"]),
            "token_log_probs": widened(finite(found["token_log_probs"]), most, 0.0),
            "pieces": widened(found["pieces"], most, ""),
            "length": found["length"],
            "finished": found["finished"],
            "truncated": parts.encode_source(source).truncated | ~found["finished"],
        }

    def request(texts: list[str]) -> Arrays:
        return {"source": strings(texts), "target": strings(texts)}

    return Endpoint([SOURCE, TARGET], answer, request)
