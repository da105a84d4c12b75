"""What numbers a search or a rule takes."""


def check_number(name: str, value: float, least: float, most: float) -> None:
    """ValueError with the argument, its rule and what was received; NaN is no number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        raise ValueError(
            f"`{name}` must be a number from {least} to {most}. Received: {name}={value!r}"
        )


def check_whole(name: str, value: int, least: int) -> None:
    """ValueError with the argument, its rule and what was received."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31:
        raise ValueError(
            f"`{name}` must be a whole number of at least {least}. Received: {name}={value!r}"
        )
