"""Where a training runs: one device or many, one process or many, and what fits into them."""
