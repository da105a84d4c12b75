"""What is told of a translated or scored line: columns between tabs for people, JSON for programs.

Both are lines of text. A text holds no tab and no line break (`clean_line` makes blanks of them),
so columns can be cut at tabs without a rule for quotes.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.lines import clean_line

Found = dict[str, Any]  # one row of `translate_n_best`, `translate_with_alignments`, `score_pairs`

# What the rows of one hypothesis are called where there are K of them.
_OF_K = {
    "texts": "text",
    "scores": "score",
    "log_probs": "log_prob",
    "lengths": "length",
    "finished": "finished",
    "token_log_probs": "token_log_probs",
    "pieces": "pieces",
    "piece_alignment": "piece_alignment",
    "word_alignment": "word_alignment",
}


class Shown(NamedTuple):
    """What a person wants to see of a line."""

    n_best: int | None = None  # how many hypotheses; None is the best, without its line's number
    scores: bool = False
    alignments: bool = False  # of words
    pieces: bool = False  # the pieces, and alignments of these


def hypotheses(found: Found, count: int) -> list[Found]:
    """The first `count` hypotheses of a row, or as many as there are; of `translate` its one."""
    if "texts" not in found:
        return [found]
    each = [
        {one: found[all_][k] for all_, one in _OF_K.items() if all_ in found}
        for k in range(min(count, len(found["texts"])))
    ]
    # A place that no hypothesis filled has no token; the translation of a blank has none either.
    return [one for one in each if one["length"] or one["finished"]]


def pharaoh(pairs: Iterable[tuple[int, int]]) -> str:
    """Links of source and target places as "0-0 1-2".

    >>> pharaoh([(0, 0), (2, 1)])
    '0-0 2-1'
    """
    return " ".join(f"{source}-{target}" for source, target in pairs)


def links(found: Found, shown: Shown) -> list[tuple[int, int]]:
    """(source, target) places of the words, or pieces, of one hypothesis, from 0."""
    places = found["piece_alignment" if shown.pieces else "word_alignment"]
    return [(int(source), target) for target, source in enumerate(places) if source >= 0]


def columns(number: int, found: Found, shown: Shown) -> Iterator[str]:
    """The lines of a row: one, or one a hypothesis with `n_best`; tabs between columns.

    In this order, each where it is asked for: the line's number, the translation, its score, log P,
    its tokens, the source's pieces, the translation's pieces, the alignment.
    """
    all_ = hypotheses(found, shown.n_best or 1)
    for one in all_ if all_ or shown.n_best else [_NOTHING]:
        cells = [str(number)] if shown.n_best else []
        cells.append(clean_line(_text(one["text"])))
        if shown.scores:
            cells += [_number(one["score"]), _number(one["log_prob"]), str(int(one["length"]))]
        if shown.pieces:
            cells.append(" ".join(_names(found["source_pieces"])))
            cells.append(" ".join(_names(one["pieces"])))
        if shown.alignments or shown.pieces:
            cells.append(pharaoh(links(one, shown)))
        yield "\t".join(cells)


def as_json(found: Found, shown: Shown) -> str:
    """One JSON object: `source`, `truncated`, `hypotheses`, each with all that is known of it."""
    told = {name: found[name] for name in ("source", "truncated")}
    if shown.alignments or shown.pieces:
        told["source_tokens"] = _names(found["source_pieces"])
    told["hypotheses"] = [_told(one, shown) for one in hypotheses(found, shown.n_best or 1)]
    return json.dumps(told, ensure_ascii=False, allow_nan=False)


def score_columns(found: Found, shown: Shown) -> str:
    """Of a scored pair: log P, its tokens, the score; pieces with log P each; the alignment."""
    cells = [_number(found["log_prob"]), str(int(found["length"])), _number(found["score"])]
    if shown.scores:
        log_probs = found["token_log_probs"][: int(found["length"])]
        cells += [" ".join(_names(found["pieces"])), " ".join(map(_number, log_probs))]
    if shown.alignments or shown.pieces:
        cells.append(pharaoh(links(found, shown)))
    return "\t".join(cells)


def score_as_json(found: Found, shown: Shown) -> str:
    """One JSON object of a scored pair: the texts, and all that is known of them."""
    told = {name: found[name] for name in ("source", "target", "truncated")}
    if shown.alignments or shown.pieces:
        told["source_tokens"] = _names(found["source_pieces"])
    told.update(_told(found, shown))
    return json.dumps(told, ensure_ascii=False, allow_nan=False)


_NOTHING: Found = {
    "text": b"",
    "score": 0.0,
    "log_prob": 0.0,
    "length": 0,
    "pieces": (),
    "word_alignment": (),
    "piece_alignment": (),
}


def _told(one: Found, shown: Shown) -> Found:
    told: Found = {"text": clean_line(_text(one["text"]))} if "text" in one else {}
    told.update({name: _rounded(one[name]) for name in ("score", "log_prob")})
    told["length"] = int(one["length"])
    if "pieces" in one:
        told["tokens"] = _names(one["pieces"])
        told["token_log_probs"] = list(map(_rounded, one["token_log_probs"][: told["length"]]))
    told["finished"] = bool(one["finished"])
    if shown.alignments or shown.pieces:
        told["alignment"] = links(one, shown)
    return told


def _text(value: bytes | str) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else value


def _names(pieces: Iterable[bytes]) -> list[str]:
    return [clean_line(_text(piece)) for piece in pieces if piece]


def _rounded(number: float) -> float:
    return round(float(np.float32(number)), 6)


def _number(number: float) -> str:
    return f"{float(number):.6f}"
