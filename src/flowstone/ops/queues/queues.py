"""Queues: `FIFOQueue`, `RandomShuffleQueue`, `PaddingFIFOQueue`, `PriorityQueue`, and what they share.

A queue lives in the session, apart from any step: one step's enqueue meets another's dequeue, and either
waits, holding no thread, while the queue is full or has too few elements (white paper 4.6).

>>> from flowstone.framework.graphs.graph import Graph
>>> with Graph().as_default():
...     queue = FIFOQueue(10, ['float32'], shapes=[[2]])
...     print(queue.enqueue([[1.0, 2.0]]).name, queue.dequeue_many(3).shape)
fifo_queue_enqueue (3, 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes as _dtypes
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.ops.arrays.gathering import gather
from flowstone.ops.arrays.packing import stack
from flowstone.ops.randomness.op_seeds import get_seed, salted_seed

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]


class QueueBase:
    """What all queues have in common.

    Elements are tuples of tensors, one a component, with types `dtypes` and, unless None, shapes `shapes`;
    with `names` they are dicts. `queue_ref`: the handle. Raises ValueError where lengths disagree.
    """

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Any) -> None:
        self._dtypes = list(dtypes)
        if shapes is None:
            self._shapes = [TensorShape(None) for _ in self._dtypes]
        else:
            if len(shapes) != len(self._dtypes):
                raise ValueError(
                    "Queue shapes must have the same length as dtypes, "
                    f"received len(shapes)={len(shapes)}, len(dtypes)={len(self._dtypes)}"
                )
            self._shapes = [as_shape(shape) for shape in shapes]
        if names is not None and len(names) != len(self._dtypes):
            raise ValueError(
                "Queue names must have the same length as dtypes,"
                f"received len(names)={len(names)},len {len(self._dtypes)}"
            )
        self._names = None if names is None else list(names)
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.rpartition("/")[2]

    @staticmethod
    def from_list(index: Any, queues: Any) -> QueueBase:
        """The one of `queues` whose place is `index` (int32, []); its steps choose.

        Raises TypeError if they are no queues, or of different types; ValueError for different names.
        """
        if not queues or not isinstance(queues, list) or not all(isinstance(q, QueueBase) for q in queues):
            raise TypeError("A list of queues expected")
        first = queues[0]
        if any(q.dtypes != first.dtypes for q in queues):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(q.names != first.names for q in queues):
            raise TypeError("Queues do not have matching component names.")
        shapes = [_common_shape([q.shapes[i] for q in queues]) for i in range(len(first.dtypes))]

        chosen = gather(stack([q.queue_ref for q in queues]), index)
        return QueueBase(first.dtypes, shapes, first.names, chosen)

    @property
    def queue_ref(self) -> Any:
        """The handle."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """The name of the operation that makes it."""
        return self._queue_ref.op.name  # type: ignore[no-any-return]

    @property
    def dtypes(self) -> list[Any]:
        """The components' types."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The components' shapes."""
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        """The components' names, or None."""
        return self._names

    # ---- enqueue

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """Puts one element in, waiting while the queue is full.

        `vals`: a tensor, a list or tuple of tensors, or (in a queue with names) a dict of them. Raises
        ValueError for shapes or keys that do not fit; a step fails with CancelledError if the queue is
        closed.
        """
        with scope.get_default_graph().name_scope(name or f"{self._name}_enqueue") as full_name:
            components = self._components(vals)
            for component, shape in zip(components, self._shapes):
                component.shape.assert_is_compatible_with(shape)
            return self._op("Enqueue")(self._queue_ref, components, name=full_name)  # type: ignore[no-any-return]

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """Puts the rows of the components, [n, ...] each, in as n elements, waiting whenever the queue is
        full.

        Raises as `enqueue`, and ValueError where the components disagree on n.
        """
        with scope.get_default_graph().name_scope(name or f"{self._name}_EnqueueMany") as full_name:
            components = self._components(vals)
            rows = components[0].shape.with_rank_at_least(1)[0]
            for component, shape in zip(components, self._shapes):
                rows = rows.merge_with(component.shape.with_rank_at_least(1)[0])
                component.shape[1:].assert_is_compatible_with(shape)
            return self._op("EnqueueMany")(self._queue_ref, components, name=full_name)  # type: ignore[no-any-return]

    def _components(self, values: Any) -> list[Tensor]:
        if isinstance(values, dict):
            if self._names is None:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self._names, key=str) != sorted(values, key=str):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of Queue.  "
                    f"Dictionary: {sorted(values)},Queue: {sorted(self._names)}"
                )
            values = [values[key] for key in self._names]
        else:
            if self._names is not None:
                raise ValueError("You must enqueue a dictionary in a Queue with names")
            values = list(values) if isinstance(values, (list, tuple)) else [values]
        return [
            convert_to_tensor(value, dtype, f"component_{i}")
            for i, (value, dtype) in enumerate(zip(values, self._dtypes))
        ]

    # ---- dequeue

    def dequeue(self, name: str | None = None) -> Any:
        """Takes one element out, waiting while the queue is empty.

        Returns a tensor, a list of tensors where there are several components, or a dict where they have
        names. A step fails with OutOfRangeError if the queue is closed and empty.
        """
        outputs = self._op("Dequeue")(
            self._queue_ref, component_types=self._dtypes, name=name or f"{self._name}_Dequeue"
        )
        for output, shape in zip(outputs, self._shapes):
            output.set_shape(shape)
        return self._element(outputs)

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Takes `n` elements (int32, []) out as the rows of one tensor a component, waiting until there are
        so many.

        In the form of `dequeue`. A step fails with OutOfRangeError if the queue is closed and has fewer.
        """
        outputs = self._op("DequeueMany")(
            self._queue_ref, n, component_types=self._dtypes, name=name or f"{self._name}_DequeueMany"
        )
        count = static_value(outputs[0].op.inputs[1])
        return self._batch(outputs, None if count is None else int(count))

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """As `dequeue_many`, but a closed queue gives what it has; OutOfRangeError if that is nothing."""
        outputs = self._op("DequeueUpTo")(
            self._queue_ref, n, component_types=self._dtypes, name=name or f"{self._name}_DequeueUpTo"
        )
        return self._batch(outputs, None)

    def _batch(self, outputs: list[Tensor], rows: int | None) -> Any:
        for output, shape in zip(outputs, self._shapes):
            output.set_shape(TensorShape([rows]).concatenate(shape))
        return self._element(outputs)

    def _element(self, outputs: list[Tensor]) -> Any:
        if self._names is not None:
            return dict(zip(self._names, outputs))
        return outputs[0] if len(outputs) == 1 else outputs

    # ---- the queue as a whole

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Closes it: enqueues fail from now on, dequeues once it lacks elements. A step waits until the
        enqueues before are done, unless `cancel_pending_enqueues`, which fails them.
        """
        return self._op("Close")(  # type: ignore[no-any-return]
            self._queue_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_Close",
        )

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether it is closed: bool, []."""
        return self._op("IsClosed")(self._queue_ref, name=name or f"{self._name}_Is_Closed")  # type: ignore[no-any-return]

    def size(self, name: str | None = None) -> Tensor:
        """How many elements are in it: int32, []."""
        return self._op("Size")(self._queue_ref, name=name or f"{self._name}_Size")  # type: ignore[no-any-return]

    def _op(self, name: str) -> Any:
        is_resource = self._queue_ref.dtype.base_dtype is _dtypes.resource
        return getattr(F, f"Queue{name}{'V2' if is_resource else ''}")


def _common_shape(shapes: Sequence[TensorShape]) -> TensorShape:
    """The most that holds for all of `shapes`."""
    shape = shapes[0]
    for other in shapes[1:]:
        shape = shape.most_specific_compatible_shape(other)
    return shape


def _type_list(types: Any) -> list[Any]:
    assert types is not None
    if not isinstance(types, (list, tuple)):
        types = [types]
    return [_dtypes.as_dtype(dtype) for dtype in types]


def _shape_list(
    shapes: Any, types: list[Any], unknown_dim_allowed: bool = False, unknown_rank_allowed: bool = False
) -> list[TensorShape] | None:
    if shapes is None:
        return None
    is_one = isinstance(shapes, TensorShape) or not isinstance(shapes, (list, tuple))
    if is_one or (len(types) == 1 and all(n is None or hasattr(n, "__index__") for n in shapes)):
        shapes = [shapes]
    found = [as_shape(shape) for shape in shapes]
    if not unknown_dim_allowed and not all(shape.is_fully_defined() for shape in found):
        raise ValueError(f"All shapes must be fully defined: {found}")
    if not unknown_rank_allowed and any(shape.dims is None for shape in found):
        raise ValueError(f"All shapes must have a defined rank: {found}")
    return found


def _name_list(names: Any, types: list[Any]) -> list[str] | None:
    if names is None:
        return None
    if not isinstance(names, (list, tuple)):
        names = [names]
    if len(names) != len(types):
        raise ValueError(
            "List of names must have the same length as the list of dtypes, "
            f"received len(names)={len(names)},len(dtypes)={len(types)}"
        )
    return list(names)


def _check_lengths(shapes: Sequence[Any] | None, types: Sequence[Any]) -> None:
    if shapes is not None and len(shapes) != len(types):
        raise ValueError(
            "Queue shapes must have the same length as dtypes, "
            f"received len(shapes)={len(shapes)}, len(dtypes)={len(types)}"
        )


class FIFOQueue(QueueBase):
    """First in, first out.

    `capacity`: the most elements it holds (negative: any number). `shapes`: fully defined, or None, where
    elements may be of any shape and `dequeue_many` is an error. `shared_name`: sessions on one target share
    queues of a name.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = "fifo_queue",
    ) -> None:
        types = _type_list(dtypes)
        shapes, names = _shape_list(shapes, types), _name_list(names, types)
        _check_lengths(shapes, types)
        graph = scope.get_default_graph()
        with graph.control_dependencies(None), graph.device("CPU"):
            handle = F.FIFOQueueV2(
                component_types=types,
                shapes=shapes or (),
                capacity=capacity,
                shared_name=shared_name,
                name=name,
            )
        super().__init__(types, shapes, names, handle)


class RandomShuffleQueue(QueueBase):
    """Elements come out in random order; while it is open, `min_after_dequeue` of them stay to be mixed with.

    The other arguments are `FIFOQueue`'s; `seed` is the op's own.
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        types = _type_list(dtypes)
        shapes, names = _shape_list(shapes, types), _name_list(names, types)
        _check_lengths(shapes, types)
        seed1, seed2 = get_seed(seed)
        if seed1 is None and seed2 is None:
            seed1, seed2 = 0, 0
        elif seed is None and shared_name is not None:
            seed2 = salted_seed(seed1, shared_name)  # of all graphs that share the queue
        handle = F.RandomShuffleQueueV2(
            component_types=types,
            shapes=shapes or (),
            capacity=capacity,
            min_after_dequeue=min_after_dequeue,
            seed=seed1,
            seed2=seed2,
            shared_name=shared_name,
            name=name,
        )
        super().__init__(types, shapes, names, handle)


class PaddingFIFOQueue(QueueBase):
    """First in, first out; a batch of elements of different sizes is filled up with zeros ('' in text).

    `shapes`: of known rank, None for the sizes that may differ. The other arguments are `FIFOQueue`'s.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        types = _type_list(dtypes)
        shapes = _shape_list(shapes, types, unknown_dim_allowed=True)
        names = _name_list(names, types)
        if shapes is None:
            raise ValueError("When providing partial shapes, a list of shapes must be provided.")
        _check_lengths(shapes, types)
        handle = F.PaddingFIFOQueueV2(
            component_types=types, shapes=shapes, capacity=capacity, shared_name=shared_name, name=name
        )
        super().__init__(types, shapes, names, handle)


class PriorityQueue(QueueBase):
    """The element of the smallest priority first: a component before the others, int64, [].

    `types` and `shapes` are of the components that follow it. The other arguments are `FIFOQueue`'s.
    """

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        others = _type_list(types)
        given = _shape_list(shapes, others)
        if given is None:
            raise TypeError("Expected list for 'shapes' argument to 'priority_queue_v2' Op, not None.")
        handle = F.PriorityQueueV2(
            component_types=others, shapes=given, capacity=capacity, shared_name=shared_name, name=name
        )
        super().__init__([_dtypes.int64, *others], [TensorShape([]), *given], names, handle)
