"""The same file through CTranslate2 with the run's weights and its SentencePiece models."""

import json
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import sentencepiece


def prepare(
    run: str, folder: str, texts: list[str], beams: int, threads: int, batch_tokens: int, kind: str
) -> Callable[[], tuple[list[str], int]]:
    """Gives the translations and their tokens, END counted; as many workers as threads."""
    exported = Path(folder) / kind
    model = ctranslate2.Translator(
        str(exported), compute_type=kind, inter_threads=threads, intra_threads=1
    )
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(exported / f"{side}.model"))
        for side in ("source", "target")
    )
    extra = json.loads((exported / "metadata.json").read_text())["extra_length"]

    def translate() -> tuple[list[str], int]:
        pieces = source.encode(texts, out_type=str)
        found = model.translate_batch(
            pieces,
            max_batch_size=batch_tokens,
            batch_type="tokens",
            beam_size=beams,
            length_penalty=0.0,
            # Of the longest line: it has one limit for all.
            max_decoding_length=max(map(len, pieces)) + 1 + extra,
        )
        best = [one.hypotheses[0] for one in found]
        return target.decode(best), sum(len(one) + 1 for one in best)

    return translate
