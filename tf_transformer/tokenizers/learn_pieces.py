"""Learning SentencePiece pieces from text in memory, with errors for people."""

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sentencepiece

from tf_transformer.config import END_ID, PAD_ID, START_ID, UNK_ID
from tf_transformer.errors import InputError

_SMALLEST = 8
_MODEL_TYPES = ("unigram", "bpe")
_CONTROLS = ("<pad>", "<unk>", "<s>", "</s>")
_NORMALIZATIONS = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")


def learn(
    texts: Iterable[str], vocabulary_size: int, user_symbols: Sequence[str] = (), **options: Any
) -> bytes:
    """A `.model` file of at most `vocabulary_size` pieces whose special ids are 0 to 3.

    Args:
        texts: sentences; what goes wrong in reading them comes through as it is.
        vocabulary_size: V at most.
        user_symbols: texts that stay one piece each.
        options: arguments of `sentencepiece.SentencePieceTrainer.train`.

    Raises:
        InputError: no text, fewer ids than the text has letters, or a wrong option.
    """
    _check(vocabulary_size, **options)
    _check_symbols(user_symbols)
    written, failures = io.BytesIO(), []

    def sentences() -> Iterator[str]:
        try:
            yield from texts
        except Exception as error:  # the trainer would make a C++ trace of it
            failures.append(error)
            raise

    arguments = dict(
        sentence_iterator=sentences(),
        model_writer=written,
        vocab_size=vocabulary_size,
        hard_vocab_limit=False,
        pad_id=PAD_ID,
        unk_id=UNK_ID,
        bos_id=START_ID,
        eos_id=END_ID,
        user_defined_symbols=list(user_symbols),
        # The default drops lines over 4192 bytes, and with them a corpus of long ones.
        max_sentence_length=1 << 20,
        minloglevel=2,
    )
    try:
        sentencepiece.SentencePieceTrainer.train(**{**arguments, **options})
    except RuntimeError as error:
        if failures:
            raise failures[0] from None
        smallest = "letters and all bytes" if options.get("byte_fallback") else "letters"
        raise InputError(_explain(str(error), vocabulary_size, smallest)) from error
    return written.getvalue()


def _check(
    vocabulary_size: int,
    model_type: str = "unigram",
    normalization_rule_name: str = "nmt_nfkc",
    character_coverage: float = 1.0,
    **_: Any,
) -> None:
    if vocabulary_size < _SMALLEST:
        raise InputError(
            f"`vocabulary_size` must be at least {_SMALLEST}. Received: {vocabulary_size}"
        )
    if model_type not in _MODEL_TYPES:
        raise InputError(
            f"`model_type` must be one of {', '.join(_MODEL_TYPES)}. Received: {model_type!r}"
        )
    if normalization_rule_name not in _NORMALIZATIONS:
        raise InputError(
            f"`normalization` must be one of {', '.join(_NORMALIZATIONS)}. "
            f"Received: {normalization_rule_name!r}"
        )
    if not 0.98 <= character_coverage <= 1.0:  # sentencepiece's own bounds
        raise InputError(
            f"`character_coverage` must be from 0.98 to 1. Received: {character_coverage!r}"
        )


def _check_symbols(symbols: Sequence[str]) -> None:
    for symbol in symbols:
        # With a blank it would never be found: the text has "▁" there.
        if not symbol or symbol in _CONTROLS or re.search(r"\s|▁", symbol):
            raise InputError(
                f"`user_symbols` must be texts without blanks, none of {', '.join(_CONTROLS)}. "
                f"Received: {symbol!r}"
            )
    if repeated := [symbol for symbol, times in Counter(symbols).items() if times > 1]:
        raise InputError(f"`user_symbols` must differ from each other. Received: {repeated[0]!r}")


def _explain(error: str, vocabulary_size: int, smallest: str) -> str:
    reason = error.rpartition("] ")[2].strip() or error
    if "sentences_.empty()" in error or "all_chars_count" in error:
        reason = "there is no letter in it"
    elif needed := re.search(r"required_chars\. \d+ vs (\d+)", error):
        reason = f"its different {smallest} alone need {needed[1]}, so ask for that at least"
    return f"No vocabulary of {vocabulary_size} can be learnt from this text: {reason}."
