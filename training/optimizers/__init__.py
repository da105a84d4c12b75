"""How weights move: learning rates, optimizers, moving averages, and what is frozen."""
