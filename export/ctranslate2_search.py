"""A translator's search in the words of CTranslate2, for as far as it has them."""

from typing import Any

from tf_transformer.errors import InputError
from tf_transformer.options import DecodingOptions
from tf_transformer.translator import Translator

# What forbids a token. CTranslate2 normalises again what is left; that changes no comparison of
# tokens after one hypothesis, but it does change those of one hypothesis with another.
_RULES = {"min_length": 0, "no_repeat_ngram_size": 0, "suppress_unk": False, "suppressed_ids": ()}


def search_arguments(translator: Translator) -> dict[str, Any]:
    """The arguments of `ctranslate2.Translator.translate_batch` for the translator's search.

    All that it has with the same meaning. What is left to who asks: an output here may have so
    many tokens as its source allows, there all of a batch have one `max_decoding_length`; and
    `ctranslate2.set_random_seed` sets a seed, of other draws. Beam search there ends after the
    first K hypotheses, here when nothing can be better any more; where alpha is 0 that is almost
    always the same hypothesis. With another alpha the results have END as their last token, since
    it counts in their length.

    Raises:
        InputError: CTranslate2 has another meaning for an option, or none; the message names it.
    """
    options = translator.options
    several = options.search != "greedy" and options.num_beams > 1  # that are compared by score
    _refuse(options, several)
    names = translator.tokenizers.target.vocabulary()
    alpha = options.alpha if several and options.length_penalty == "power" else 0
    arguments = {
        "beam_size": options.num_beams if options.search == "beam" else 1,
        "length_penalty": alpha,
        "return_end_token": bool(alpha),
        "max_input_length": options.max_source_length,
        "max_decoding_length": options.max_target_length,
        "min_decoding_length": max(options.min_length - 1, 0),  # END does not count there
        "no_repeat_ngram_size": options.no_repeat_ngram_size,
        "disable_unk": options.suppress_unk,
        "suppress_sequences": [[names[i]] for i in options.suppressed_ids if i < len(names)],
    }
    if options.search == "sampling":
        arguments |= {
            "num_hypotheses": options.num_beams,
            "sampling_topk": min(options.top_k, len(names)),
            "sampling_topp": options.top_p,
            "sampling_temperature": options.temperature,
        }
    return arguments


def _refuse(options: DecodingOptions, several: bool) -> None:
    if options.search == "diverse":
        raise InputError("CTranslate2 has no diverse search. Received: search='diverse'")
    if several and options.length_penalty == "gnmt" and options.alpha:
        raise InputError(
            'CTranslate2 has no length penalty `gnmt`; take `length_penalty` "power" or '
            f"`alpha` 0. Received: length_penalty='gnmt', alpha={options.alpha}"
        )
    if several and options.coverage_penalty:
        raise InputError(
            "CTranslate2 has no `coverage_penalty` for hypotheses after the first that end. "
            f"Received: coverage_penalty={options.coverage_penalty}"
        )
    if options.repetition_penalty != 1:
        raise InputError(
            "CTranslate2 weighs logits by a `repetition_penalty`, not log-probabilities. "
            f"Received: repetition_penalty={options.repetition_penalty}"
        )
    if options.end_at_limit:
        raise InputError(
            "CTranslate2 does not make an output end at its limit. Received: end_at_limit=True"
        )
    for name, none in _RULES.items():
        if several and (value := getattr(options, name)) != none:
            raise InputError(
                f"With more than one hypothesis CTranslate2 scores otherwise what `{name}` "
                f"leaves; take greedy search. Received: {name}={value!r}, "
                f"num_beams={options.num_beams}"
            )
