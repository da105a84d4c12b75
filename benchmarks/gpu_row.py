"""One row of gpu.py: a few updates of one batch, on what it names, in this process."""

import time
from typing import Any

VOCABULARY = 32000
SMOKE: dict[str, Any] = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=32)
# Row: Keras backend, precision, XLA, all GPUs.
ROWS = {
    "float32": ("tensorflow", "float32", False, False),
    "float32, XLA": ("tensorflow", "float32", True, False),
    "bfloat16": ("tensorflow", "mixed_bfloat16", False, False),
    "bfloat16, XLA": ("tensorflow", "mixed_bfloat16", True, False),
    "bfloat16, XLA, mirrored": ("tensorflow", "mixed_bfloat16", True, True),
    "jax, float32": ("jax", "float32", True, False),
    "jax, bfloat16": ("jax", "mixed_bfloat16", True, False),
}


def flops_of_update(config: Any, rows: int, length: int) -> float:
    """Of the products of one update, (B, S) = (B, T) = (rows, length); 2 a multiplication."""
    d, f, n = config.hidden_dim, config.intermediate_dim, config.num_layers
    tokens = rows * length
    feed_forward = 2 * tokens * d * f * (3 if config.gated else 2)
    attention = 4 * 2 * tokens * d * d + 2 * 2 * tokens * length * d  # projections, then QK and AV
    layers = n * (attention + feed_forward) + n * (2 * attention + feed_forward)
    return 3.0 * (layers + 2 * tokens * d * config.target_vocabulary_size)


def batch(config: Any, rows: int, length: int) -> tuple[dict[str, Any], Any]:
    """Random ids, no pads; what the decoder reads is what it is to say, one later."""
    import numpy as np

    ids = np.random.default_rng(0).integers(4, config.target_vocabulary_size, (3, rows, length))
    source, decoder, labels = ids.astype("int32")
    decoder[:, 0], decoder[:, 1:] = 2, labels[:, :-1]
    return {"encoder_token_ids": source, "decoder_token_ids": decoder}, labels


class OneBatch:
    """What `Feed` needs of `Batches`: one batch without end."""

    def __init__(self, made: tuple[dict[str, Any], Any]) -> None:
        self.made = made

    def __len__(self) -> int:
        return 10**9

    def epoch(self, epoch: int | None, skip: int = 0) -> Any:
        """Without end."""
        while True:
            yield self.made

    def dataset(self, first_step: int | None = 0) -> Any:
        """The same."""
        import tensorflow as tf

        return tf.data.Dataset.from_tensors(self.made).repeat()


def tensorflow_fit(config: Any, row: tuple, rows: int, length: int) -> tuple[Any, Any, int]:
    """The compiled trainer, its data, and the replicas."""
    from training.batches.feed import Feed
    from training.compiling import compiled
    from training.devices.distribution import Distribution
    from training.settings.sections import TrainingSettings

    strategy: Any = "mirrored" if row[3] else "none"
    settings = TrainingSettings(precision=row[1], jit_compile=row[2], strategy=strategy)
    distribution = Distribution.open(settings)
    with distribution.scope():
        model = compiled(settings, config)
    made = batch(config, rows * distribution.replicas, length)
    feed: Any = Feed(OneBatch(made))  # type: ignore[arg-type]
    return model, distribution.dataset(feed, 0), distribution.replicas


def jax_fit(config: Any, row: tuple, rows: int, length: int) -> tuple[Any, Any, int]:
    """The same model, loss and Adam by Keras's own train step."""
    import keras
    import tensorflow as tf

    from tf_transformer.model import build_transformer, under_policy
    from training.objective.losses import SmoothedCrossEntropy
    from training.optimizers.schedule import TransformerSchedule

    tf.config.set_visible_devices([], "GPU")  # or it takes the memory
    with under_policy(row[1]):
        model = build_transformer(config)
    schedule = TransformerSchedule(config.hidden_dim, 4000)
    adam = keras.optimizers.Adam(schedule, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
    model.compile(adam, SmoothedCrossEntropy(0.1), jit_compile=row[2])
    return model, OneBatch(batch(config, rows, length)).dataset(), 1


def measure(name: str, size: str, tokens: int, length: int, updates: int) -> dict[str, Any]:
    """Makes the updates of a row in this process; tokens/s, and FLOP/s of each device."""
    import keras

    from tf_transformer import TransformerConfig

    names = ("source_vocabulary_size", "target_vocabulary_size")
    fields: dict[str, Any] = dict.fromkeys(names, 64 if size == "smoke" else VOCABULARY)
    if size == "smoke":
        config = TransformerConfig(**SMOKE, **fields)
    else:
        config = TransformerConfig.from_preset(size, **fields)
    rows = max(tokens // length, 1)
    fit = jax_fit if ROWS[name][0] == "jax" else tensorflow_fit
    model, data, devices = fit(config, ROWS[name], rows, length)
    times: list[float] = []

    class Clock(keras.callbacks.Callback):
        def on_train_batch_end(self, number: int, logs: Any = None) -> None:
            if number in (updates - 1, 2 * updates - 1):
                float((logs or {})["loss"])  # the device has done it
                times.append(time.perf_counter())

    model.fit(data, steps_per_epoch=2 * updates, callbacks=[Clock()], shuffle=False, verbose=0)
    seconds = (times[1] - times[0]) / updates
    return {
        "row": name,
        "devices": devices,
        "tokens_per_s": devices * rows * length / seconds,
        "flops_per_device": flops_of_update(config, rows, length) / seconds,
    }
