"""Arguments of layers: sizes, lengths of outputs, layouts, conditions that are known."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.layers import arguments


@pytest.mark.parametrize("padding", ["valid", "same", "full"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_lengths_of_convolutions(padding: str, stride: int, size: int) -> None:
    """As counted: the places where a window may stand."""
    for length in range(size, 9):
        before = {"valid": 0, "same": None, "full": size - 1}[padding]
        if before is None:
            expected = len(range(0, length, stride))
        else:
            expected = len(range(0, length + 2 * before - size + 1, stride))
        assert arguments.conv_output_length(length, size, padding, stride) == expected
    assert arguments.conv_output_length(None, size, padding, stride) is None
    assert arguments.conv_input_length(None, size, padding, stride) is None
    assert arguments.deconv_output_length(None, size, padding, stride) is None


@pytest.mark.parametrize("padding", ["valid", "same", "full"])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_lengths_of_inputs_undo_those_of_outputs(padding: str, size: int) -> None:
    for length in range(size, 9):
        output = arguments.conv_output_length(length, size, padding, 1)
        assert arguments.conv_input_length(output, size, padding, 1) == length
        assert arguments.deconv_output_length(output, size, padding, 1) == length


def test_dilation_reaches_further() -> None:
    assert arguments.conv_output_length(9, 3, "valid", 1, 3) == 3
    assert arguments.conv_output_length(9, 3, "causal", 2, 3) == 5


def test_numbers_of_any_kind_are_sizes() -> None:
    assert arguments.normalize_tuple(np.int64(2), 3, "n") == (2, 2, 2)
    assert arguments.normalize_tuple([np.int32(2), "3"], 2, "n") == (2, 3)


def test_layouts_by_rank() -> None:
    names = [arguments.convert_data_format("channels_last", n) for n in (3, 4, 5)]
    assert names == ["NWC", "NHWC", "NDHWC"]
    assert arguments.convert_data_format("channels_first", 3) == "NCW"
    with pytest.raises(ValueError, match="Input rank not supported: 6"):
        arguments.convert_data_format("channels_last", 6)
    with pytest.raises(ValueError, match="Invalid data_format: NHWC"):
        arguments.convert_data_format("NHWC", 4)


def test_initializers_by_name() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        ones = arguments.initializer_named("ones")([2], tf.float32)
        uniform = arguments.initializer_named("random_uniform")([1000], tf.float32)
        assert session.run(ones).tolist() == [1, 1]
        assert np.abs(session.run(uniform)).max() <= 0.05
    assert arguments.initializer_named(None) is None
    assert arguments.initializer_named(tf.zeros_initializer) is tf.zeros_initializer


def test_conditions_that_are_known_build_one_branch() -> None:
    with tf.Graph().as_default():
        for pred in (True, 1, np.bool_(True), tf.constant(True)):
            assert arguments.smart_cond(pred, lambda: "yes", lambda: "no") == "yes"
        assert arguments.smart_cond(0, lambda: "yes", lambda: "no") == "no"
        chosen = arguments.smart_cond(tf.placeholder(tf.bool, []), lambda: tf.ones([]), lambda: tf.zeros([]))
        assert chosen.op.type == "Merge"
        with pytest.raises(TypeError, match="Found instead: <class 'str'>"):
            arguments.smart_cond("yes", lambda: 1, lambda: 2)
        with pytest.raises(TypeError, match="`true_fn` must be callable"):
            arguments.smart_cond(True, 1, lambda: 2)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="`false_fn` must be callable"):
            arguments.smart_cond(True, lambda: 1)
