"""CTranslate2 with our exporter's model: the same weights."""

from collections.abc import Callable

import ctranslate2

from decoders.task import Task


def prepare(task: Task, kind: str) -> Callable[[], list]:
    """See the folder; `kind` is a compute type, of which an export is there."""
    model = ctranslate2.Translator(
        f"{task.folder}/{kind}", compute_type=kind, intra_threads=task.threads, inter_threads=1
    )
    rows = [[f"w{i}" for i in row[:-1]] for row in task.sources()]  # it adds END itself
    settings = dict(beam_size=task.beams, length_penalty=0.0, max_decoding_length=task.length)
    return lambda: [found.hypotheses[0] for found in model.translate_batch(rows, **settings)]
