"""How weights are made: section 5 of the paper."""

# First, or the package and the losses it registers would import each other halfway.
import tf_transformer  # noqa: F401
