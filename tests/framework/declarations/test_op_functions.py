"""The functions that are generated for ops: names, arguments, results and errors."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.declarations.op_functions import (
    function_names,
    keywords_only,
    positional,
    public_types,
    snake_case,
    type_named,
)
from flowstone.framework.declarations.operation import registry

pytestmark = pytest.mark.usefixtures("graph")


@pytest.mark.parametrize(
    "op_type, function",
    [
        ("Add", "add"),
        ("MatMul", "mat_mul"),
        ("L2Loss", "l2_loss"),
        ("LRNGrad", "lrn_grad"),
        ("AvgPool3DGrad", "avg_pool3d_grad"),
        ("DepthwiseConv2dNative", "depthwise_conv2d_native"),
        ("TensorArrayGradV3", "tensor_array_grad_v3"),
        ("SparseApplyRMSProp", "sparse_apply_rms_prop"),
        ("ReadVariableOp", "read_variable_op"),
        ("IsNan", "is_nan"),
    ],
)
def test_names_in_snake_case(op_type: str, function: str) -> None:
    assert snake_case(op_type) == function
    assert type_named(function) == type_named(f"_{function}") == op_type


def test_no_two_ops_have_one_function() -> None:
    assert len(function_names()) == len(public_types())
    assert "_Arg" not in public_types()


@pytest.mark.parametrize(
    "op_type, signature",
    [
        ("Add", "(x, y, name=None)"),
        ("ConcatV2", "(values, axis, name=None)"),
        ("Placeholder", "(dtype, shape=None, name=None)"),
        ("RandomUniform", "(shape, dtype, seed=0, seed2=0, name=None)"),
        ("Pack", "(values, axis=0, name=None)"),
        ("Unpack", "(value, num, axis=0, name=None)"),
        ("Assign", "(ref, value, validate_shape=True, use_locking=True, name=None)"),
        ("NoOp", "(name=None)"),
        ("MaxPool", "(input, ksize, strides, padding, explicit_paddings=(), data_format='NHWC', name=None)"),
        (
            "StridedSlice",
            "(input, begin, end, strides, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0,"
            " shrink_axis_mask=0, name=None)",
        ),
    ],
)
def test_arguments_are_inputs_then_attributes(op_type: str, signature: str) -> None:
    assert str(inspect.signature(positional(op_type))) == signature
    assert list(inspect.signature(keywords_only(op_type)).parameters) == re.findall(r"(\w+)[=,)]", re.sub(
        r"=[^,)]+", "=", signature))  # fmt: skip


def test_values() -> None:
    with tf.Session() as session:
        assert session.run(tf.raw_ops.Add(x=1.0, y=2.0)) == 3
        values, indices = session.run(tf.raw_ops.TopKV2(input=[1.0, 4.0, 2.0], k=2))
        assert (values.tolist(), indices.tolist()) == ([4, 2], [1, 2])
        assert session.run(positional("Size")([1, 2], tf.int64)).dtype == "int64"
        _, second = positional("Unpack")([[1, 2], [3, 4]], 2, 1)
        assert session.run(second).tolist() == [2, 4]
    assert tf.raw_ops.NoOp(name="nothing").name == "nothing"


@pytest.mark.parametrize(
    "op_type, arguments",
    [
        ("Sum", {"input": [[1.0, 2.0]], "axis": 1}),
        ("Sum", {"input": [[1.0, 2.0]], "reduction_indices": 1}),
        ("ExpandDims", {"input": [3.0], "axis": 1}),
        ("Squeeze", {"input": [[3.0]], "axis": [0]}),
        ("Select", {"condition": [True], "x": [3.0], "y": [4.0]}),
        ("Split", {"axis": 0, "value": [3.0], "num_split": 1}),
    ],
)
def test_arguments_have_later_names_too(op_type: str, arguments: dict[str, Any]) -> None:
    result = getattr(tf.raw_ops, op_type)(**arguments)
    with tf.Session() as session:
        (value,) = session.run([result[0] if isinstance(result, list) else result])
    assert value.ravel().tolist() == [3]


def test_raw_ops_take_keywords_only() -> None:
    with pytest.raises(
        TypeError, match=r"Add only takes keyword args \(possible keys: \['x', 'y', 'name'\]\)"
    ):
        tf.raw_ops.Add(1.0, 2.0)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"x": 1.0}, "missing a required argument: 'y'"),
        ({"x": 1.0, "y": 2.0, "z": 3}, "unexpected keyword argument 'z'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=rf"add\(\): .*{message}"):
        tf.raw_ops.Add(**arguments)


def test_an_attribute_that_an_input_decides_is_no_argument() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'T'"):
        tf.raw_ops.Add(x=1.0, y=2.0, T=tf.float32)


def test_names_that_are_no_ops() -> None:
    for name in ("Nonsense", "_Arg", "add"):
        with pytest.raises(AttributeError, match="no op"):
            getattr(tf.raw_ops, name)
    assert type_named("nonsense") is None
    assert {"Add", "Conv2D"} <= set(dir(tf.raw_ops)) <= set(registry)
