"""Run by test_ema.py in a process of its own: averages on one device and on two replicas.

Prints, for each optimizer, what differs at most: the weights, their averages, and the copies of one
weight on the two devices, while the average is lent and after.
"""

import json
from types import SimpleNamespace

import keras
import numpy as np
import tensorflow as tf

from training.optimizers.ema import averaged_weights
from training.optimizers.optimizer import OPTIMIZERS

STEPS = 12


def made(name, strategy):
    """The weight, its average as lent, and the copies of both on every device."""
    random = np.random.default_rng(1)
    with strategy.scope():
        weight = keras.Variable(random.normal(size=(3, 2)).astype("float32"))
        optimizer = OPTIMIZERS[name](0.1, use_ema=True, ema_momentum=0.8)
        optimizer.build([weight])
    model = SimpleNamespace(optimizer=optimizer)

    @tf.function
    def step(gradient):
        # Each replica has a tensor of its own, as gradients are.
        strategy.run(lambda g: optimizer.apply([tf.identity(g)], [weight]), (gradient,))

    with averaged_weights(model):  # nothing is averaged yet
        pass
    for _ in range(STEPS):
        gradient = random.normal(size=(3, 2)) / strategy.num_replicas_in_sync  # Keras adds them up
        step(tf.constant(gradient, tf.float32))

    def copies():
        return [copy.numpy() for copy in strategy.experimental_local_results(weight.value)]

    with averaged_weights(model):
        lent = copies()
    return copies(), lent


def main():
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    report = {}
    for name in OPTIMIZERS:
        (weight,), (average,) = made(name, tf.distribute.get_strategy())
        weights, averages = made(name, two)
        report[name] = {
            "weights": float(np.abs(weights[0] - weight).max()),
            "averages": float(np.abs(averages[0] - average).max()),
            "copies": [
                float(np.abs(first - second).max()) for first, second in (weights, averages)
            ],
            "lent": float(np.abs(average - weight).min()),
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
