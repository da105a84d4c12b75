"""SentencePiece (Kudo and Richardson 2018, arXiv 1808.06226): unigram or BPE pieces."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import sentencepiece
import tensorflow as tf
import tensorflow_text as tf_text

from tf_transformer.config import END_ID, PAD_ID, START_ID, UNK_ID
from tf_transformer.errors import InputError
from tf_transformer.tokenizers.learn_pieces import learn
from tf_transformer.tokenizers.piece_file import facts, with_our_ids
from tf_transformer.tokenizers.tokenizer import Tokenizer, valid_utf8
from tf_transformer.tokenizers.words import words_of_bytes

_log = logging.getLogger(__name__)


class SentencePieceTokenizer(Tokenizer):
    """A trained SentencePiece model, the same ids in the graph and in Python.

    What is not reversible: the `nmt_nfkc` rule normalises (ligatures, full-width letters, runs of
    blanks); blanks at the ends go, whatever the rule; "▁" (U+2581) comes back as a blank; a letter
    outside the vocabulary comes back as " ⁇ " unless the model has byte pieces.

    Args:
        model: the bytes of a `.model` file whose pad, unk, start and end ids are 0, 1, 2, 3.

    Raises:
        InputError: the bytes are no such model.
    """

    suffix = ".model"

    def __init__(self, model: bytes) -> None:
        super().__init__("sentencepiece", model)
        self.model = model
        self._python = _processor(model)
        ids = tuple(getattr(self._python, f"{name}_id")() for name in ("pad", "unk", "bos", "eos"))
        if ids != (PAD_ID, UNK_ID, START_ID, END_ID):
            raise InputError(
                "A SentencePiece model must have pad, unk, start and end at 0, 1, 2, 3. "
                f"Received: {', '.join(map(str, ids))}"
            )

    @property
    def vocabulary_size(self) -> int:
        """V, the number of pieces."""
        return self._python.vocab_size()

    @property
    def description(self) -> str:
        """Model type, byte pieces, symbols and normalisation."""
        found = facts(self.model)
        parts = [f"SentencePiece {found.model_type}", f"normalization {found.normalization}"]
        if found.has_bytes:
            parts.append("byte pieces")
        if found.symbols:
            parts.append(f"{len(found.symbols)} symbols")
        return ", ".join(parts)

    @property
    def litert_obstacle(self) -> str:
        """LiteRT has FastSentencepiece, whose ids are other ones without a word but for these."""
        found = facts(self.model)
        if found.model_type != "unigram":
            return f"its SentencePiece model is {found.model_type}, not unigram"
        if found.has_bytes:
            return "its SentencePiece model has byte pieces"
        if not found.normalization.startswith("nmt_"):
            return f"its normalization is {found.normalization}, which leaves control characters"
        if not found.usual_blanks:
            return "its SentencePiece model does not put a blank in front of each word"
        if changed := [x for x in found.symbols if not x.isascii() or x != x.lower()]:
            return f"its normalization might change the symbol {changed[0]!r}"
        return ""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of `tokenize`, in plain Python."""
        return self._python.encode(list(texts))

    def pieces(self, text: str) -> list[str]:
        """The pieces of one text; "▁" is the blank in front of a word."""
        return self._python.encode(text, out_type=str)

    def vocabulary(self) -> list[str]:
        """The piece of every id, by id."""
        return [self._python.id_to_piece(token) for token in range(self.vocabulary_size)]

    def piece_ids(self, pieces: Sequence[str]) -> list[int]:
        """The ids of what `pieces` gives; UNK for what is no piece, or a control token's name."""
        ids = [self._python.piece_to_id(piece) for piece in pieces]
        return [UNK_ID if self._python.is_control(token) else token for token in ids]

    def _to_ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._ops().tokenize(valid_utf8(texts))

    def _to_texts(self, token_ids: tf.RaggedTensor) -> tf.Tensor:
        return tf.strings.strip(self._ops().detokenize(token_ids))  # UNK has blanks around it

    def words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Strings (B,) -> the word of each token, int32 (B, None)."""
        texts = valid_utf8(texts)
        tokens, starts, limits = self._ops().tokenize_with_offsets(texts)
        # By its last byte: the blanks in front of a piece are in its span, not so behind it. A
        # letter that is normalised to several pieces has them all at one byte.
        last = tf.maximum(limits.flat_values - 1, starts.flat_values)
        words = words_of_bytes(texts)
        last = tf.clip_by_value(last, 0, tf.shape(words, tf.int64)[1] - 1)
        return tokens.with_flat_values(
            tf.gather_nd(words, tf.stack([tokens.value_rowids(), last], axis=1))
        )

    def to_pieces(self, token_ids: tf.Tensor) -> tf.Tensor:
        """int32 ids of any shape -> pieces, by the op: the graph has them once."""
        names = self._ops().id_to_string(tf.reshape(token_ids, [-1]))
        return tf.reshape(names, tf.shape(token_ids))

    def _ops(self) -> tf_text.SentencepieceTokenizer:
        # The op that holds the model is a node of each graph that uses it. An eager one, captured,
        # dies with TensorFlow's kernel cache, which `tf.random.set_seed` clears, and has to be
        # tracked for export. Unnamed nodes share one resource after reload and swap silently
        # (tensorflow/text #1304): the name is the content's. START and END are never asked for
        # here: add_bos and add_eos are state of the shared processor, and threads race for it.
        # Kept in the graph: in a dictionary here it would keep the graph alive.
        graph = tf.compat.v1.get_default_graph()
        made = getattr(graph, "_tokenizers", {})
        if self.name not in made:
            made[self.name] = tf_text.SentencepieceTokenizer(
                self.model, out_type=tf.int32, name=self.name
            )
            graph._tokenizers = made
        return made[self.name]

    @classmethod
    def from_content(cls, content: bytes) -> "SentencePieceTokenizer":
        """A tokenizer from the bytes of a `.model` file of ours."""
        return cls(content)

    @classmethod
    def from_foreign(cls, content: bytes) -> "SentencePieceTokenizer":
        """From any `.model` file: the same pieces of every text, with new ids where ours differ."""
        _processor(content)  # says what is no model
        model, _ = with_our_ids(content)
        return cls(model)

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocabulary_size: int,
        *,
        model_type: str = "unigram",
        character_coverage: float = 1.0,
        byte_fallback: bool = False,
        normalization: str = "nmt_nfkc",
        user_symbols: Sequence[str] = (),
        **options: Any,
    ) -> "SentencePieceTokenizer":
        """Learns pieces in memory; the vocabulary comes out smaller where the text has no more.

        Args:
            texts: sentences.
            vocabulary_size: V at most, the four special ids included.
            model_type: `"unigram"` or `"bpe"`.
            character_coverage: share of all letters that become pieces.
            byte_fallback: letters outside the vocabulary become bytes, not UNK.
            normalization: `"nmt_nfkc"`, `"nfkc"`, these with `"_cf"` for lower case, or
                `"identity"` for text as it is.
            user_symbols: texts that stay one piece wherever they occur, such as `"<br>"`; whoever
                types one gets its id.
            options: further arguments of `sentencepiece.SentencePieceTrainer.train`.

        Raises:
            InputError: no text, fewer ids than the text has letters, or a wrong argument.
        """
        tokenizer = cls(
            learn(
                texts,
                vocabulary_size,
                model_type=model_type,
                character_coverage=character_coverage,
                byte_fallback=byte_fallback,
                normalization_rule_name=normalization,
                user_symbols=user_symbols,
                **options,
            )
        )
        if tokenizer.vocabulary_size < vocabulary_size:
            _log.warning(
                "The text has pieces for a vocabulary of %d only, asked for were %d.",
                tokenizer.vocabulary_size,
                vocabulary_size,
            )
        return tokenizer


def _processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    try:
        if not model:  # the library would take it for "no model yet"
            raise RuntimeError("no bytes")
        return sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise InputError("These bytes are no SentencePiece model.") from error
