"""Translator: text in, text out, with the tokenizers and the search in one TensorFlow graph."""

import dataclasses
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tf_transformer.bulk import translate_in_batches
from tf_transformer.config import END_ID, TransformerConfig
from tf_transformer.decoding import SEARCHES, BeamSearch, Search, SearchResult
from tf_transformer.errors import InputError
from tf_transformer.layers import padding_mask
from tf_transformer.model import build_transformer
from tf_transformer.tokenizers import TOKENIZERS, Tokenizer

CONFIG_FILE, TRANSLATOR_FILE, WEIGHTS_FILE = "model.json", "translator.json", "model.weights.h5"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingOptions:
    """How a translator searches.

    Args:
        search: a name of SEARCHES, `"beam"` or `"greedy"`.
        num_beams: K of beam search.
        alpha: exponent of the length penalty.
        max_source_length: sources are cut at this many tokens, END counted.
        extra_length: an output has at most as many tokens as its source and these more
            (50 in section 6.1).
    """

    search: str = "beam"
    num_beams: int = 4
    alpha: float = 0.6
    max_source_length: int = 512
    extra_length: int = 50

    def __post_init__(self) -> None:
        if self.search not in SEARCHES:
            raise InputError(
                f"`search` must be one of {', '.join(SEARCHES)}. Received: search={self.search!r}"
            )
        for name, least in (("num_beams", 1), ("max_source_length", 2), ("extra_length", 1)):
            if getattr(self, name) < least:
                raise InputError(
                    f"`{name}` must be at least {least}. Received: {name}={getattr(self, name)}"
                )

    def make(self) -> Search:
        """The search itself."""
        if self.search == "beam":
            return BeamSearch(self.num_beams, self.alpha)
        return SEARCHES[self.search](alpha=self.alpha)


class Translator(tf.Module):
    """A trained model with its tokenizers and a search.

    In Python it maps a list of strings to a list of strings; `translate` is the same as a
    TensorFlow function, which is what export takes.

    Args:
        model: from `build_transformer` or a `.keras` file of one.
        source_tokenizer: of the text that comes in.
        target_tokenizer: of the text that goes out; the same object where they share.
        options: how to search.

    Raises:
        InputError: a tokenizer's vocabulary is not the model's.
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        options: DecodingOptions | None = None,
    ) -> None:
        super().__init__(name="translator")
        self.model = model
        self.tokenizers = tf.Module(name="tokenizers")  # what an export has to track
        self.tokenizers.source = source_tokenizer
        self.tokenizers.target = target_tokenizer
        self.options = options or DecodingOptions()
        names = {layer.name for layer in model.layers}
        shared = "embedding" in names
        self._encoder_embedding = model.get_layer("embedding" if shared else "encoder_embedding")
        self._decoder_embedding = model.get_layer("embedding" if shared else "decoder_embedding")
        for side, tokenizer, embedding in (
            ("source", source_tokenizer, self._encoder_embedding),
            ("target", target_tokenizer, self._decoder_embedding),
        ):
            if tokenizer.vocabulary_size != embedding.vocabulary_size:
                raise InputError(
                    f"The {side} tokenizer and the model are of different vocabularies: "
                    f"{tokenizer.vocabulary_size} and {embedding.vocabulary_size} ids."
                )
        self._search = self.options.make()

    def with_options(self, **changes: Any) -> "Translator":
        """A translator over the same weights that searches another way."""
        options = dataclasses.replace(self.options, **changes)
        return Translator(self.model, self.tokenizers.source, self.tokenizers.target, options)

    def __call__(self, texts: Iterable[str]) -> list[str]:
        """Translates any number of texts, in batches of like length; the order stays."""
        return translate_in_batches(self.translate, texts)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Strings (B,) -> `text` (B,) valid UTF-8 and `score` (B,) float32.

        The score is log P / ((5 + n) / 6)^alpha of the best hypothesis. A text without a single
        token gives an empty text and score 0. Each row is as if it were alone.
        """
        token_ids, lengths = self.source_ids(text)
        is_empty = lengths <= 1
        found = self.generate(token_ids, tf.where(is_empty, 1, lengths + self.options.extra_length))
        best = self.tokenizers.target.detokenize(found.token_ids[:, 0])
        return {
            "text": tf.where(is_empty, "", best),
            "score": tf.where(is_empty, 0.0, found.scores[:, 0]),
        }

    def source_ids(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Strings (B,) -> ids with END (B, S) and lengths with END (B,)."""
        token_ids = self.tokenizers.source.tokenize(text)[:, : self.options.max_source_length - 1]
        end = tf.fill([token_ids.nrows(tf.int32), 1], END_ID)
        token_ids = tf.concat([token_ids, tf.RaggedTensor.from_tensor(end)], axis=1)
        return token_ids.to_tensor(), tf.cast(token_ids.row_lengths(), tf.int32)

    def generate(self, encoder_token_ids: tf.Tensor, max_lengths: tf.Tensor) -> SearchResult:
        """Ids with END (B, S) and most output tokens (B,) -> what the search found."""
        beams = self._search.num_beams
        embedding, decoder = self._decoder_embedding, self.model.get_layer("decoder")
        mask = padding_mask(encoder_token_ids)
        encoder_output = self.model.get_layer("encoder")(
            self._encoder_embedding.embed(encoder_token_ids), padding_mask=mask, training=False
        )
        source = decoder.start(encoder_output, mask)
        kernel = embedding.output_kernel()

        def step(token_ids: tf.Tensor, cache: Any, index: tf.Tensor) -> tuple[tf.Tensor, Any]:
            x = embedding.embed(tf.reshape(token_ids, [-1, beams]))  # (B, K, D)
            x, cache, _ = decoder.step(x, cache, index, source)
            logits = embedding.logits(tf.reshape(x, [-1, x.shape[-1]]), kernel)  # (R, V)
            return logits, cache

        rows = tf.shape(encoder_token_ids)[0] * beams
        return self._search(step, decoder.empty_cache(rows), max_lengths)

    def save(self, directory: str | os.PathLike[str], config: TransformerConfig) -> None:
        """Writes all that `load` reads; each file is written beside and renamed."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        config.to_json(directory / CONFIG_FILE)
        sides = {"source": self.tokenizers.source, "target": self.tokenizers.target}
        if sides["source"] is sides["target"]:
            del sides["target"]
        names = {cls: name for name, cls in TOKENIZERS.items()}
        written = {}
        for side, tokenizer in sides.items():
            file = side + tokenizer.suffix
            tokenizer.save(directory / file)
            written[side] = {"type": names[type(tokenizer)], "file": file}
        save_weights(self.model, directory)
        manifest = {"tokenizers": written, "decoding": dataclasses.asdict(self.options)}
        beside = directory / f"{TRANSLATOR_FILE}.writing"
        beside.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        os.replace(beside, directory / TRANSLATOR_FILE)  # last: its presence means complete

    @classmethod
    def load(cls, directory: str | os.PathLike[str], **changes: Any) -> "Translator":
        """A translator from a run directory, in float32.

        Args:
            directory: what `save` or training wrote.
            changes: fields of `DecodingOptions` to replace, such as `num_beams=1`.

        Raises:
            InputError: not a run directory, not finished, or its parts do not fit together.
        """
        directory = Path(directory)
        for file in (TRANSLATOR_FILE, CONFIG_FILE, WEIGHTS_FILE):
            if not (directory / file).is_file():
                raise InputError(
                    f"{directory} is not a run directory with a trained model: {file} is missing."
                )
        config = TransformerConfig.from_json(directory / CONFIG_FILE)
        manifest = _read_manifest(directory / TRANSLATOR_FILE)
        tokenizers = {
            side: TOKENIZERS[entry["type"]].load(directory / entry["file"])
            for side, entry in manifest["tokenizers"].items()
        }
        source = tokenizers["source"]
        # Under half precision the cached steps would skip Keras's casts: decode in float32.
        policy = keras.config.dtype_policy()
        keras.config.set_dtype_policy("float32")
        try:
            model = build_transformer(config)
        finally:
            keras.config.set_dtype_policy(policy)
        options = DecodingOptions(**{**manifest["decoding"], **changes})
        translator = cls(model, source, tokenizers.get("target", source), options)
        load_weights(model, directory)
        return translator


def save_weights(model: keras.Model, directory: str | os.PathLike[str]) -> None:
    """Writes the model's weights into a run directory, beside and renamed."""
    beside = Path(directory) / f"writing.{WEIGHTS_FILE}"
    model.save_weights(beside)
    os.replace(beside, Path(directory) / WEIGHTS_FILE)


def load_weights(model: keras.Model, directory: str | os.PathLike[str]) -> None:
    """Reads them back; InputError when the file is broken or of another model."""
    path = Path(directory) / WEIGHTS_FILE
    try:
        model.load_weights(path)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{path} does not hold the weights of this model: {reason}") from error


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        unknown = {entry["type"] for entry in manifest["tokenizers"].values()} - set(TOKENIZERS)
        if unknown:
            raise InputError(f"{path} names an unknown tokenizer: {', '.join(sorted(unknown))}")
        manifest["tokenizers"]["source"], manifest["decoding"]
        return manifest
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is broken: {error!r}") from error
