"""Requests to `serving_default` for batches of texts."""

import numpy as np

from export.answers import Request


def text_requests(*batches: list) -> list[Request]:
    """One for each batch of texts, str or bytes."""
    return [Request("serving_default", {"text": as_strings(texts)}) for texts in batches]


def as_strings(texts: list) -> np.ndarray:
    """(B,) as a session takes strings."""
    encoded = [text.encode() if isinstance(text, str) else text for text in texts]
    return np.array(encoded, object)


def assert_alike(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """The same outputs with the same values, numbers with a point within 1e-4."""
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert found[key].shape == value.shape, key
        if value.dtype.kind == "f":
            np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=1e-4, err_msg=key)
        else:
            np.testing.assert_array_equal(found[key], value, err_msg=key)
