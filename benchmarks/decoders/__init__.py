"""Systems that decode, each a file that imports its own library and nothing of the others.

A system has `prepare(task, **arguments)`, which gives a function of no argument: it decodes the
task's sources once and gives one list of tokens for each.
"""

from typing import NamedTuple


class System(NamedTuple):
    """Where a system is, and what it needs."""

    module: str
    libraries: tuple[str, ...]  # names that its interpreter must be able to import
    arguments: dict[str, str]  # of `prepare`


TENSORFLOW = ("tensorflow", "keras", "tensorflow_text", "sentencepiece", "tensorflow_serving")
SYSTEMS = {
    "ours": System("decoders.ours", TENSORFLOW, {}),
    "ctranslate2": System("decoders.engine", ("ctranslate2",), {"kind": "float32"}),
    "ctranslate2-int8": System("decoders.engine", ("ctranslate2",), {"kind": "int8"}),
    "marian": System("decoders.marian", ("torch", "transformers"), {}),
    "opennmt-tf": System("decoders.opennmt_tf", ("opennmt",), {}),
    "keras-hub": System("decoders.keras_hub_bart", ("keras_hub",), {}),
    "keras-hub-xla": System("decoders.keras_hub_bart", ("keras_hub",), {"compiled": "yes"}),
}
# Those that translate a file with the weights of a trained run.
LINES = {
    "ours": System("decoders.lines_ours", TENSORFLOW, {}),
    "ctranslate2": System(
        "decoders.lines_engine", ("ctranslate2", "sentencepiece"), {"kind": "float32"}
    ),
    "ctranslate2-int8": System(
        "decoders.lines_engine", ("ctranslate2", "sentencepiece"), {"kind": "int8"}
    ),
}
