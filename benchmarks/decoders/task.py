"""What every system does: sizes of the model, sources, how long the outputs are."""

from typing import NamedTuple

SIZES = {
    "tiny": dict(layers=4, hidden=128, heads=4, intermediate=256, vocabulary=8000),
    "base": dict(layers=6, hidden=512, heads=8, intermediate=2048, vocabulary=32000),
}
SOURCE_LENGTH = 25
PAD, UNKNOWN, START, END = range(4)
FIRST_WORD = 4


class Task(NamedTuple):
    """One cell of a table."""

    size: str
    beams: int
    batch: int
    length: int  # tokens of each output, exactly
    threads: int
    folder: str  # of `ours.export`

    def model(self) -> dict[str, int]:
        """The sizes."""
        return SIZES[self.size]

    def sources(self):
        """Ids (B, 25) int32 of words, the last of each row END."""
        import numpy as np

        shape = (self.batch, SOURCE_LENGTH)
        ids = np.random.default_rng(0).integers(FIRST_WORD, self.model()["vocabulary"], shape)
        ids[:, -1] = END
        return ids.astype("int32")
