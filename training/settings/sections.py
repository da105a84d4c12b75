"""The sections of a recipe: every key with its type, rule and default.

What a key means is written once, in recipes/*.toml.
"""

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import pydantic
from pydantic import Field, model_validator

from tf_transformer.config import PRESETS, TransformerConfig
from tf_transformer.errors import InputError

from .section import AboveZero, Names, Positive, Rate, Section


class _ModelSection(Section):
    preset: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _start_from_preset(cls, given: Any) -> Any:
        preset = given.get("preset") if isinstance(given, dict) else None
        if not isinstance(preset, str):
            return given
        if preset not in PRESETS:
            raise ValueError(f"`preset` must be one of {', '.join(PRESETS)}; received {preset!r}")
        return {**PRESETS[preset], **given}

    @model_validator(mode="after")
    def _try_sizes(self) -> "_ModelSection":
        self.to_config(8, 8)
        return self

    def to_config(
        self, source_vocabulary_size: int, target_vocabulary_size: int
    ) -> TransformerConfig:
        """The model of this section for tokenizers of these sizes."""
        return TransformerConfig(
            source_vocabulary_size=source_vocabulary_size,
            target_vocabulary_size=target_vocabulary_size,
            **self.model_dump(exclude={"preset"}),
        )


def _model_fields() -> dict[str, Any]:
    """Every field of TransformerConfig that a recipe may set, with its type and default."""
    hints = get_type_hints(TransformerConfig)
    return {
        field.name: (hints[field.name], field.default)
        for field in dataclasses.fields(TransformerConfig)
        if field.default is not dataclasses.MISSING  # the tokenizers decide the others
    }


if TYPE_CHECKING:
    ModelSettings = _ModelSection
else:
    ModelSettings = pydantic.create_model(
        "ModelSettings",
        __base__=_ModelSection,
        __doc__="[model]: a preset and any field of `TransformerConfig` over it.",
        **_model_fields(),
    )


class TrainingSettings(Section):
    """[training]: how long, in what batches, with which step."""

    epochs: Positive = 10
    max_steps: Positive | None = None
    max_minutes: AboveZero | None = None
    batch_tokens: Positive = 4096
    update_tokens: Positive | None = None
    pad_to_multiple_of: Positive = 8
    static_shapes: bool = False
    subword_sampling: Literal["none", "source", "target", "both"] = "none"
    subword_alpha: Annotated[float, Field(ge=0)] | None = None
    word_dropout: Rate = 0.0
    optimizer: Literal["adam", "adamw", "adafactor"] = "adam"
    beta_1: Rate = 0.9
    beta_2: Rate = 0.98
    epsilon: AboveZero = 1e-9
    weight_decay: AboveZero | None = None
    relative_step: bool = True
    schedule: Literal["transformer", "inverse_sqrt", "linear", "cosine", "constant"] = "transformer"
    learning_rate: AboveZero = 1.0
    warmup_steps: Positive = 4000
    decay_steps: Positive | None = None
    label_smoothing: Rate = 0.1
    r_drop: Annotated[float, Field(ge=0)] = 0.0
    clip_norm: AboveZero | None = None
    precision: Literal["float32", "mixed_float16", "mixed_bfloat16"] = "float32"
    jit_compile: bool = False
    strategy: Literal["none", "mirrored", "multi_worker"] = "none"
    replicas: Positive | None = None
    warm_start: str | None = None
    freeze: Names = []
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1
    save_every_minutes: AboveZero = 2.0
    patience: Positive | None = None
    keep_checkpoints: Positive = 5
    average_checkpoints: Positive = 1
    final_weights: Literal["last", "best"] = "last"
    ema_decay: Annotated[float, Field(gt=0, lt=1)] | None = None

    @property
    def batches_per_update(self) -> int:
        """How many batches make one update: as many as bring `update_tokens` together."""
        return -(-(self.update_tokens or self.batch_tokens) // self.batch_tokens)

    @model_validator(mode="after")
    def _count_replicas_of_one_machine(self) -> "TrainingSettings":
        if self.replicas is not None and self.strategy != "mirrored":
            raise InputError(f'`replicas` is of strategy = "mirrored"; received "{self.strategy}"')
        return self

    @model_validator(mode="after")
    def _update_with_whole_batches(self) -> "TrainingSettings":
        if self.update_tokens is not None and self.update_tokens < self.batch_tokens:
            raise InputError(
                "`update_tokens` must be at least `batch_tokens`; received "
                f"{self.update_tokens} and {self.batch_tokens}"
            )
        return self

    @model_validator(mode="after")
    def _keep_what_is_averaged(self) -> "TrainingSettings":
        if self.average_checkpoints > self.keep_checkpoints:
            raise InputError(
                "`average_checkpoints` must not be above `keep_checkpoints`; received "
                f"{self.average_checkpoints} and {self.keep_checkpoints}"
            )
        return self

    @model_validator(mode="after")
    def _check_the_rate(self) -> "TrainingSettings":
        if self.schedule != "transformer" and self.learning_rate > 0.1:
            raise InputError(
                f'with schedule = "{self.schedule}", `learning_rate` is the highest rate itself '
                f"and must be at most 0.1; received {self.learning_rate}"
            )
        decays = self.schedule in ("linear", "cosine")
        if decays != (self.decay_steps is not None):
            raise InputError(
                f'schedule = "{self.schedule}" '
                + ("needs `decay_steps`" if decays else "has no `decay_steps`")
                + f"; received {self.decay_steps}"
            )
        if self.decay_steps is not None and self.decay_steps <= self.warmup_steps:
            raise InputError(
                "`decay_steps` must be above `warmup_steps`; received "
                f"{self.decay_steps} and {self.warmup_steps}"
            )
        if self.weight_decay is not None and self.optimizer != "adamw":
            raise InputError(
                f'`weight_decay` is of optimizer = "adamw"; received "{self.optimizer}"'
            )
        return self


class DecodingSettings(Section):
    """[decoding]: how the trained model translates."""

    search: Literal["beam", "greedy", "diverse", "sampling"] = "beam"
    num_beams: Positive = 4
    diversity: Annotated[float, Field(ge=0)] = 0.5
    alpha: float = 0.6
    length_penalty: Literal["gnmt", "power", "none"] = "gnmt"
    coverage_penalty: Annotated[float, Field(ge=0)] = 0.0
    max_source_length: Positive = 512
    length_factor: Annotated[float, Field(ge=0)] = 1.0
    extra_length: Annotated[int, Field(ge=0)] = 50
    max_length: Positive | None = None
    min_length: Annotated[int, Field(ge=0)] = 0
    end_at_limit: bool = False
    repetition_penalty: AboveZero = 1.0
    no_repeat_ngram_size: Annotated[int, Field(ge=0)] = 0
    suppress_unk: bool = False
    suppressed_ids: list[Annotated[int, Field(ge=0)]] = []
    alignment_layer: int = -2
    temperature: AboveZero = 1.0
    top_k: Annotated[int, Field(ge=0)] = 0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0


class EvaluationSettings(Section):
    """[evaluation]: what is looked at while training."""

    every_epochs: Positive = 1
    every_steps: Positive | None = None
    samples: Annotated[int, Field(ge=0)] = 2
    bleu: Literal["none", "greedy", "beam"] = "none"
    metric: Literal["nll", "bleu"] = "nll"

    @model_validator(mode="after")
    def _measure_what_is_compared(self) -> "EvaluationSettings":
        if self.metric == "bleu" and self.bleu == "none":
            raise InputError('`metric` = "bleu" needs `bleu` = "greedy" or "beam"; received "none"')
        return self
