"""`tf.gradients`: adds to the graph the nodes that compute derivatives (white paper 4.1).

The operations between `xs` and `ys` are visited backwards. Each is visited when all gradients with respect to
its outputs have arrived. Several gradients of one output are added up (`aggregation.py`); the op's gradient
function (`registration.py`) turns the sums into gradients with respect to its inputs, in a name scope
``gradients/<op name>_grad``. Outputs without a gradient count as zeros if another output has one. Both passes
are linear in the number of operations.

State of one computation (`_Computation`): `pending[op]`, how many gradients with respect to the op's outputs
have not arrived yet; `arrived[tensor]`, those that have (after its op was visited, a list of only their sum);
`stops`, operations that gradients do not flow through."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable
from typing import Any

from flowstone.framework.declarations.building import graph_of
from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.process import collector
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.recording import Recording
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape, merge
from flowstone.gradients.aggregation import aggregate, check_method
from flowstone.gradients.loop_gradients import LoopGradients, is_loop_primitive, leaves_a_gradient
from flowstone.gradients.registration import gradient_function
from flowstone.ops.arrays.constants import constant, zeros, zeros_like
from flowstone.ops.control.control_flow import tuple_ as tie_together
from flowstone.ops.control.control_flow import variable_behind, zeros_for_gradient

_TRAINABLE = frozenset(
    {
        dtypes.half,
        dtypes.float32,
        dtypes.float64,
        dtypes.bfloat16,
        dtypes.complex64,
        dtypes.complex128,
        dtypes.resource,
        dtypes.variant,
    }
)


class UnconnectedGradients:
    """What `gradients` returns for an x that no y depends on: NONE, or ZERO for zeros of its shape."""

    NONE = "none"
    ZERO = "zero"


def is_trainable(tensor: Any) -> bool:
    """Whether gradients flow through tensors of this type: floating point, complex, resource and variant."""
    return tensor.dtype.base_dtype in _TRAINABLE


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: str = UnconnectedGradients.NONE,
) -> list[Any]:
    """The gradients of the sum of `ys` with respect to `xs`: a list of Tensors, IndexedSlices or None (no
    path).

    `ys`, `xs`: a tensor or variable, or a list of them. `grad_ys`: the gradients with respect to the ys, of
    their shapes (None, or None entries: ones). `gate_gradients`: the gradients with respect to an op's inputs
    can be used only when all of them are computed. `aggregation_method`: see `AggregationMethod`.
    `stop_gradients`: tensors that count as constants here.

    Raises LookupError for an op without a gradient, ValueError for lists of unequal lengths or a wrong number
    or shape of gradients, TypeError for gradients of a type that does not fit."""
    return gradients_within(
        None, ys, xs, grad_ys, name, colocate_gradients_with_ops, gate_gradients, aggregation_method,
        stop_gradients, unconnected_gradients,
    )  # fmt: skip


def gradients_within(
    recording: Recording | None,
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: str = UnconnectedGradients.NONE,
) -> list[Any]:
    """`gradients`, but if a `recording` is given only along what it recorded, by xs that it watched."""
    if unconnected_gradients not in (UnconnectedGradients.NONE, UnconnectedGradients.ZERO):
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected_gradients!r}")
    ys, xs = _as_list(ys), _as_list(xs)
    stops = [] if stop_gradients is None else _as_list(stop_gradients)
    flows = [None] * len(ys) if grad_ys is None else _as_list(grad_ys)
    if len(flows) != len(ys):
        raise ValueError(f"Length mismatch. Passed {len(flows)} grad_ys for {len(ys)} ys")
    graph = graph_of([*ys, *xs, *stops, *flows])
    with scope.graphs.entered(graph):
        with graph.name_scope(name):
            ys = [_converted(y, f"y_{i}") for i, y in enumerate(ys)]
            xs = [_differentiated(x, f"x_{i}") for i, x in enumerate(xs)]
            stops = [_differentiated(x, f"stop_gradients_{i}") for i, x in enumerate(stops)]
            flows = [None if g is None else _converted(g, f"grad_y_{i}") for i, g in enumerate(flows)]
            computation = _Computation(graph, ys, xs, stops, check_method(aggregation_method), recording)
            computation.colocates = colocate_gradients_with_ops
            computation.gates = gate_gradients
            with collector.paused():
                computation.run(flows)
        if computation.loops:
            computation.loops.close()
        return [computation.result(x, unconnected_gradients) for x in xs]


def _as_list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _converted(value: Any, name: str) -> Any:
    return value if isinstance(value, (Tensor, IndexedSlices)) else convert_to_tensor(value, name=name)


def _differentiated(x: Any, name: str) -> Any:
    """The tensor to differentiate with respect to: a variable's buffer or handle, so that all its reads
    count."""
    if isinstance(x, IndexedSlices):
        return x
    handle = x if isinstance(x, Tensor) else getattr(x, "handle", None)
    inside = scope.get_default_graph().building_function
    if isinstance(handle, Tensor):
        return convert_to_tensor(handle) if inside else handle  # what stands for it in the function
    if inside:
        return convert_to_tensor(x, name=name)
    return convert_to_tensor(x, name=name, as_ref=hasattr(x, "_ref"))


class _Computation:
    """One call of `gradients`; see the module."""

    def __init__(
        self,
        graph: Any,
        ys: list[Any],
        xs: list[Any],
        stops: list[Any],
        method: int,
        recording: Recording | None,
    ) -> None:
        self.graph, self.ys, self.xs, self.method = graph, ys, xs, method
        self.colocates = self.gates = False
        self.arrived: dict[Tensor, list[Any]] = {}
        self.unwatched = set() if recording is None else {x for x in xs if not recording.watches(x)}
        targets, sources = [y.op for y in ys], [x.op for x in xs if x not in self.unwatched]
        within = None if recording is None else recording.dependents()
        self.between = _between(targets, sources, within)
        self.pending: dict[Any, int] = dict.fromkeys(self.between, 0)
        self.loops: LoopGradients | None = None
        self.has_loops = False
        for op in self.between:
            if op.declaration.role in ("enter", "exit"):
                self.has_loops = True
            for x in op.inputs:
                if x.op in self.pending:
                    self.pending[x.op] += 1
        self.stops = {op for op in sources if not any(self.pending.get(x.op) for x in op.inputs)}
        self.stops.update(x.op for x in stops)
        if within is not None:
            self.stops.update(op for op in sources if op not in within)

    # ---- visiting the operations, backwards

    def run(self, flows: list[Any]) -> None:
        """Visits the operations; afterwards `arrived` holds the gradients."""
        for i, (y, flow) in enumerate(zip(self.ys, flows)):
            with self._colocated(y.op):
                self._arrive(y, _first_gradient(y, flow, i))
        pending = self.pending
        loops = self.loops = LoopGradients(self) if self.has_loops else None
        begun = dict.fromkeys(y.op for y in self.ys if not pending.get(y.op))
        ready = deque(op for y in begun for op in loops.offer(y)) if loops else deque(begun)
        while ready:
            op = ready.popleft()
            if op not in pending:
                continue
            with self._colocated(op), (loops and loops.context_of(op)) or _UNCHANGED:
                self._visit(op)
            for x in op.inputs:
                source = x.op
                if source in pending:
                    pending[source] -= 1
                    if not pending[source]:
                        ready.extend(loops.offer(source) if loops else (source,))
                    elif op.declaration.role == "exit":  # the Switch of a loop is visited twice
                        ready.append(source)

    def _colocated(self, op: Any) -> contextlib.AbstractContextManager[None]:
        return self.graph.colocate_with(op) if self.colocates else _UNCHANGED

    def _arrive(self, tensor: Tensor, gradient: Any) -> None:
        self.arrived.setdefault(tensor, []).append(gradient)

    def _visit(self, op: Any) -> None:
        arrived = self.arrived
        found = False
        for output in op.outputs:
            grads = arrived.get(output)
            if grads is not None:
                found = True
                if len(grads) > 1:
                    grads[:] = [aggregate(grads, self.method, output.op.name)]
        if not found or op in self.stops:
            return
        if self.loops is not None and is_loop_primitive(op):
            with self.graph.name_scope(op.name + "_grad"):
                results = self.loops.gradient(op, [self._arrived_at(x) for x in op.outputs])
                self._hand_on(op, self._gated(results))
            return
        function = gradient_function(op)
        if function is None:
            return
        grads = [self._by_output(op, output) for output in op.outputs]
        with self.graph.name_scope(op.name + "_grad"):
            results = self._call(function, op, grads)
        self._hand_on(op, results)

    def _hand_on(self, op: Any, results: list[Any]) -> None:
        for i, (x, gradient) in enumerate(zip(op.inputs, results)):
            if gradient is not None:
                _check_shape(op, i, x, gradient)
                self._arrive(x, gradient)

    def _arrived_at(self, output: Tensor) -> Any:
        grads = self.arrived.get(output)
        return None if grads is None else grads[0]

    def _by_output(self, op: Any, output: Tensor) -> Any:
        grads = self.arrived.get(output)
        if grads is not None:
            return grads[0]
        if not is_trainable(output):
            return None
        zeros = self.loops.zeros(op, output) if self.loops else None
        return zeros_for_gradient(op, output) if zeros is None else zeros

    def _call(self, function: Any, op: Any, grads: list[Any]) -> list[Any]:
        results = function(op, *grads)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        if len(results) != len(op.inputs):
            raise ValueError(
                f"Num gradients {len(results)} generated for op {op.node_def} "
                f"do not match num inputs {len(op.inputs)}"
            )
        return self._gated(results)

    def _gated(self, results: list[Any]) -> list[Any]:
        if self.gates and sum(gradient is not None for gradient in results) > 1:
            with self.graph.device(None), self.graph.colocate_with(None, ignore_existing=True):
                results = tie_together(results)
        return results

    def result(self, x: Any, unconnected: str) -> Any:
        """The gradient with respect to `x`."""
        grads = self.arrived.get(x)
        if grads is None or x in self.unwatched:
            return _zeros(x) if unconnected == UnconnectedGradients.ZERO else None
        return grads[0]


_UNCHANGED: contextlib.AbstractContextManager[None] = contextlib.nullcontext()


def _between(
    targets: Iterable[Any], sources: Iterable[Any], within: set[Operation] | None
) -> dict[Any, None]:
    """The operations on a path of trainable tensors from `sources` to `targets`, both included.

    After its source a path has only operations of `within`, if that is given.
    """
    reached = set()
    queue = deque(sources)
    while queue:
        op = queue.popleft()
        if op in reached:
            continue
        reached.add(op)
        for output in op.outputs:
            if output.dtype.base_dtype in _TRAINABLE:
                consumers = output._consumers
                queue.extend(consumers if within is None else [op for op in consumers if op in within])
    between: dict[Any, None] = {}
    queue = deque(targets)
    while queue:
        op = queue.popleft()
        if op in reached and op not in between:
            between[op] = None
            if not leaves_a_gradient(op):
                queue.extend([x.op for x in op.inputs])
    return between


# ---- where gradients begin


def _first_gradient(y: Any, flow: Any, i: int) -> Any:
    """The gradient with respect to y: ones, or the caller's, as a node of its own."""
    dtype = y.dtype.base_dtype
    if flow is None:
        if dtype.is_complex:
            raise TypeError(f"Gradients of complex tensors ({y}) must set grad_ys (y.dtype = {dtype.name})")
        return _ones(y, f"grad_ys_{i}")
    given = flow.dtype.base_dtype
    if dtype.is_floating or dtype.is_integer:
        if not (given.is_floating or given.is_integer):
            raise TypeError(
                f"Gradient type {given.name} generated for real or integer-valued tensor {y} "
                f"with type {dtype.name} "
                "must be real or integer"
            )
    elif dtype.is_complex:
        if not given.is_complex:
            raise TypeError(
                f"Gradient type {given.name} generated for complex-valued tensor {y} with type {dtype.name} "
                "must be real"
            )
    elif dtype is not given:
        raise TypeError(f"Tensor {y} with type {dtype.name} must be numeric to obtain a default gradient")
    if isinstance(flow, IndexedSlices):
        return IndexedSlices(
            F.Identity(flow.values, name=f"grad_ys_{i}_values"),
            F.Identity(flow.indices, name=f"grad_ys_{i}_indices"),
            None if flow.dense_shape is None else F.Identity(flow.dense_shape, name=f"grad_ys_{i}_shape"),
        )
    return F.Identity(flow, name=f"grad_ys_{i}")


def _ones(y: Any, name: str) -> Any:
    dense = y.values if isinstance(y, IndexedSlices) else y
    dims = dense.dims
    if dims is not None and None not in dims:
        shape = constant(dims, dtypes.int32, name="Shape")
    else:
        shape = F.Shape(dense)
    return F.Fill(shape, constant(1, y.dtype.base_dtype, name=name), name="Fill")


def _zeros(x: Any) -> Any:
    if x.dtype is dtypes.resource:
        variable = variable_behind(x).attributes
        return zeros(variable["shape"], variable["dtype"])
    return zeros_like(x)


def _check_shape(op: Operation, i: int, x: Tensor, gradient: Any) -> None:
    """Sets the gradient's static shape to its input's; ValueError if they do not agree."""
    if (
        type(gradient) is not Tensor
        or x.dims is None
        or gradient.dims == x.dims
        or x.dtype is dtypes.resource
    ):
        return
    try:
        gradient.dims = merge(gradient.dims, x.dims)
    except ValueError:
        raise ValueError(
            "Incompatible shapes between op input and calculated input gradient. Forward operation: "
            f"{op.name}. Input index: {i}. Original input shape: {TensorShape.from_dims(x.dims)}. "
            f"Calculated input "
            f"gradient shape: {TensorShape.from_dims(gradient.dims)}"
        ) from None
