"""`ConditionalAccumulator` and `SparseConditionalAccumulator`: gradients gathered until there are enough.

Synchronous training with several workers is made of them (white paper section 7, Figure 6): each worker
applies its gradient with the time step that it started from, the chief takes the average of enough fresh
ones. What is accumulated lives in the session, apart from any step (`accumulator_state.py`).

>>> from flowstone.framework.graphs.graph import Graph
>>> with Graph().as_default():
...     accumulator = ConditionalAccumulator("float32", shape=[2])
...     print(accumulator.apply_grad([1.0, 2.0], local_step=1).type, accumulator.take_grad(3).shape)
ResourceAccumulatorApplyGradient (2,)
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes as _dtypes
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.ops.numbers.casts import cast

__all__ = ["ConditionalAccumulator", "ConditionalAccumulatorBase", "SparseConditionalAccumulator"]


class ConditionalAccumulatorBase:
    """What both kinds have in common: gradients of `dtype` and `shape` in the accumulator of this handle."""

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Any) -> None:
        self._dtype = dtype
        self._shape = TensorShape(None) if shape is None else as_shape(shape)
        self._accumulator_ref = accumulator_ref
        self._name: str = accumulator_ref.op.name.rpartition("/")[2]

    @property
    def accumulator_ref(self) -> Any:
        """The handle."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        """The name of the operation that makes it, without scopes."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The type of the gradients."""
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """How many gradients have come since one was last taken: int32, []."""
        return self._op("AccumulatorNumAccumulated")(  # type: ignore[no-any-return]
            self._accumulator_ref, name=name or f"{self._name}_NumAccumulated"
        )

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """Sets the time step (an integer, []): gradients from before it are dropped."""
        step = _as_step(new_global_step)
        return self._op("AccumulatorSetGlobalStep")(self._accumulator_ref, step, name=name)  # type: ignore[no-any-return]

    def _op(self, name: str) -> Any:
        is_resource = self._accumulator_ref.dtype.base_dtype is _dtypes.resource
        return getattr(F, f"Resource{name}" if is_resource else name)


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Gathers dense gradients.

    `shape`: of the gradients; None, or with None in it, for those that the first gradient decides.
    `shared_name`: sessions on one target share accumulators of a name. `reduction_type`: what is taken,
    "MEAN" or "SUM".
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        handle = F.ResourceConditionalAccumulator(
            dtype=dtype,
            shape=TensorShape(None) if shape is None else as_shape(shape),
            shared_name=shared_name,
            reduction_type=reduction_type,
            name=name,
        )
        super().__init__(_dtypes.as_dtype(dtype), shape, handle)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """Adds a gradient of time step `local_step` (an integer, []); a stale one is dropped.

        Raises ValueError for another static shape; a step fails with InvalidArgumentError for another shape.
        """
        gradient = convert_to_tensor(grad, self._dtype)
        gradient.shape.assert_is_compatible_with(self._shape)
        step = _as_step(local_step)
        return self._op("AccumulatorApplyGradient")(self._accumulator_ref, step, gradient, name=name)  # type: ignore[no-any-return]

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """The aggregate, once `num_required` (int32, []) gradients have come.

        Empties the accumulator and moves its time step on by one. A step fails with InvalidArgumentError
        unless `num_required` is positive.
        """
        taken = self._op("AccumulatorTakeGradient")(
            self._accumulator_ref, num_required, dtype=self._dtype, name=name
        )
        taken.set_shape(self._shape)
        return taken  # type: ignore[no-any-return]


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Gathers sparse gradients, slices at some places of the first dimension.

    The average of a place is over the gradients that have a slice there. The arguments are
    `ConditionalAccumulator`'s; `shape` is that of the dense gradient.
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        handle = F.SparseConditionalAccumulator(
            dtype=dtype,
            shape=TensorShape(None) if shape is None else as_shape(shape),
            shared_name=shared_name,
            reduction_type=reduction_type,
            name=name,
        )
        super().__init__(_dtypes.as_dtype(dtype), shape, handle)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """`apply_grad` of the slices `grad`."""
        return self.apply_grad(
            grad_indices=grad.indices,
            grad_values=grad.values,
            grad_shape=grad.dense_shape,
            local_step=local_step,
            name=name,
        )

    def apply_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        grad_shape: Any = None,
        local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:
        """Adds a gradient of time step `local_step` (an integer, []); a stale one is dropped.

        `grad_indices`: integer, [n]; `grad_values`: [n, ...]; `grad_shape`: of the dense gradient, if known.
        A step fails with InvalidArgumentError for shapes and indices that do not fit.
        """
        step = _as_step(local_step)
        return F.SparseAccumulatorApplyGradient.operation(
            self._accumulator_ref,
            step,
            cast(grad_indices, _dtypes.int64),
            convert_to_tensor(grad_values, self._dtype),
            cast([] if grad_shape is None else grad_shape, _dtypes.int64),
            has_known_shape=grad_shape is not None,
            name=name,
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> Any:
        """The aggregate, once `num_required` (int32, []) gradients have come: (indices, values, shape).

        int64 [n], sorted; [n, ...]; int64, with -1 for a first dimension that nobody knows.
        """
        return F.SparseAccumulatorTakeGradient(
            self._accumulator_ref, num_required, dtype=self._dtype, name=name
        )

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """`take_grad`, as IndexedSlices."""
        taken = self.take_grad(num_required, name)
        return IndexedSlices(indices=taken.indices, values=taken.values, dense_shape=taken.shape)


def _as_step(value: Any) -> Tensor:
    step: Tensor = cast(convert_to_tensor(value), _dtypes.int64)
    return step
