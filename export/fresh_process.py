"""The proof that an export stands alone: another process asks it, with TensorFlow and no more."""

import json
import os
import subprocess
import sys
from pathlib import Path

from .result import ExportError

# What any user of the SavedModel would write.
_PROGRAM = """
import json, sys
import tensorflow as tf
import tensorflow_text

translate = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
lines = json.load(sys.stdin)
found = []
for start in range(0, len(lines), 64):
    text = tf.constant(lines[start : start + 64])
    found += [line.decode("utf-8") for line in translate(text=text)["text"].numpy()]
ours = [name for name in sys.modules if name.split(".")[0] == "tf_transformer"]
assert not ours, f"this was no proof: {ours} were imported"
json.dump(found, sys.stdout)
"""


def answer_in_fresh_process(saved_model: str | os.PathLike[str], lines: list[str]) -> list[str]:
    """The translations of `lines` by a Python that imports only TensorFlow and TensorFlow Text.

    Args:
        saved_model: a version folder.
        lines: any texts.

    Raises:
        ExportError: the process failed.
    """
    folder = Path(saved_model).absolute()
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(folder)],
        input=json.dumps(lines),
        # Elsewhere: where it starts is where it would import from.
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise ExportError(f"{saved_model} does not answer in a fresh process: {reason}")
    return json.loads(done.stdout)
