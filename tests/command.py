"""The command `tf-transformer` in tests: in this process, or in one of its own as users have it."""

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tf_transformer import cli

ROOT = Path(__file__).resolve().parents[1]


class Done:
    """A command that has ended."""

    def __init__(self, code: int, out: bytes, err: bytes):
        self.code = code
        self.lines = out.decode("utf-8").split("\n")[:-1]
        self.text = out.decode("utf-8")
        self.err = err.decode("utf-8")


def in_process(monkeypatch, capsysbinary) -> Callable[..., Done]:
    """`run("translate", folder, stdin=b"...")`: the command in this process."""

    def command(*arguments, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "argv", ["tf-transformer", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsysbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
            sys.exit(0)
        return Done(ended.value.code or 0, *capsysbinary.readouterr())

    return command


def process(*arguments, options=(), **keywords) -> subprocess.Popen:
    """The command in a process of its own, as a user has it: TensorFlow's noise is not off."""
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    environment.pop("COLUMNS", None)
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.Popen(
        [sys.executable, *options, "-m", "tf_transformer", *map(str, arguments)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **keywords,
    )


def finished(started: subprocess.Popen, stdin: bytes = b"") -> Done:
    out, err = started.communicate(stdin, timeout=300)
    return Done(started.returncode, out, err)


def assert_refused(done: Done, message: str) -> None:
    """One sentence on stderr, nothing on stdout, exit status 2."""
    assert done.code == 2, done.err
    assert re.search(message, done.err), done.err
    assert done.err.startswith("error: ") and done.err.count("\n") == 1
    assert done.text == ""
