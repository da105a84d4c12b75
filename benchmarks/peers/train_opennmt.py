"""OpenNMT-tf, its Runner and Transformer, in a Python of its own; nothing of ours but the clock."""

from pathlib import Path

from .train_clock import Clock, Finished
from .train_sizes import ADAM, DROPOUT, LEARNING_RATE, SMOOTHING


def model_of(size: dict):
    """Pre-norm, one table for source, target and output."""
    import opennmt

    return opennmt.models.Transformer(
        opennmt.inputters.WordEmbedder(embedding_size=size["hidden"]),
        opennmt.inputters.WordEmbedder(embedding_size=size["hidden"]),
        num_layers=size["layers"],
        num_units=size["hidden"],
        num_heads=size["heads"],
        ffn_inner_dim=size["intermediate"],
        dropout=DROPOUT,
        # Only sublayer outputs and embeddings are dropped, as in the paper and in ours.
        attention_dropout=0.0,
        ffn_dropout=0.0,
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
        pre_norm=True,
    )


def config_of(folder: Path, batch_tokens: int) -> dict:
    """Its own settings where ours has none; no validation, checkpoints as it makes them."""
    vocabulary = str(folder / "opennmt.vocab")
    return {
        "model_dir": str(folder / "opennmt"),
        "data": {
            "train_features_file": str(folder / "opennmt.src"),
            "train_labels_file": str(folder / "opennmt.tgt"),
            "source_vocabulary": vocabulary,
            "target_vocabulary": vocabulary,
            # Ours ends the source as well.
            "source_sequence_controls": {"start": False, "end": True},
        },
        "params": {
            "optimizer": "Adam",
            "optimizer_params": ADAM,
            "learning_rate": LEARNING_RATE,
            "label_smoothing": SMOOTHING,
        },
        "train": {
            "batch_size": batch_tokens,
            "batch_type": "tokens",
            # As its automatic configuration has them.
            "length_bucket_width": 2,
            "sample_buffer_size": 500000,
            "save_checkpoints_steps": 5000,
        },
    }


def run(size: dict, folder: Path, clock: Clock, batch_tokens: int) -> None:
    """Trains until the clock has enough."""
    import opennmt
    import tensorflow as tf
    from opennmt import training

    tokens = tf.Variable(0, dtype=tf.int64, trainable=False)
    count, step = training.TrainingStats.update_on_example, training.TrainingStats.update_on_step

    @tf.autograph.experimental.do_not_convert
    def count_too(self, source, target):
        # Of the labels, END among them.
        tokens.assign_add(tf.reduce_sum(tf.cast(target["length"], tf.int64)))
        count(self, source, target)

    seen = 0

    def tell(self, number, loss):
        nonlocal seen
        step(self, number, loss)
        clock.update(int(tokens) - seen)
        seen = int(tokens)

    training.TrainingStats.update_on_example = count_too
    training.TrainingStats.update_on_step = tell
    try:
        runner = opennmt.Runner(model_of(size), config_of(folder, batch_tokens))
        runner.train()
    except Finished:
        pass
