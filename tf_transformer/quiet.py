"""TensorFlow loaded without its start-up chatter, for the command line."""

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


def load_tensorflow(op_threads: int | None = None, start: bool = True) -> None:
    """Imports TensorFlow and finds the devices; what its C++ prints meanwhile is not shown.

    With TF_CPP_MIN_LOG_LEVEL set by the user everything is shown.

    Args:
        op_threads: threads of one operation; default one a core. Nothing if TensorFlow is at work
            already.
        start: begin to use it too; after that neither devices can be divided nor workers joined.
    """
    if op_threads is not None:
        # Read when the runtime starts; the user's own choice stays.
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(op_threads))
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        import tensorflow  # noqa: F401

        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # what matters is raised as well
    with _stderr_aside():
        import tensorflow as tf

        tf.config.list_physical_devices()
        if start:
            tf.constant(0)  # the first op starts the runtime, which talks as well
    tf.get_logger().setLevel("ERROR")
    warnings.filterwarnings("ignore", module="keras")
    from absl import logging as absl_logging

    absl_logging.set_verbosity(absl_logging.ERROR)


@contextmanager
def _stderr_aside() -> Iterator[None]:
    # C++ writes to the descriptor itself; on an error what it wrote is given back.
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as aside:
        os.dup2(aside.fileno(), 2)
        try:
            yield
        except BaseException:
            aside.seek(0)
            os.write(kept, aside.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
