"""`EagerGraph`: a graph whose operations are computed as they are added.

It is the default graph while a function of `tf.py_function` runs (`client/eager_functions.py`). Its tensors
are `EagerTensor`s: they have values, hence full shapes, and behave as Python numbers and arrays do. What
raises does so where the operation is added. `tf.cond` and `tf.while_loop` are Python's own here; tapes record
as in any graph, and the gradients' operations are computed as they are added, too.

Variables and placeholders are refused: nothing of such a graph outlives the call.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, AsyncCall, Environment, StepCall, Value
from flowstone.framework.declarations.operation import F, OpDeclaration
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.graphs.library_members import infer_shapes
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.values import to_numpy
from flowstone.runtime.code.failures import located

__all__ = ["EagerGraph", "EagerTensor"]


class EagerTensor(Tensor):
    """A tensor that has its value: `numpy()` gives a copy of it, a scalar as NumPy's scalar or `bytes`."""

    _value: Any  # as it flows along edges

    def hold(self, value: Any) -> None:
        """Gives it its value, hence its shape."""
        self._value = value
        if isinstance(value, (torch.Tensor, np.ndarray)):
            self.dims = tuple(value.shape)
            self._static_value = to_numpy(value, self.dtype)

    @property
    def graph(self) -> Graph:
        """The graph that now computes, where a value of an earlier call is used in another one."""
        graph = scope.graphs.get()
        return graph if isinstance(graph, EagerGraph) else self.op.graph

    def numpy(self) -> Any:
        """The value as an array of its own."""
        array = to_numpy(self._value, self.dtype)
        return array.copy() if array.ndim else array[()]

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """NotImplementedError: `numpy()` has the value."""
        raise NotImplementedError(
            "eval is not supported when eager execution is enabled, is .numpy() what you're looking for?"
        )

    @property
    def device(self) -> str:
        """Where the value is."""
        return "/job:localhost/replica:0/task:0/device:CPU:0"

    backing_device = device

    def cpu(self) -> EagerTensor:
        """Itself: values are in the host's memory."""
        return self

    def __repr__(self) -> str:
        shape, value = self.shape, repr(self.numpy())
        return f"<tf.Tensor: id={self.op._id}, shape={shape}, dtype={self.dtype.name}, numpy={value}>"

    def __str__(self) -> str:
        return f"tf.Tensor({self.numpy()}, shape={self.shape}, dtype={self.dtype.name})"

    def __format__(self, specification: str) -> str:
        return format(self.numpy(), specification)

    def __bool__(self) -> bool:
        return bool(self.numpy())

    __nonzero__ = __bool__

    def __int__(self) -> int:
        return int(self.numpy())

    def __index__(self) -> int:
        return self.numpy().__index__()  # type: ignore[no-any-return]

    def __float__(self) -> float:
        return float(self.numpy())

    def __complex__(self) -> complex:
        return complex(self.numpy())

    def __len__(self) -> int:
        if not self.dims:
            raise TypeError("Scalar tensor has no `len()`")
        return int(self.dims[0])  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        if not self.dims:
            raise TypeError("Cannot iterate over a scalar tensor.")
        for i in range(len(self)):
            yield self[i]

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.array(self.numpy(), *args, **kwargs)


class EagerGraph(Graph):
    """See the module. `environment`: what kernels may know; `step`: the step in which all is computed."""

    computes_at_once = True

    def __init__(self, environment: Environment, step: Any) -> None:
        super().__init__()
        self._environment, self._step = environment, step

    def tensor(self, value: Any, dtype: DType) -> EagerTensor:
        """A tensor of this value, as it flows along edges; nobody may change it any more."""
        attributes = {"dtype": dtype, "shape": None}
        operation = super().create(F.Placeholder, [], attributes, (), "input")
        return _holding(operation, (value,))[0]  # type: ignore[no-any-return]

    def create(
        self, declaration: OpDeclaration, inputs: list[Tensor], attributes: dict[str, Any],
        group_sizes: tuple[int, ...], name: str, **options: Any,
    ) -> Operation:  # fmt: skip
        """As in every graph, and computes the operation. Raises what its kernel raises.

        NotImplementedError for a variable, RuntimeError for a placeholder.
        """
        if declaration.role == "variable":
            raise NotImplementedError(
                "tf.py_function: a variable cannot be made inside the function; make it outside, and pass it"
            )
        if declaration.role == "placeholder":
            raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
        inputs = [self._own(x) for x in inputs]
        options["infer"] = False
        operation = super().create(declaration, inputs, attributes, group_sizes, name, **options)
        values = [x._value for x in inputs]  # type: ignore[attr-defined]
        try:
            infer_shapes(operation)
            results = self._computed(operation, values)
        except Exception as error:
            raise located(error, operation, values) from error  # type: ignore[arg-type]
        _holding(operation, results)
        return operation

    def _own(self, x: Tensor) -> Tensor:
        if x.op.graph is self:
            return x
        if isinstance(x, EagerTensor):
            return self.tensor(x._value, x.dtype)
        raise TypeError(
            f"An op outside of the function building code is being passed a Graph tensor: {x.name}. "
            "Pass it to tf.py_function as an input."
        )

    def _make_outputs(self, operation: Operation, infer: bool) -> None:
        for argument in operation.declaration.outputs:
            for dtype in argument.types(operation.attributes):
                operation.outputs.append(EagerTensor(operation, len(operation.outputs), dtype))

    def _computed(self, operation: Operation, values: list[Any]) -> Any:
        kernel = operation.declaration.kernels[CPU](operation, self._environment)
        if isinstance(kernel, Value):
            return (kernel.value,)
        if isinstance(kernel, AsyncCall):
            return _awaited(kernel, self._step, values)
        if isinstance(kernel, StepCall):
            results = kernel.function(self._step, *values)
        else:
            results = kernel(*values)
        return results if isinstance(results, (tuple, list)) else (results,)


def _holding(operation: Operation, values: Any) -> list[Any]:
    for output, value in zip(operation.outputs, values):
        output.hold(value)  # type: ignore[attr-defined]
    return operation.outputs


def _awaited(kernel: AsyncCall, step: Any, values: list[Any]) -> Any:
    """The results of a kernel that may have to wait, by waiting for it."""
    ended, found = threading.Event(), list[Any]()

    def done(outputs: Any, error: BaseException | None) -> None:
        found.extend((outputs, error))
        ended.set()

    kernel.function(step, done, *values)
    ended.wait()
    outputs, error = found
    if error is not None:
        raise error
    return outputs
