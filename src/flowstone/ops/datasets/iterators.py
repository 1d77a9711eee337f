"""Iterators: what hands out the elements of a dataset, a resource of the session's containers.

An iterator has no elements until an initialiser (MakeIterator) gives it a dataset, or the function of a
OneShotIterator makes one. Elements are handed out one thread at a time; a wait ends with its step. An
iterator ends with its container or its session, and its dataset's threads with it.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import CPU, Environment, FunctionCall, StepCall, Value
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, is_compatible
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.iteration import ELEMENTS, Dataset, Element, Iteration
from flowstone.ops.datasets.iterator_states import decode_state, encode_state
from flowstone.ops.queues.queue_ops import find_resource

__all__: list[str] = []

_LOCK_SECONDS = 0.05
_numbers = itertools.count()


class IteratorState:
    """The place in a dataset, shared by all steps. `types`, `shapes`: those that its elements must have."""

    def __init__(self, name: str, types: Sequence[DType], shapes: Sequence[Dims]) -> None:
        self.name, self.types, self.shapes = name, types, shapes
        self.dataset: Dataset | None = None
        self.iteration: Iteration | None = None
        self.factory: Callable[[Any], Dataset] | None = None  # makes the dataset when it is first needed
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<iterator {self.name}>"

    def start(self, dataset: Dataset) -> None:
        """Begins a pass over `dataset` in place of the one before."""
        with self._lock:
            self._end()
            self.dataset, self.iteration = dataset, dataset.iterate()

    def next(self, step: Any) -> Element:
        """The next element. OutOfRangeError at the end, FailedPreconditionError without a dataset."""
        self._acquire(step)
        try:
            found = self._started(step).next(step)
        finally:
            self._lock.release()
        if found is None:
            raise errors.OutOfRangeError(None, None, "End of sequence")
        return found

    def save(self, step: Any) -> Any:
        """The state of the pass."""
        self._acquire(step)
        try:
            return self._started(step).save()
        finally:
            self._lock.release()

    def restore(self, step: Any, state: Any) -> None:
        """Goes on where an iterator of an equal dataset had this state."""
        self._acquire(step)
        try:
            self._started(step)
            assert self.dataset is not None
            self._end()
            self.iteration = self.dataset.iterate()
            self.iteration.restore(step, state)
        finally:
            self._lock.release()

    def release(self) -> None:
        """Ends the pass, because the container or the session ends."""
        self._end()

    def _started(self, step: Any) -> Iteration:
        if self.iteration is None:
            if self.factory is None:
                raise errors.FailedPreconditionError(
                    None,
                    None,
                    "GetNext() failed because the iterator has not been initialized. Ensure that you have "
                    "run the initializer operation for this iterator before getting the next element.",
                )
            self.dataset = self.factory(step)
            self.iteration = self.dataset.iterate()
        return self.iteration

    def _acquire(self, step: Any) -> None:
        while not self._lock.acquire(timeout=_LOCK_SECONDS):
            step.check()

    def _end(self) -> None:
        if self.iteration is not None:
            self.iteration.close()
            self.iteration = None


# ---- making iterators


def _infer_handle(node: Node) -> Shapes:
    return ()


def _iterator_kernel(node: Node, env: Environment) -> Value:
    types, shapes = node.attributes["output_types"], node.attributes["output_shapes"]

    def make(name: str) -> IteratorState:
        return IteratorState(name, types, shapes)

    found = find_resource(node, env, "iterator", make)
    _check(types, shapes, found.types, found.shapes)
    return Value(found)


_SHARED = "shared_name: string ; container: string"
_anonymous = itertools.count()


def _anonymous_kernel(node: Node, env: Environment) -> Callable[[], Any]:
    types, shapes = node.attributes["output_types"], node.attributes["output_shapes"]
    pair = node.type == "AnonymousIteratorV2"

    def make() -> Any:
        state = IteratorState(f"AnonymousIterator{next(_anonymous)}", types, shapes)
        return (state, state) if pair else state  # what deletes it is the last reference

    return make


for _name, _outputs in (("AnonymousIterator", ""), ("AnonymousIteratorV2", ", deleter: variant")):
    _made = op(_name, f"-> handle: resource{_outputs}", ELEMENTS, stateful=True, capturable=False)
    _made.infer(lambda node: [()] * len(node.outputs) if len(node.outputs) > 1 else ())
    _made.kernel(CPU)(_anonymous_kernel)
    _made.not_differentiable()

for _name in ("Iterator", "IteratorV2"):
    _made = op(_name, "-> handle: resource", f"{_SHARED} ; {ELEMENTS}", stateful=True, capturable=False)
    _made.infer(_infer_handle)
    _made.kernel(CPU)(_iterator_kernel)
    _made.not_differentiable()

one_shot_iterator_op = op(
    "OneShotIterator",
    "-> handle: resource",
    f"dataset_factory: func ; {ELEMENTS} ; container: string = '' ; shared_name: string = ''",
    stateful=True,
    capturable=False,
)
one_shot_iterator_op.infer(_infer_handle)
one_shot_iterator_op.not_differentiable()


@one_shot_iterator_op.kernel(CPU)
def _(node: Node, env: Environment) -> Value:
    types, shapes = node.attributes["output_types"], node.attributes["output_shapes"]

    def make(name: str) -> IteratorState:
        state = IteratorState(name, types, shapes)
        state.factory = _factory(env.function(node, node.attributes["dataset_factory"]), types, shapes)
        return state

    return Value(find_resource(node, env, "iterator", make))


def _factory(
    function: FunctionCall, types: Sequence[DType], shapes: Sequence[Dims]
) -> Callable[[Any], Dataset]:
    def make(step: Any) -> Dataset:
        (dataset,) = function(step)
        if not isinstance(dataset, Dataset):
            raise invalid("The `dataset_factory` function must return a single scalar of dtype DT_VARIANT.")
        return dataset

    return make


make_iterator_op = op(
    "MakeIterator",
    "dataset: variant, iterator: resource ->",
    "",
    stateful=True,
    mutates=[1],
    capturable=False,
)
make_iterator_op.infer(lambda node: [])
make_iterator_op.not_differentiable()


@make_iterator_op.kernel(CPU)
def _(node: Node, env: Environment) -> StepCall:
    def start(step: Any, dataset: Dataset, iterator: IteratorState) -> None:
        iterator.start(dataset)

    return StepCall(start)


# ---- elements


def _infer_components(node: Node) -> Shapes:
    return list(node.attributes["output_shapes"])


def _next_kernel(node: Node, env: Environment) -> StepCall:
    types, shapes = node.attributes["output_types"], node.attributes["output_shapes"]

    def get(step: Any, iterator: IteratorState) -> Any:
        found = iterator.next(step)
        check_element(found, types, shapes)
        return found

    return StepCall(get)


for _name in ("IteratorGetNext", "IteratorGetNextSync"):
    _made = op(
        _name, "iterator: resource -> components: *output_types", ELEMENTS, stateful=True, mutates=[0],
        overlapping=True, capturable=False, role="element",
    )  # fmt: skip
    _made.infer(_infer_components)
    _made.kernel(CPU)(_next_kernel)
    _made.not_differentiable()


def check_element(element: Element, types: Sequence[DType], shapes: Sequence[Dims]) -> None:
    """InvalidArgumentError unless an element has these types and shapes."""
    if len(element) != len(types):
        raise invalid(f"Expected {len(types)} components but got {len(element)}.")
    for i, (value, dtype, dims) in enumerate(zip(element, types, shapes)):
        if isinstance(value, torch.Tensor):
            if value.dtype is not dtype.torch:
                raise invalid(
                    f"Data type mismatch at component {i}: expected {dtype.name} but got {value.dtype}."
                )
            if dims is not None and not is_compatible(value.shape, dims):
                raise _other_shape(i, dims, value.shape)


def _other_shape(component: int, expected: Any, found: Any) -> Exception:
    return invalid(
        f"Incompatible shapes at component {component}: expected {_show(expected)} but got {_show(found)}."
    )


def _show(dims: Any) -> str:
    return "<unknown>" if dims is None else "[" + ",".join("?" if n is None else str(n) for n in dims) + "]"


def _check(
    types: Sequence[DType], shapes: Sequence[Dims], other_types: Sequence[DType], other_shapes: Sequence[Dims]
) -> None:
    """InvalidArgumentError unless the elements of two iterators may be the same."""
    if tuple(types) != tuple(other_types):
        raise invalid(
            f"The iterator's elements have the types {[t.name for t in other_types]}, not "
            f"{[t.name for t in types]}"
        )
    for i, (dims, other) in enumerate(zip(shapes, other_shapes)):
        if dims is not None and other is not None and not _may_be_equal(dims, other):
            raise _other_shape(i, dims, other)


def _may_be_equal(dims: Sequence[int | None], other: Sequence[int | None]) -> bool:
    return len(dims) == len(other) and all(a is None or b is None or a == b for a, b in zip(dims, other))


dataset_to_single_element_op = op(
    "DatasetToSingleElement", "dataset: variant -> components: *output_types",
    f"{ELEMENTS} ; metadata: string = ''", overlapping=True, capturable=False,
)  # fmt: skip
dataset_to_single_element_op.infer(_infer_components)
dataset_to_single_element_op.not_differentiable()


@dataset_to_single_element_op.kernel(CPU)
def _(node: Node, env: Environment) -> StepCall:
    types, shapes = node.attributes["output_types"], node.attributes["output_shapes"]

    def get(step: Any, dataset: Dataset) -> Any:
        iteration = dataset.iterate()
        try:
            found = iteration.next(step)
            if found is None:
                raise invalid("Dataset was empty.")
            check_element(found, types, shapes)
            if iteration.next(step) is not None:
                raise invalid("Dataset had more than one element.")
        finally:
            iteration.close()
        return found

    return StepCall(get)


# ---- names of iterators


def _handles(env: Environment) -> weakref.WeakValueDictionary[bytes, IteratorState]:
    resources: ResourceStore = env.resources  # type: ignore[assignment]
    return resources.look_up_or_create(  # type: ignore[no-any-return]
        "", ("iterator handles", ""), weakref.WeakValueDictionary
    )


iterator_to_string_handle_op = op(
    "IteratorToStringHandle", "resource_handle: resource -> string_handle: string", stateful=True,
    capturable=False,
)  # fmt: skip
iterator_to_string_handle_op.infer(_infer_handle)
iterator_to_string_handle_op.not_differentiable()


@iterator_to_string_handle_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[IteratorState], Any]:
    handles = _handles(env)

    def name(iterator: IteratorState) -> Any:
        text = np.empty((), object)
        text[()] = f"{iterator.name}@{id(iterator):x}".encode()
        handles[text.item()] = iterator
        return text

    return name


for _name in ("IteratorFromStringHandle", "IteratorFromStringHandleV2"):
    _made = op(
        _name, "string_handle: string -> resource_handle: resource",
        "output_types: list(type) >= 0 = [] ; output_shapes: list(shape) >= 0 = []", stateful=True,
        capturable=False,
    )  # fmt: skip
    _made.infer(_infer_handle)
    _made.not_differentiable()

    @_made.kernel(CPU)
    def _(node: Node, env: Environment) -> Callable[[Any], IteratorState]:
        handles = _handles(env)
        types, shapes = node.attributes["output_types"], node.attributes["output_shapes"]

        def find(handle: Any) -> IteratorState:
            iterator = handles.get(handle.item()) if not handle.shape else None
            if iterator is None:
                raise invalid(f"There is no iterator with the handle {handle.tolist()!r} in this session.")
            if types:
                _check(types, shapes or [None] * len(types), iterator.types, iterator.shapes)
            return iterator

        return find


# ---- the state of an iterator


class SavedIterator:
    """What SerializeIterator gives: the state of a pass; its bytes are what a checkpoint has of it."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def __bytes__(self) -> bytes:
        return encode_state(self.state)


serialize_iterator_op = op(
    "SerializeIterator", "resource_handle: resource -> serialized: variant",
    "external_state_policy: int = 0", stateful=True, capturable=False,
)  # fmt: skip
serialize_iterator_op.infer(lambda node: (None,))
serialize_iterator_op.not_differentiable()


@serialize_iterator_op.kernel(CPU)
def _(node: Node, env: Environment) -> StepCall:
    def save(step: Any, iterator: IteratorState) -> Any:
        boxes = np.empty(1, object)
        boxes[0] = SavedIterator(iterator.save(step))
        return boxes

    return StepCall(save)


deserialize_iterator_op = op(
    "DeserializeIterator", "resource_handle: resource, serialized: variant ->", stateful=True, mutates=[0],
    capturable=False,
)  # fmt: skip
deserialize_iterator_op.infer(lambda node: [])
deserialize_iterator_op.not_differentiable()


@deserialize_iterator_op.kernel(CPU)
def _(node: Node, env: Environment) -> StepCall:
    def restore(step: Any, iterator: IteratorState, serialized: Any) -> None:
        saved = serialized.reshape(-1)[0] if isinstance(serialized, np.ndarray) else serialized
        if isinstance(saved, bytes):
            iterator.restore(step, decode_state(saved))
        elif isinstance(saved, SavedIterator):
            iterator.restore(step, saved.state)
        else:
            raise invalid("DeserializeIterator: the value is not the state of an iterator")

    return StepCall(restore)
