"""Barriers: the operations, and `Barrier`, which joins the components of elements that come at different
times.

Each insertion brings one component for a batch of keys; an element may be taken once it has all of them. So
the parts of an example that different readers produce meet again by name. The runtime object is in
`barrier_state.py`.

>>> from flowstone.framework.graphs.graph import Graph
>>> with Graph().as_default():
...     barrier = Barrier(["float32", "int64"], shapes=[[2], []])
...     print(barrier.insert_many(0, ["a"], [[1.0, 2.0]]).name, barrier.take_many(4)[2][0].shape)
barrier_BarrierInsertMany (4, 2)
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, AsyncCall, Environment, StepCall, Value
from flowstone.framework.declarations.operation import F, op
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.node import Node, static_value
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes as _dtypes
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.queues.barrier_state import BarrierState
from flowstone.ops.queues.queue_ops import find_resource, type_names

__all__ = ["Barrier"]

_REFERENCE = "handle: Ref(string)"


def _make_barrier(node: Node, env: Environment) -> Value:
    attributes = node.attributes
    types = attributes["component_types"]
    if len(attributes["shapes"]) != len(types):
        raise invalid("All of the component shapes must be specified")
    if attributes["capacity"] != -1:
        raise invalid(f"Barrier only accepts capacity=-1.  Provided was {attributes['capacity']}")
    shapes = tuple(() if dims is None else dims for dims in attributes["shapes"])
    barrier = find_resource(
        node, env, "barrier", lambda name: BarrierState(name, types, shapes, device=env.device)
    )
    if types != barrier.dtypes:
        raise invalid(
            f"Shared barrier '{barrier.name}' has component types {type_names(barrier.dtypes)} but requested "
            f"component types were {type_names(types)}"
        )
    if shapes != barrier.shapes:
        raise invalid(
            f"Shared barrier '{barrier.name}' has component shapes {_words(barrier.shapes)} but requested "
            f"component shapes were {_words(shapes)}"
        )
    return Value(barrier)


def _words(shapes: Any) -> str:
    return str([list(dims) for dims in shapes]).replace(" ", "")


barrier_op = op(
    "Barrier",
    f"-> {_REFERENCE}",
    "component_types: list(type) >= 1 ; shapes: list(shape) >= 0 = [] ; capacity: int = -1 ; "
    "container: string = '' ; shared_name: string = ''",
    stateful=True,
)
barrier_op.infer(lambda node: (2,))
barrier_op.kernel(CPU)(_make_barrier)

insert_many_op = op(
    "BarrierInsertMany",
    f"{_REFERENCE}, keys: string, values: T ->",
    "component_index: int",
    T=None,
    mutates=[0],
)
insert_many_op.infer(lambda node: None)


@insert_many_op.kernel(CPU)
def _(node: Node, env: Environment) -> StepCall:
    component, dtype = node.attributes["component_index"], node.attributes["T"]

    def insert(step: Any, barrier: BarrierState, keys: Any, values: Any) -> None:
        if 0 <= component < len(barrier.dtypes) and barrier.dtypes[component] is not dtype:
            raise invalid(
                f"Signature mismatch, have: string_ref, string, {type_names((dtype,))}-> expected: "
                f"string_ref, string, {type_names((barrier.dtypes[component],))}->"
            )
        barrier.insert_many(step, component, keys.ravel().tolist(), values)

    return StepCall(insert)


take_many_op = op(
    "BarrierTakeMany",
    f"{_REFERENCE}, num_elements: int32 -> indices: int64, keys: string, values: *component_types",
    "component_types: list(type) >= 1 ; allow_small_batch: bool = false ; "
    "wait_for_incomplete: bool = false ; timeout_ms: int = -1",
    asynchronous=True,
    mutates=[0],
    host=["num_elements"],
)
take_many_op.infer(lambda node: [None] * (2 + len(node.attributes["component_types"])))


@take_many_op.kernel(CPU)
def _(node: Node, env: Environment) -> AsyncCall:
    attributes = node.attributes
    types, small = attributes["component_types"], attributes["allow_small_batch"]
    if attributes["timeout_ms"] != -1:
        raise invalid("Timeout not supported yet.")

    def take(step: Any, done: Any, barrier: BarrierState, wanted: Any) -> None:
        if barrier.dtypes != types:
            start = "string_ref, int32->int64, string, "
            raise invalid(
                f"Signature mismatch, have: {start}{type_names(types)} expected: "
                f"{start}{type_names(barrier.dtypes)}"
            )
        if wanted.ndim:
            raise invalid("num_elements must be a scalar.")
        barrier.take_many(step, done, int(wanted), small)

    return AsyncCall(take)


close_op = op("BarrierClose", f"{_REFERENCE} ->", "cancel_pending_enqueues: bool = false", mutates=[0])
close_op.infer(lambda node: None)


@close_op.kernel(CPU)
def _(node: Node, env: Environment) -> StepCall:
    cancel = node.attributes["cancel_pending_enqueues"]
    return StepCall(lambda step, barrier: barrier.close(step, cancel))


ready_size_op = op("BarrierReadySize", f"{_REFERENCE} -> size: int32", mutates=[0])
ready_size_op.kernel(CPU)(
    lambda node, env: lambda barrier: torch.tensor(barrier.ready_size, dtype=torch.int32)
)
incomplete_size_op = op("BarrierIncompleteSize", f"{_REFERENCE} -> size: int32", mutates=[0])
incomplete_size_op.kernel(CPU)(
    lambda node, env: lambda barrier: torch.tensor(barrier.incomplete_size, dtype=torch.int32)
)
for _declaration in (ready_size_op, incomplete_size_op):
    _declaration.infer(lambda node: ())
for _declaration in (
    barrier_op, insert_many_op, take_many_op, close_op, ready_size_op, incomplete_size_op,
):  # fmt: skip
    _declaration.not_differentiable()


class Barrier:
    """Joins elements of several components by key.

    `types`: of the components. `shapes`: fully defined and without zeros (default: scalars). `shared_name`:
    sessions on one target share barriers of a name. Raises ValueError for other shapes.
    """

    def __init__(
        self, types: Any, shapes: Any = None, shared_name: str | None = None, name: str = "barrier"
    ) -> None:
        given = types if isinstance(types, (list, tuple)) else [types]
        self._types = [_dtypes.as_dtype(dtype) for dtype in given]
        if shapes is None:
            self._shapes = [TensorShape(None) for _ in self._types]
        else:
            is_one = isinstance(shapes, TensorShape) or not isinstance(shapes, (list, tuple))
            is_one = is_one or (len(self._types) == 1 and all(isinstance(n, int) for n in shapes))
            self._shapes = [as_shape(shape) for shape in ([shapes] if is_one else shapes)]
            _check_shapes(self._shapes)
        self._barrier_ref = F.Barrier(
            component_types=self._types, shapes=self._shapes, shared_name=shared_name, name=name
        )
        self._name = self._barrier_ref.op.name.rpartition("/")[2]

    @property
    def barrier_ref(self) -> Tensor:
        """The handle."""
        return self._barrier_ref

    @property
    def name(self) -> str:
        """The name of the operation that makes it."""
        return self._barrier_ref.op.name

    def insert_many(self, component_index: int, keys: Any, values: Any, name: str | None = None) -> Operation:
        """Brings component `component_index` of the elements `keys` (string, [n]): `values`, [n, ...].

        A step fails with InvalidArgumentError for a key that has this component already, and with
        CancelledError if the barrier is closed and does not know a key.
        """
        return F.BarrierInsertMany.operation(
            self._barrier_ref,
            keys,
            values,
            component_index=component_index,
            name=name or f"{self._name}_BarrierInsertMany",
        )

    def take_many(
        self,
        num_elements: Any,
        allow_small_batch: bool = False,
        timeout: int | None = None,
        name: str | None = None,
    ) -> Any:
        """Takes `num_elements` complete elements (int32, []), waiting until there are so many.

        `allow_small_batch`: a closed barrier gives what is ready. Returns (indices, keys, values): int64 [n],
        numbers that grow with the time at which a key first came; string [n]; a list of components
        [n, ...]. A step fails with OutOfRangeError if the barrier is closed and cannot have so many.
        """
        taken = F.BarrierTakeMany.several(
            self._barrier_ref,
            num_elements,
            component_types=self._types,
            allow_small_batch=allow_small_batch,
            timeout_ms=-1 if timeout is None else timeout,
            name=name or f"{self._name}_BarrierTakeMany",
        )
        count = None if allow_small_batch else static_value(taken.indices.op.inputs[1])
        rows = TensorShape([None if count is None else int(count)])
        taken.indices.set_shape(rows)
        taken.keys.set_shape(rows)
        for value, shape in zip(taken.values, self._shapes):
            value.set_shape(rows.concatenate(shape))
        return taken

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Refuses new keys from now on; with `cancel_pending_enqueues` also drops incomplete elements."""
        return F.BarrierClose.operation(
            self._barrier_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_BarrierClose",
        )

    def ready_size(self, name: str | None = None) -> Tensor:
        """How many elements are complete: int32, []."""
        return F.BarrierReadySize(self._barrier_ref, name=name or f"{self._name}_BarrierReadySize")

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many elements lack components: int32, []."""
        return F.BarrierIncompleteSize(self._barrier_ref, name=name or f"{self._name}_BarrierIncompleteSize")


def _check_shapes(shapes: list[TensorShape]) -> None:
    if not all(shape.is_fully_defined() for shape in shapes):
        raise ValueError(f"All shapes must be fully defined: {shapes}")
    for i, shape in enumerate(shapes):
        if shape.num_elements() == 0:
            raise ValueError(f"Empty tensors are not supported, but received shape '{shape}' at index {i}")
