"""`provenance.json` of a run: where its weights come from, for whoever was not there."""

import json
import os
import platform
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tensorflow as tf

import tf_transformer
from tf_transformer.info import layer_rows
from tf_transformer.translator import Translator

from ..batches.feed import Feed
from ..corpora.corpus import Corpus

PROVENANCE_FILE = "provenance.json"

_PACKAGES = ("tensorflow", "keras", "tensorflow-text", "sentencepiece", "numpy", "sacrebleu")


def record_start(
    run: Path,
    corpora: dict[str, Corpus],
    feeds: dict[str, Feed],
    translator: Translator,
    step: int,
) -> None:
    """A process begins to train.

    Args:
        run: the run directory.
        corpora: of "train" and "valid".
        feeds: the same, as updates.
        translator: over the model in training.
        step: the update it goes on from.
    """
    content = read_provenance(run)
    content["corpora"] = {name: _corpus(corpora[name], feeds[name]) for name in corpora}
    content["layers"] = layer_rows(translator.model)
    content["tokenizers"] = {
        side: {"kind": type(tokenizer).__name__, "ids": tokenizer.vocabulary_size}
        for side, tokenizer in (
            ("source", translator.tokenizers.source),
            ("target", translator.tokenizers.target),
        )
    }
    start = {"at": _now(), "update": step, "versions": _versions(), "machine": _machine()}
    content["starts"] = [*content.get("starts", []), start]
    _write(run, content)


def record_final_weights(run: Path, files: Sequence[Path], step: int) -> None:
    """`model.weights.h5` is the mean of these files, made after update `step`."""
    final = {"at": _now(), "update": step, "files": [file.name for file in files]}
    _write(run, {**read_provenance(run), "final_weights": final})


def record_average(run: Path, files: Sequence[Path]) -> None:
    """`tf-transformer average --in-place` has made `model.weights.h5` the mean of these files.

    The run's own checkpoints are named as `record_final_weights` names them, others by their path.
    """
    content = read_provenance(run)
    own = (run / "checkpoints").resolve()
    names = [file.name if file.resolve().parent == own else str(file.resolve()) for file in files]
    before = content.get("final_weights", {})
    final = {**before, "at": _now(), "files": names, "by": "tf-transformer average"}
    _write(run, {**content, "final_weights": final})


def read_provenance(run: Path) -> dict[str, Any]:
    """What was recorded; nothing where the file is missing or broken."""
    try:
        content = json.loads((run / PROVENANCE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(run: Path, content: dict[str, Any]) -> None:
    beside = run / f"{PROVENANCE_FILE}.writing"
    beside.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(beside, run / PROVENANCE_FILE)


def _corpus(corpus: Corpus, feed: Feed) -> dict[str, Any]:
    batches = feed.batches
    return {
        "name": corpus.name,
        "pairs": len(corpus),
        "used": len(batches.kept),
        "left_out": {**corpus.dropped, **batches.dropped},
        "repaired": corpus.repaired,
        "target_tokens": batches.target_tokens,
        "batches": len(batches),
    }


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    found = {"tf_transformer": tf_transformer.__version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # an extra, or a build under another name
            continue
    return found


def _machine() -> dict[str, str]:
    devices = tf.config.list_physical_devices("GPU")
    details = [tf.config.experimental.get_device_details(device) for device in devices]
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "GPUs": ", ".join(each.get("device_name", "GPU") for each in details) or "none",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
