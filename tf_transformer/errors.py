"""The one exception that means: what a person gave us is wrong."""


class InputError(ValueError):
    """Wrong input; its message is one sentence that names what, the rule and what was received."""
