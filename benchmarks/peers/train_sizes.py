"""The two sizes of every training benchmark; no imports, so that any Python can read it."""

SIZES = {
    "tiny": dict(layers=4, hidden=128, heads=4, intermediate=256, vocabulary=8000),
    "base": dict(layers=6, hidden=512, heads=8, intermediate=2048, vocabulary=32000),
}
DROPOUT, SMOOTHING = 0.1, 0.1
ADAM = dict(beta_1=0.9, beta_2=0.98, epsilon=1e-9)
LEARNING_RATE = 1e-4
