"""`tf.py_function`: a Python function that computes with operations, as a node of the graph.

The node EagerPyFunc calls the function within an `EagerGraph`, on tensors that have values. A gradient is one
more such node: it asks the tape that watched the function's call in the same step. A step keeps its calls
until then, the last first, as loops' gradients want them; it keeps none if no gradient was ever asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.recording import stop_recording
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.dtypes import DType
from flowstone.gradients.gradient_computation import UnconnectedGradients, is_trainable
from flowstone.gradients.gradient_tape import GradientTape
from flowstone.ops.control.script import call_node, eager_py_func_op
from flowstone.ops.variables.variables import Variable
from flowstone.runtime.execution.eager_graph import EagerGraph

__all__ = ["py_function"]


def py_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None, name: str | None = None
) -> Any:
    """The results of ``func(*tensors)`` as tensors of unknown shape.

    `func` gets tensors that have values (``numpy()``, ``if x > 0:``, ``for row in x:``); it computes with
    operations, NumPy and Python, and returns what can be converted to tensors of the types `Tout`. `inp`: a
    list of tensors; `Tout`: a dtype, or a list of them (then the result is a list; an operation if it is
    empty). Gradients pass through the operations in `func`; a result that does not depend on an input by
    them alone has a gradient of zeros. Errors are those of `py_func`; variables cannot be made in `func`.
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    return call_node(eager_py_func_op, _Call(func), [convert_to_tensor(x) for x in inp], Tout, name)


class _Recorded(NamedTuple):
    """A call whose gradient may be asked for."""

    graph: EagerGraph
    tape: GradientTape
    inputs: list[Any]
    outputs: list[Any]


class _Call:
    """What a node EagerPyFunc calls. `is_differentiated`: whether there is a node of its gradient."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.is_differentiated = False
        self._states: dict[str, Any] = {}  # random generators go on from call to call

    def __call__(
        self, node: Any, environment: Environment, step: Any, values: Sequence[Any]
    ) -> list[Any] | None:
        """The runtime values of the results, or None if the function returns none."""
        inside = Environment(CPU, None, ResourceStore(), self._states)
        inside.run_blocking, inside.new_step = environment.run_blocking, environment.new_step
        graph, tape = EagerGraph(inside, step), GradientTape(watch_accessed_variables=False)
        with graph.as_default(), stop_recording():
            inputs = [graph.tensor(_owned(x), t) for x, t in zip(values, node.attributes["Tin"])]
            with tape:
                tape.watch([x for x in inputs if is_trainable(x)])
                returned = self._function(*inputs)
                if returned is None:
                    return None
                outputs = _converted(returned, node.attributes["Tout"])
        if self.is_differentiated:
            self.recorded(step).append(_Recorded(graph, tape, inputs, outputs))
        return [_owned(x._value) for x in outputs]

    def gradient(self, op: Operation, flows: Sequence[Any]) -> list[Tensor | None]:
        """The gradients of the inputs of a node that makes this call; None for those that have none."""
        positions = [i for i, flow in enumerate(flows) if flow is not None and is_trainable(op.outputs[i])]
        wanted = [i for i, x in enumerate(op.inputs) if is_trainable(x)]
        result: list[Tensor | None] = [None] * len(op.inputs)
        if not positions or not wanted:
            return result
        self.is_differentiated = True
        with op.graph.control_dependencies(op.outputs):
            types = [op.inputs[i].dtype.base_dtype for i in wanted]
            call = _GradientCall(self, positions, wanted)
            found = call_node(eager_py_func_op, call, [flows[i] for i in positions], types, None)
        for i, x in zip(wanted, found):
            result[i] = x
        return result

    def recorded(self, step: Any) -> list[_Recorded]:
        """The calls of a step whose gradients have not been computed."""
        return step.state(self, list)  # type: ignore[no-any-return]


class _GradientCall:
    """What the gradient's node calls, with the gradients of the results at `positions`."""

    def __init__(self, call: _Call, positions: list[int], wanted: list[int]) -> None:
        self._call, self._positions, self._wanted = call, positions, wanted

    def __call__(self, node: Any, environment: Environment, step: Any, values: Sequence[Any]) -> list[Any]:
        """The runtime values of the gradients of the inputs `wanted`."""
        graph, tape, inputs, outputs = self._call.recorded(step).pop()
        with graph.as_default(), stop_recording():
            flows = [graph.tensor(_owned(x), t) for x, t in zip(values, node.attributes["Tin"])]
            found = tape.gradient(
                [outputs[i] for i in self._positions],
                [inputs[i] for i in self._wanted],
                flows,
                UnconnectedGradients.ZERO,
            )
            return [_owned(convert_to_tensor(x)._value) for x in found]  # type: ignore[attr-defined]

    def gradient(self, op: Operation, flows: Sequence[Any]) -> list[Tensor | None]:
        """None: there are no second derivatives."""
        return [None] * len(op.inputs)


def _converted(returned: Any, types: Sequence[DType]) -> list[Any]:
    """The results as eager tensors; what is too much is left out, as TensorFlow does."""
    results = returned if isinstance(returned, (list, tuple)) else [returned]
    return [_result(x, dtype) for x, dtype in zip(results, types)]


def _result(value: Any, dtype: DType) -> Any:
    if isinstance(value, Variable):
        raise RuntimeError("Attempting to return a variable from an eagerly executed py_func.")
    return convert_to_tensor(value, dtype)


def _owned(value: Any) -> Any:
    """A copy that nobody overwrites."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    return value.copy() if isinstance(value, np.ndarray) else value
