"""KerasHub's TransformerEncoder and TransformerDecoder layers, trained by Keras's `fit`."""

from pathlib import Path

from .train_clock import Clock, Finished
from .train_sizes import ADAM, DROPOUT, LEARNING_RATE, SMOOTHING


def keras_hub_model(size: dict):
    """Pre-norm, one tied table, sinusoids; inputs "source" and "target", output logits."""
    import keras
    import keras_hub as hub

    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    table = hub.layers.ReversibleEmbedding(size["vocabulary"], size["hidden"], tie_weights=True)
    positions = hub.layers.SinePositionEncoding()
    sizes = dict(
        intermediate_dim=size["intermediate"],
        num_heads=size["heads"],
        dropout=DROPOUT,
        activation="relu",
        normalize_first=True,
    )
    source_mask, target_mask = keras.ops.not_equal(source, 0), keras.ops.not_equal(target, 0)

    def embed(ids):
        x = table(ids) * size["hidden"] ** 0.5
        return keras.layers.Dropout(DROPOUT)(x + positions(x))

    x, y = embed(source), embed(target)
    for _ in range(size["layers"]):
        x = hub.layers.TransformerEncoder(**sizes)(x, padding_mask=source_mask)
    x = keras.layers.LayerNormalization(epsilon=1e-6)(x)
    for _ in range(size["layers"]):
        masks = dict(decoder_padding_mask=target_mask, encoder_padding_mask=source_mask)
        y = hub.layers.TransformerDecoder(**sizes)(y, x, **masks)
    y = keras.layers.LayerNormalization(epsilon=1e-6)(y)
    model = keras.Model({"source": source, "target": target}, table(y, reverse=True))
    for part in model._flatten_layers():
        # Only sublayer outputs and embeddings are dropped, as in the paper and in ours.
        if isinstance(part, keras.layers.MultiHeadAttention):
            part._dropout_layer.rate = 0.0
    return model


def run(size: dict, folder: Path, clock: Clock) -> None:
    """`fit` on the batches of `folder`, our loss, Keras's Adam, until the clock has enough."""
    import keras
    import tensorflow as tf

    from training import SmoothedCrossEntropy

    from .train_batches import endless, load

    model = keras_hub_model(size)
    adam = keras.optimizers.Adam(LEARNING_RATE, **ADAM)
    model.compile(adam, loss=SmoothedCrossEntropy(SMOOTHING), jit_compile=False)
    counts = [int((labels > 0).sum()) for _, _, labels in load(folder)]
    ids = tf.TensorSpec([None, None], tf.int32)

    def elements():
        for source, decoder, labels in endless(folder):
            yield {"source": source, "target": decoder}, labels

    signature = ({"source": ids, "target": ids}, ids)
    data = tf.data.Dataset.from_generator(elements, output_signature=signature).prefetch(4)

    class Told(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            clock.update(counts[batch % len(counts)])

    try:
        model.fit(data, steps_per_epoch=10**9, callbacks=[Told()], verbose=0)
    except Finished:
        pass
