"""What stands in a SentencePiece `.model` file, and the same file with our special ids."""

from typing import Any, NamedTuple

from tf_transformer.config import END_ID, PAD_ID, START_ID, UNK_ID

_NAMES = {PAD_ID: "pad", UNK_ID: "unk", START_ID: "bos", END_ID: "eos"}


class Facts(NamedTuple):
    """Of a `.model` file: how it was made."""

    model_type: str  # "unigram", "bpe", "word" or "char"
    normalization: str  # the name of its rule
    has_bytes: bool  # what is outside the vocabulary becomes byte pieces
    symbols: list[str]  # user-defined ones
    usual_blanks: bool  # in front of each word, the first too


def facts(model: bytes) -> Facts:
    """What the bytes of a `.model` file say of it."""
    format_ = file_format()
    proto = format_.ModelProto.FromString(model)
    kinds, rules = format_.ModelProto.SentencePiece, proto.normalizer_spec
    return Facts(
        format_.TrainerSpec.ModelType.Name(proto.trainer_spec.model_type).lower(),
        rules.name or "unnamed",
        any(piece.type == kinds.BYTE for piece in proto.pieces),
        [piece.piece for piece in proto.pieces if piece.type == kinds.USER_DEFINED],
        rules.add_dummy_prefix
        and rules.escape_whitespaces
        and not proto.trainer_spec.treat_whitespace_as_suffix,
    )


def with_our_ids(model: bytes) -> tuple[bytes, list[int]]:
    """The model with PAD, UNK, START and END at 0 to 3, and the new id of each of its pieces.

    How text is cut depends on the pieces' scores, not on their order, so it is cut as before. A
    special piece that the model lacks (often PAD) is added; the others stay in their order.
    """
    format_ = file_format()
    proto = format_.ModelProto.FromString(model)
    spec, kinds = proto.trainer_spec, format_.ModelProto.SentencePiece
    places = {piece.piece: place for place, piece in enumerate(proto.pieces)}
    order: list[int] = []  # the old place of each of our four, or that of an added piece
    added: list[Any] = []
    for token, name in _NAMES.items():
        kind = kinds.UNKNOWN if token == UNK_ID else kinds.CONTROL
        called = getattr(spec, f"{name}_piece")
        found = [
            place
            for place, piece in enumerate(proto.pieces)
            # There is one UNKNOWN piece, whatever it is called.
            if piece.type == kind and (token == UNK_ID or piece.piece == called)
        ]
        if not found:
            while called in places:  # taken by a piece of text
                called = f"<{called}>"
            found = [places.setdefault(called, len(places))]
            added.append(kinds(piece=called, type=kind))
        order.append(found[0])
        setattr(spec, f"{name}_piece", (*proto.pieces, *added)[found[0]].piece)
        setattr(spec, f"{name}_id", token)
    if order == [PAD_ID, UNK_ID, START_ID, END_ID] and not added:
        return model, list(range(len(proto.pieces)))
    pieces = [*proto.pieces, *added]
    order += [place for place in range(len(pieces)) if place not in order]
    del proto.pieces[:]
    proto.pieces.extend(pieces[place] for place in order)
    spec.vocab_size = len(pieces)
    new_ids = {place: token for token, place in enumerate(order)}
    return proto.SerializeToString(), [new_ids[n] for n in range(len(pieces) - len(added))]


def file_format() -> Any:
    """SentencePiece's module of the format, imported late: it is made for one protobuf or newer.

    Raises:
        ImportError: the protobuf that is installed is older.
    """
    try:
        from sentencepiece import sentencepiece_model_pb2
    except Exception as error:
        raise ImportError(
            "The format of SentencePiece's files can't be imported; `pip install --upgrade "
            f"protobuf` may help: {error}"
        ) from error
    return sentencepiece_model_pb2
