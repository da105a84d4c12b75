"""The only file that makes masks: what they say, and that True means "may attend"."""

import numpy as np
import pytest

from tests import oracle
from tf_transformer.layers import masks


def test_padding_mask_equals_the_oracle():
    ids = np.array([[5, 9, 0, 0], [1, 2, 3, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(masks.padding_mask(ids), oracle.padding_mask(ids))
    assert np.asarray(masks.padding_mask(ids)).dtype == bool


def test_only_pad_is_hidden_not_the_other_control_ids():
    assert np.asarray(masks.padding_mask(np.array([[1, 2, 3, 4]]))).all()


@pytest.mark.parametrize("length", [1, 2, 7])
def test_causal_mask_equals_the_oracle(length):
    mask = np.asarray(masks.causal_mask(length))
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, oracle.causal_mask(length))


def test_attention_mask_joins_both_reasons():
    live = np.array([[True, True, False], [True, True, True]])
    joined = np.asarray(masks.attention_mask(live, 3))
    np.testing.assert_array_equal(joined, oracle.causal_mask(3) & live[:, None, :])


def test_attention_mask_of_padding_alone_is_the_same_for_every_query():
    live = np.array([[True, False], [True, True]])
    np.testing.assert_array_equal(np.asarray(masks.attention_mask(live)), live[:, None, :])


def test_attention_mask_takes_a_float_mask_as_a_bool_one():
    joined = np.asarray(masks.attention_mask(np.array([[1.0, 0.0]], "float32"), 2))
    np.testing.assert_array_equal(joined, [[[True, False], [True, False]]])


def test_attention_mask_is_none_when_nothing_is_hidden():
    assert masks.attention_mask(None) is None
    np.testing.assert_array_equal(masks.attention_mask(None, 4), oracle.causal_mask(4))
