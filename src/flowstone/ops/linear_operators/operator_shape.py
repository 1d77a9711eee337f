"""The shape of an operator: what is known of it before the step, and tensors of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.dimension import Dimension
from flowstone.framework.types.shape import Dims, TensorShape, fully_known


class OperatorShape:
    """The shape [..., m, n] and the name of an operator. Subclasses say `_shape` and `_shape_tensor`."""

    _name: str

    @property
    def name(self) -> str:
        """The name that its operations begin with."""
        return self._name

    def _check_input_dtype(self, arg: Any) -> None:
        """TypeError for a tensor of another type than the operator's; classes of a program use it."""
        own = getattr(self, "dtype", None)
        if arg.dtype.base_dtype != own:
            raise TypeError(f"Expected argument to have dtype {own}.  Found: {arg.dtype} in tensor {arg}")

    def _name_scope(self, name: str, values: Any = None) -> Any:
        """The scope of a method's operations, for `with`; classes of a program use it."""
        return self._scope(name)

    @contextmanager
    def _scope(self, name: str) -> Iterator[str]:
        with get_default_graph().name_scope(f"{self.name}/{name}") as scope:
            yield scope

    def _shape(self) -> Dims | TensorShape:
        raise NotImplementedError("_shape is not implemented.")

    def _dims(self) -> Dims:
        # A subclass elsewhere may give a TensorShape, as TensorFlow's subclasses do.
        shape = self._shape()
        return shape.dims_tuple if isinstance(shape, TensorShape) else shape

    def _shape_tensor(self) -> Tensor:
        raise NotImplementedError("_shape_tensor is not implemented.")

    @property
    def shape(self) -> TensorShape:
        """The shape [..., m, n], as far as it is known."""
        return TensorShape.from_dims(self._dims())

    @property
    def batch_shape(self) -> TensorShape:
        """The dimensions before the matrices, as far as they are known."""
        dims = self._dims()
        return TensorShape.from_dims(None if dims is None else dims[:-2])

    @property
    def tensor_rank(self) -> int | None:
        """The number of dimensions, if it is known."""
        dims = self._dims()
        return None if dims is None else len(dims)

    @property
    def domain_dimension(self) -> Dimension:
        """The number of columns, as far as it is known."""
        dims = self._dims()
        return Dimension(None if dims is None else dims[-1])

    @property
    def range_dimension(self) -> Dimension:
        """The number of rows, as far as it is known."""
        dims = self._dims()
        return Dimension(None if dims is None else dims[-2])

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """The shape [..., m, n] as an int32 vector."""
        with self._scope(name):
            known = fully_known(self._dims())
            return self._shape_tensor() if known is None else convert_to_tensor(np.array(known, np.int32))

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The dimensions before the matrices as an int32 vector."""
        with self._scope(name):
            dims = self._dims()
            known = None if dims is None else fully_known(dims[:-2])
            if known is not None:
                return convert_to_tensor(np.array(known, np.int32), name="batch_shape")
            return self.shape_tensor()[:-2]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """The number of dimensions as an int32 scalar."""
        with self._scope(name):
            return F.Size(self.shape_tensor())

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """The number of columns as an int32 scalar."""
        with self._scope(name):
            return self._side_tensor(-1)

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """The number of rows as an int32 scalar."""
        with self._scope(name):
            return self._side_tensor(-2)

    def _side_tensor(self, at: int) -> Tensor:
        dims = self._dims()
        known = None if dims is None else dims[at]
        if known is not None:
            return convert_to_tensor(np.int32(known))
        return self.shape_tensor()[at]
