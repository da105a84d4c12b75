"""Search without TensorFlow: toy languages, all their sequences, and a beam search without tricks.

A search that agrees with this file is right by counting, not by its own word. NumPy only, float64.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

CONTEXTS = 11  # of a language that looks at everything before
KINDS = ("last token", "position", "history")


class Ids(NamedTuple):
    """The special ids; every other id is a word, UNK too."""

    pad: int = 0
    start: int = 2
    end: int = 3


IDS = Ids()


class Language(NamedTuple):
    """B toy languages: which token comes next after what.

    `logits` is (B, P, C, V): row, position (P is 1 where it does not matter), context, next token.
    The context is the last token, or for kind "history" a number that depends on all tokens.
    """

    kind: str
    logits: np.ndarray
    ids: Ids

    def log_probs(self, histories: np.ndarray) -> np.ndarray:
        """Histories (N, t) with START in front -> log P of the next token (B, N, V)."""
        place = (histories.shape[1] - 1) % self.logits.shape[1]
        logits = self.logits[:, place, self.context(histories)].astype("float64")
        highest = logits.max(axis=-1, keepdims=True)
        return logits - highest - np.log(np.exp(logits - highest).sum(axis=-1, keepdims=True))

    def context(self, histories: np.ndarray) -> np.ndarray:
        """(N, t) -> (N,)."""
        if self.kind != "history":
            return histories[:, -1]
        return (histories * np.arange(1, histories.shape[1] + 1)).sum(axis=1) % CONTEXTS

    def words(self) -> list[int]:
        """Every id that may stand inside a hypothesis."""
        return [token for token in range(self.logits.shape[-1]) if token not in self.ids]

    def row(self, row: int) -> "Language":
        """One of the B languages."""
        return self._replace(logits=self.logits[row : row + 1])


class Hypothesis(NamedTuple):
    """A sequence without START, and what a search has to say of it."""

    tokens: tuple[int, ...]
    log_prob: float
    score: float
    finished: bool


def draw(kind: str, rows: int, vocabulary_size: int, seed: int, ids: Ids = IDS) -> Language:
    """Random languages: flat and steep, with an END that is likely, rare or impossible."""
    random = np.random.default_rng(seed)
    contexts = CONTEXTS if kind == "history" else vocabulary_size
    places = 12 if kind == "position" else 1
    logits = random.normal(size=(rows, places, contexts, vocabulary_size))
    logits *= random.choice([0.3, 1.0, 3.0], size=(rows, 1, 1, 1))
    logits[..., ids.end] += random.choice([-4.0, -1.0, 0.0, 2.0], size=(rows, 1, 1))
    # What may never be chosen tempts, and takes its share of the probability.
    tempting = random.random((rows, places, contexts)) < 0.3
    logits[..., ids.pad] += np.where(tempting, 4.0, 0.0)
    logits[..., ids.start] += np.where(tempting, 3.0, 0.0)
    impossible = random.random(logits.shape) < random.choice([0.0, 0.35], size=(rows, 1, 1, 1))
    impossible[..., ids.pad] = False  # some mass is left
    return Language(kind, np.where(impossible, -np.inf, logits).astype("float32"), ids)


def penalty(length: int, alpha: float) -> float:
    """Wu et al. 2016, equation 14."""
    return ((5.0 + length) / 6.0) ** alpha


def token_log_probs(language: Language, tokens: tuple[int, ...]) -> list[float]:
    """log P of each token of one sequence in the one row of `language`."""
    history = [language.ids.start, *tokens]
    return [
        float(language.log_probs(np.array([history[: place + 1]]))[0, 0, token])
        for place, token in enumerate(tokens)
    ]


def log_prob(language: Language, tokens: tuple[int, ...]) -> float:
    """log P of one sequence in the one row of `language`."""
    return sum(token_log_probs(language, tokens))


def all_hypotheses(language: Language, max_length: int, alpha: float) -> list[list[Hypothesis]]:
    """Of each row every possible hypothesis: the finished ones, best first, then the open ones."""
    found: list[list[Hypothesis]] = [[] for _ in language.logits]
    for tokens, log_probs in _sequences(language, max_length):
        finished = tokens[-1] == language.ids.end
        for row, total in enumerate(log_probs):
            if total > -math.inf:
                score = float(total) / penalty(len(tokens), alpha)
                found[row].append(Hypothesis(tokens, float(total), score, finished))
    return [sorted(row, key=lambda one: (not one.finished, -one.score)) for row in found]


def _sequences(language: Language, max_length: int) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    histories = np.full((1, 1), language.ids.start)
    totals = np.zeros((len(language.logits), 1))  # (B, N)
    words = language.words()
    for length in range(1, max_length + 1):
        totals = totals[:, :, None] + language.log_probs(histories)
        for place, history in enumerate(histories):
            yield (*history[1:].tolist(), language.ids.end), totals[:, place, language.ids.end]
        longer = [[*history, word] for history in histories.tolist() for word in words]
        histories = np.array(longer).reshape(-1, length + 1)
        totals = totals[:, :, words].reshape(len(totals), -1)
    for place, history in enumerate(histories):
        yield tuple(history[1:].tolist()), totals[:, place]


def is_exhaustive(language: Language, num_beams: int, max_length: int) -> bool:
    """Whether 2K candidates and K open hypotheses are never too few for all there are."""
    words = len(language.words())
    open_before = words ** (max_length - 1)
    return open_before <= num_beams and open_before * (words + 1) <= 2 * num_beams


def patient_beam_search(
    language: Language, num_beams: int, max_length: int, alpha: float
) -> list[Hypothesis]:
    """The K best of the one row of `language`; it never stops before the limit."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    pool: list[Hypothesis] = []
    for length in range(1, max_length + 1):
        found = []
        for total, tokens in live:
            gains = language.log_probs(np.array([[language.ids.start, *tokens]]))[0, 0]
            for token in sorted([*language.words(), language.ids.end]):
                if gains[token] > -math.inf:
                    found.append((total + float(gains[token]), (*tokens, token)))
        found = sorted(found, key=lambda one: -one[0])[: 2 * num_beams]
        for total, tokens in found:
            if tokens[-1] == language.ids.end:
                pool.append(Hypothesis(tokens, total, total / penalty(length, alpha), True))
        pool = sorted(pool, key=lambda one: -one.score)[:num_beams]
        live = [one for one in found if one[1][-1] != language.ids.end][:num_beams]
    still_open = [
        Hypothesis(tokens, total, total / penalty(max_length, alpha), False)
        for total, tokens in live
    ]
    return [*pool, *still_open][:num_beams]
