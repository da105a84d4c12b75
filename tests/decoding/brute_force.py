"""Search without TensorFlow: toy languages, all their sequences, and a beam search without tricks.

A search that agrees with this file is right by counting, not by its own word. NumPy only, float64.
"""

import math
from collections.abc import Callable
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


class Task(NamedTuple):
    """What is asked of one row."""

    max_length: int
    alpha: float = 0.0
    kind: str = "gnmt"  # of the length penalty
    rules: tuple[Callable[..., np.ndarray], ...] = ()
    cover: Callable[[tuple[int, ...]], float] | None = None

    def weigh(self, log_probs: np.ndarray, tokens: tuple[int, ...]) -> np.ndarray:
        """log P (V,) of what follows on `tokens`, as the rules leave it."""
        weights = log_probs
        for rule in self.rules:
            weights = rule(weights, tokens, log_probs, self.max_length)
        return weights

    def score(self, weighed: float, tokens: tuple[int, ...]) -> float:
        """What hypotheses are ranked by."""
        score = weighed / penalty(len(tokens), self.alpha, self.kind)
        return score + self.cover(tokens) if self.cover else score

    def judge(self, one: tuple[float, float, tuple[int, ...]], finished: bool) -> "Hypothesis":
        """(log P, log P as weighed, tokens) with its score."""
        total, weighed, tokens = one
        return Hypothesis(tokens, float(total), self.score(float(weighed), tokens), finished)


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


def penalty(length: int, alpha: float, kind: str = "gnmt") -> float:
    """What log P is divided by; Wu et al. 2016, equation 14, for `gnmt`."""
    return {"gnmt": ((5.0 + length) / 6.0) ** alpha, "power": length**alpha, "none": 1.0}[kind]


def follow(language: Language, tokens: tuple[int, ...], task: Task) -> tuple[list, list]:
    """log P of each token of one sequence in the one row of `language`, and what rules make of it.

    What rules make of it stands second; it is the same where `task` has none.
    """
    history, own, weighed = [language.ids.start, *tokens], [], []
    for place, token in enumerate(tokens):
        gains = language.log_probs(np.array([history[: place + 1]]))[0, 0]
        own.append(float(gains[token]))
        weighed.append(float(task.weigh(gains, tokens[:place])[token]))
    return own, weighed


def token_log_probs(language: Language, tokens: tuple[int, ...]) -> list[float]:
    """log P of each token of one sequence in the one row of `language`."""
    return follow(language, tokens, Task(len(tokens)))[0]


def log_prob(language: Language, tokens: tuple[int, ...]) -> float:
    """log P of one sequence in the one row of `language`."""
    return sum(token_log_probs(language, tokens))


def all_hypotheses(language: Language, task: Task) -> list[Hypothesis]:
    """Every possible hypothesis of the one row: the finished ones, best first, then the open."""
    found: list[Hypothesis] = []
    layer: list[tuple[float, float, tuple[int, ...]]] = [(0.0, 0.0, ())]
    for length in range(1, task.max_length + 1):
        histories = np.array([[language.ids.start, *tokens] for _, _, tokens in layer])
        if not len(histories):
            break
        gains, longer = language.log_probs(histories)[0], []
        for own, (total, weighed, tokens) in zip(gains, layer, strict=True):
            weights = task.weigh(own, tokens)
            for token in [*language.words(), language.ids.end]:
                if weights[token] > -math.inf:
                    one = total + own[token], weighed + weights[token], (*tokens, token)
                    if token == language.ids.end:
                        found.append(task.judge(one, True))
                    elif length == task.max_length:
                        found.append(task.judge(one, False))
                    else:
                        longer.append(one)
        layer = longer
    return sorted(found, key=lambda one: (not one.finished, -one.score))


def patient_beam_search(
    language: Language, num_beams: int, task: Task
) -> tuple[list[Hypothesis], bool]:
    """The K best of the one row of `language`; it never stops before the limit.

    And whether nothing was lost on the way: then they are the K best of all there are.
    """
    live: list[tuple[float, float, tuple[int, ...]]] = [(0.0, 0.0, ())]
    pool: list[Hypothesis] = []
    all_seen = True
    for length in range(1, task.max_length + 1):
        found = []
        for total, weighed, tokens in live:
            own = language.log_probs(np.array([[language.ids.start, *tokens]]))[0, 0]
            weights = task.weigh(own, tokens)
            for token in sorted([*language.words(), language.ids.end]):
                if weights[token] > -math.inf:
                    new = total + float(own[token]), weighed + float(weights[token])
                    found.append((*new, (*tokens, token)))
        # One beam is greedy search: it ends where the best continuation is END.
        room = 2 * num_beams if num_beams > 1 else 1
        all_seen &= len(found) <= room
        found = sorted(found, key=lambda one: -one[1])[:room]
        pool += [task.judge(one, True) for one in found if one[2][-1] == language.ids.end]
        pool = sorted(pool, key=lambda one: -one.score)[:num_beams]
        live = [one for one in found if one[2][-1] != language.ids.end]
        # Of what is equally long the K best by log P are the K best by score.
        all_seen &= len(live) <= num_beams or (length == task.max_length and not task.cover)
        live = live[:num_beams]
    still_open = [task.judge(one, False) for one in live]
    still_open = sorted(still_open, key=lambda one: -one.score)
    return [*pool, *still_open][:num_beams], all_seen
