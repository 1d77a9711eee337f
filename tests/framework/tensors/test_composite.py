"""Tests of flowstone.framework.tensors.composite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowstone.framework.declarations.operation import OpDeclaration
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.composite import (
    IndexedSlices,
    IndexedSlicesValue,
    SparseTensor,
    SparseTensorValue,
    TensorLike,
)
from flowstone.framework.types import dtypes

pytestmark = pytest.mark.usefixtures("graph")

_value = OpDeclaration("Value", "-> output: dtype", "value: tensor", dtype=None)
_value.infer(lambda node: node.attributes["value"].shape)
_value.value()(lambda node: node.attributes["value"])
_fed = OpDeclaration("Fed", "-> output: dtype", "shape: shape", dtype=None)
_fed.infer(lambda node: node.attributes["shape"])


def const(value: Any, dtype: Any) -> Any:
    return _value(value=np.array(value, dtype.as_numpy_dtype), dtype=dtype)


def sparse(indices: Any = ((0, 1),), values: Any = (1.0,), dense_shape: Any = (2, 3)) -> SparseTensor:
    return SparseTensor(
        const(indices, dtypes.int64), const(values, dtypes.float32), const(dense_shape, dtypes.int64)
    )


def test_sparse_tensor(graph: Graph) -> None:
    one = sparse()
    assert [t.dtype for t in (one.indices, one.values, one.dense_shape)] == [
        dtypes.int64,
        dtypes.float32,
        dtypes.int64,
    ]
    assert one.dtype is dtypes.float32
    assert one.graph is graph
    assert one.op is one.values.op
    assert one.get_shape().as_list() == one.shape.as_list() == [2, 3]
    assert str(one).startswith('SparseTensor(indices=Tensor("Value:0", shape=(1, 2), dtype=int64), values=')
    assert SparseTensor.from_value(one) is one


def test_a_sparse_shape_told_later() -> None:
    one = SparseTensor(sparse().indices, sparse().values, _fed(shape=(2,), dtype=dtypes.int64))
    one.set_shape([3, None])
    assert one.get_shape().as_list() == [3, None]
    with pytest.raises(ValueError, match="are not compatible"):
        one.set_shape([4, 5])
    with pytest.raises(ValueError, match="are not compatible"):
        sparse().set_shape([4, 5])


def test_sparse_shape_known_in_part() -> None:
    sizes = _fed(shape=(3,), dtype=dtypes.int64)
    rows = _fed(shape=(None, 3), dtype=dtypes.int64)
    assert SparseTensor(rows, const([1.0], dtypes.float32), sizes).shape.as_list() == [None] * 3
    unknown = _fed(shape=None, dtype=dtypes.int64)
    assert SparseTensor(unknown, const([1.0], dtypes.float32), unknown).shape.ndims is None


@pytest.mark.parametrize(
    "parts",
    [{"indices": [0, 1]}, {"values": [1.0, 2.0]}, {"dense_shape": [2, 3, 4]}, {"dense_shape": 2}],
)
def test_sparse_parts_that_contradict(parts: Any) -> None:
    with pytest.raises(ValueError):
        sparse(**parts)


def test_sparse_parts_of_wrong_types() -> None:
    numbers = const([[0, 1]], dtypes.float32)
    with pytest.raises((TypeError, ValueError), match="int64"):
        SparseTensor(numbers, const([1.0], dtypes.float32), const([2, 3], dtypes.int64))
    with pytest.raises(TypeError, match="neither a SparseTensor nor"):
        SparseTensor.from_value(3)


def test_consumers() -> None:
    one = sparse()
    user = OpDeclaration("User", "x: T, y: T ->")
    user.infer(lambda node: None)
    operation = user(one.indices, one.dense_shape)
    assert one.consumers() == [operation]


def test_indexed_slices(graph: Graph) -> None:
    values, indices = const(np.zeros((2, 3)), dtypes.float32), const([0, 1], dtypes.int32)
    some = IndexedSlices(values, indices)
    assert some.dense_shape is None
    assert some.shape.ndims is None
    whole = IndexedSlices(values, indices, const([4, 3], dtypes.int32))
    assert whole.get_shape().as_list() == [4, 3]
    assert (whole.name, whole.dtype, whole.op, whole.device) == (values.name, dtypes.float32, values.op, "")
    assert whole.graph is graph
    assert str(some) == f"IndexedSlices(indices={indices}, values={values})"
    with graph.control_dependencies([whole]):
        after = const(1, dtypes.float32)
    assert after.op.control_inputs == [values.op]
    with Graph().as_default(), pytest.raises(ValueError, match="same graph"):
        IndexedSlices(values, const([0, 1], dtypes.int32))


def test_values_are_named_tuples() -> None:
    assert SparseTensorValue._fields == ("indices", "values", "dense_shape")
    assert IndexedSlicesValue._fields == ("values", "indices", "dense_shape")
    assert SparseTensorValue([[0]], [1], [2]) == ([[0]], [1], [2])


def test_tensors_and_composites_are_tensor_like() -> None:
    with Graph().as_default():
        x = const([[1.0]], dtypes.float32)
        x.note = "a library's"  # type: ignore[attr-defined]
        slices = IndexedSlices(x, const([0], dtypes.int32))
        assert isinstance(x, TensorLike) and isinstance(slices, TensorLike)
        assert not isinstance(1.0, TensorLike)
        assert x.note == "a library's"
