"""What an exported model can be asked. A new signature is one function beside and one line below.

What holds for all of them, and is checked before an export gets its number: a server joins the
requests of strangers in one batch, so every tensor is dense with the batch in front, none is a
scalar, no width depends on the neighbours, and no value of one row can fail or change another. REST
takes and gives plain JSON: text is valid UTF-8, no name ends in `_bytes`, no number is infinite.

Letters: B rows, K beams, S = `max_source_length`, T = S + `extra_length`, L any width.
"""

from collections.abc import Callable, Iterable

import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.translator import Translator

from .id_endpoints import detokenize, generate_ids, source_length, tokenize
from .parts import Endpoint, Parts, Tensors
from .text_endpoints import (
    score,
    translate,
    translate_n_best,
    translate_with_alignments,
    translate_with_options,
)

# The first of those exported is `serving_default` too.
SIGNATURES: dict[str, Callable[[Parts], Endpoint]] = {
    "translate": translate,
    "translate_n_best": translate_n_best,
    "translate_with_alignments": translate_with_alignments,
    "translate_with_options": translate_with_options,
    "generate_ids": generate_ids,
    "score": score,
    "tokenize": tokenize,
    "detokenize": detokenize,
    "source_length": source_length,
}


def make_endpoints(
    translator: Translator, names: Iterable[str] | None = None
) -> dict[str, Endpoint]:
    """The endpoints of `names`, by default of all SIGNATURES, `translate` first.

    Raises:
        InputError: there is no such signature, or `translate` is left out.
    """
    chosen = list(SIGNATURES) if names is None else list(names)
    unknown = [name for name in chosen if name not in SIGNATURES]
    if unknown:
        raise InputError(
            f"`signatures` must be names of {', '.join(SIGNATURES)}. Received: {unknown[0]!r}"
        )
    if "translate" not in chosen:
        raise InputError(
            "`signatures` must have translate, which is serving_default. "
            f"Received: {', '.join(chosen)}"
        )
    parts = Parts(translator)
    return {name: make(parts) for name, make in SIGNATURES.items() if name in chosen}


def make_functions(endpoints: dict[str, Endpoint]) -> dict[str, Callable[..., Tensors]]:
    """What each signature calls, `serving_default` too, as functions of TensorFlow."""
    functions: dict[str, Callable[..., Tensors]] = {
        name: tf.function(endpoint.answer, endpoint.inputs, autograph=False)
        for name, endpoint in endpoints.items()
    }
    return {"serving_default": functions["translate"], **functions}
