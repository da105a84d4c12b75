"""The tokenizers of a run: of a run that goes on, made elsewhere, or learnt from its corpus."""

import dataclasses
from pathlib import Path

from tf_transformer.tokenizers import TOKENIZERS, Tokenizer

from ..settings.tokenizer import TokenizerSettings
from .corpus import Corpus


@dataclasses.dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of both sides; one object twice where they share."""

    source: Tokenizer
    target: Tokenizer

    @classmethod
    def load(cls, run: Path, settings: TokenizerSettings) -> "TokenizerPair":
        """Those in a run directory; InputError when a file is missing or broken."""
        kind = TOKENIZERS[settings.type]
        found = [kind.load(run / f"{side}{kind.suffix}") for side in _sides(settings)]
        return cls(found[0], found[-1])

    def files(self) -> dict[str, Tokenizer]:
        """The tokenizers by the names of their files in a run directory."""
        files = {f"source{self.source.suffix}": self.source}
        if self.target is not self.source:
            files[f"target{self.target.suffix}"] = self.target
        return files


def tokenizers_of(
    settings: TokenizerSettings, corpus: Corpus, run: Path | None = None
) -> TokenizerPair:
    """The tokenizers that a recipe asks for.

    Args:
        settings: the recipe's section.
        corpus: what to learn from, where they are learnt.
        run: a run directory that goes on: its own tokenizers are taken.

    Raises:
        InputError: a file is missing or broken, or the text gives no such vocabulary.
    """
    if run is not None:
        return TokenizerPair.load(run, settings)
    kind = TOKENIZERS[settings.type]
    if settings.model is not None:
        found = [kind.adopt(path) for path in settings.model]
    elif settings.shared:
        found = [kind.train([*corpus.source, *corpus.target], **settings.options())]
    else:
        options = settings.options()
        found = [kind.train(text, **options) for text in (corpus.source, corpus.target)]
    return TokenizerPair(found[0], found[-1])


def _sides(settings: TokenizerSettings) -> list[str]:
    return ["source"] if settings.shared else ["source", "target"]
