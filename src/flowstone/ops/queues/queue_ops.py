"""The operations of queues: one that makes each kind, and those that use any.

Both generations are here: a queue of TensorFlow 1.0 and before hands a reference along (``FIFOQueue``), later
ones a resource (``FIFOQueueV2``); either is the `queue_state.Queue` itself. Enqueues, dequeues and closes
wait without a thread. White paper 4.6.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, AsyncCall, Environment, Value
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.queues.queue_state import UNLIMITED, Queue
from flowstone.ops.queues.queue_storage import SINGLE, BlockStorage, HeapStorage, ListStorage, SlotStorage
from flowstone.ops.randomness.op_seeds import first_state, seeds_of
from flowstone.ops.randomness.random_words import RandomWords

_SHARING = "container: string = '' ; shared_name: string = ''"
_COMMON = (
    f"component_types: list(type) >= 1 ; shapes: list(shape) >= 0 = [] ; capacity: int = -1 ; {_SHARING}"
)
_RANDOM = (
    "component_types: list(type) >= 1 ; shapes: list(shape) >= 0 = [] ; capacity: int = -1 ; "
    f"min_after_dequeue: int = 0 ; seed: int = 0 ; seed2: int = 0 ; {_SHARING}"
)
_PRIORITY = (
    f"component_types: list(type) >= 0 = [] ; shapes: list(shape) >= 0 ; capacity: int = -1 ; {_SHARING}"
)
_numbers = itertools.count()


_T = TypeVar("_T")


def find_resource(node: Node, env: Environment, family: str, make: Callable[[str], _T]) -> _T:
    """The object that a node which makes a queue, barrier or the like stands for.

    `make(name)` makes it. With a shared name it is found by that in its container; without, it is the
    session's own.
    """
    shared = node.attributes["shared_name"]
    if shared:
        assert env.resources is not None  # making a queue is not folded
        container = node.attributes["container"]
        found: _T = env.resources.look_up_or_create(container, (family, shared), lambda: make(shared))
    else:
        found = env.state(node, lambda: make(f"_{next(_numbers)}_{node.name}"))
    return found


# ---- making queues


def _make_fifo(node: Node, env: Environment, name: str) -> Queue:
    return _make(node, env, name, "FIFOQueue", BlockStorage())


def _make_padding(node: Node, env: Environment, name: str) -> Queue:
    return _make(node, env, name, "PaddingFIFOQueue", BlockStorage())


def _make_random(node: Node, env: Environment, name: str) -> Queue:
    attributes = node.attributes
    spare, capacity = attributes["min_after_dequeue"], attributes["capacity"]
    if spare < 0:
        raise invalid(f"min_after_dequeue {spare} must be >= 0")
    if 0 <= capacity <= spare:
        raise invalid(f"min_after_dequeue {spare} must be < capacity {capacity}")
    seeds = _seeds(node)
    words = RandomWords(first_state(*seeds_of(seeds)))
    storage: Any = ListStorage(words)
    if attributes["shapes"]:
        most = capacity if capacity >= 0 else UNLIMITED
        storage = SlotStorage(attributes["shapes"], most, words if any(seeds) else None)
    return _make(node, env, name, "RandomShuffleQueue", storage, spare)


def _make_priority(node: Node, env: Environment, name: str) -> Queue:
    return _make(node, env, name, "PriorityQueue", HeapStorage())


def _seeds(node: Node) -> tuple[int, int]:
    return node.attributes["seed"], node.attributes["seed2"]


def _make(node: Node, env: Environment, name: str, kind: str, storage: Any, spare: int = 0) -> Queue:
    types, shapes = _components(node, kind)
    if shapes and len(shapes) != len(types):
        raise invalid(f"Expected {len(types)} shapes, one a component, but got {len(shapes)}")
    return Queue(
        kind,
        name,
        types,
        shapes or None,
        node.attributes["capacity"],
        storage,
        spare=spare,
        device=env.device,
    )


def _components(node: Node, kind: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    types, shapes = node.attributes["component_types"], node.attributes["shapes"]
    if kind == "PriorityQueue":
        return (dtypes.int64, *types), ((), *shapes)
    return types, shapes


def _check_shared(node: Node, kind: str, queue: Queue) -> None:
    """InvalidArgumentError if the queue that others made under this name is not the one that `node` means."""
    attributes = node.attributes
    if queue.kind != kind:
        raise invalid(f"Expected {queue.kind}, found {node.type}")
    if attributes["capacity"] not in (queue.capacity, -1) and queue.capacity != UNLIMITED:
        raise invalid(
            f"Shared queue '{queue.name}' has capacity {queue.capacity} but requested capacity was "
            f"{attributes['capacity']}"
        )
    types, shapes = _components(node, kind)
    if types != queue.dtypes:
        raise invalid(
            f"Shared queue '{queue.name}' has component types {type_names(queue.dtypes)} but requested "
            f"component types were {type_names(types)}"
        )
    if shapes != (queue.shapes or ()):
        raise invalid(
            f"Shared queue '{queue.name}' has component shapes {_shape_names(queue.shapes or ())} but "
            f"requested component shapes were {_shape_names(shapes)}"
        )
    if kind == "RandomShuffleQueue":
        _check_randomness(node, queue)


def _check_randomness(node: Node, queue: Queue) -> None:
    spare, seeds = queue.description
    if node.attributes["min_after_dequeue"] != spare:
        raise invalid(
            f"Shared queue '{queue.name}' has min_after_dequeue {spare} but requested min_after_dequeue was "
            f"{node.attributes['min_after_dequeue']}."
        )
    if _seeds(node) != seeds:
        raise invalid(
            f"Shared queue '{queue.name}' has random seeds {seeds} but requested seeds are {_seeds(node)}."
        )


def type_names(types: tuple[Any, ...]) -> str:
    """Types as TensorFlow's errors list them."""
    return ", ".join({"float32": "float", "float64": "double"}.get(t.name, t.name) for t in types)


def _shape_names(shapes: tuple[Any, ...]) -> str:
    words = [
        "?" if dims is None else f"[{','.join('?' if n is None else str(n) for n in dims)}]"
        for dims in shapes
    ]
    return f"[{','.join(words)}]"


def _handle_dims(dims: Dims, node: Node) -> Dims:
    return dims


def _declare_queue(kind: str, attributes: str, make: Callable[[Any, Any, str], Queue]) -> None:
    def kernel(node: Node, env: Environment) -> Value:
        def make_queue(name: str) -> Queue:
            queue = make(node, env, name)
            if kind == "RandomShuffleQueue":
                queue.description = (node.attributes["min_after_dequeue"], _seeds(node))
            return queue

        queue = find_resource(node, env, "queue", make_queue)
        _check_shared(node, kind, queue)
        return Value(queue)

    for name, output, dims in ((kind, "Ref(string)", (2,)), (f"{kind}V2", "resource", ())):
        declaration = op(name, f"-> handle: {output}", attributes, stateful=True)
        declaration.infer(partial(_handle_dims, dims))
        declaration.kernel(CPU, GPU)(kernel)
        declaration.not_differentiable()


_declare_queue("FIFOQueue", _COMMON, _make_fifo)
_declare_queue("PaddingFIFOQueue", _COMMON, _make_padding)
_declare_queue("RandomShuffleQueue", _RANDOM, _make_random)
_declare_queue("PriorityQueue", _PRIORITY, _make_priority)

fake_queue = op("FakeQueue", "resource: resource -> handle: Ref(string)", stateful=True, aliases=[0])
fake_queue.infer(lambda node: (2,))
fake_queue.kernel(CPU, GPU)(lambda node, env: lambda queue: queue)
fake_queue.not_differentiable()


# ---- using them


def _declare(
    name: str, signature: str, attributes: str, infer: Any, kernel: Any, **traits: Any
) -> tuple[OpDeclaration, OpDeclaration]:
    """The op on references, and the one on resources."""
    both = []
    for suffix, handle, effects in (
        ("", "Ref(string)", {"mutates": [0]}),
        ("V2", "resource", {"stateful": True}),
    ):
        declaration = op(
            f"{name}{suffix}", signature.format(handle=f"handle: {handle}"), attributes, **effects, **traits
        )
        declaration.infer(infer)
        declaration.kernel(CPU, GPU)(kernel)
        both.append(declaration.not_differentiable())
    return both[0], both[1]


def _check_no_timeout(node: Node) -> None:
    if node.attributes["timeout_ms"] != -1:
        raise invalid("Timeout not supported yet.")


def _enqueue_kernel(many: bool) -> Any:
    def factory(node: Node, env: Environment) -> AsyncCall:
        _check_no_timeout(node)
        types = node.attributes["Tcomponents"]

        def enqueue(step: Any, done: Any, queue: Queue, *components: Any) -> None:
            if queue.dtypes == types:
                queue.enqueue(step, done, components, many)
            else:
                done(
                    None,
                    _signature_mismatch(queue, f"{type_names(types)}->", f"{type_names(queue.dtypes)}->"),
                )

        def at_once(queue: Queue, *components: Any) -> bool:
            return queue.dtypes == types and queue.enqueue_at_once(components, many)

        return AsyncCall(enqueue, at_once)

    return factory


def _signature_mismatch(queue: Queue, have: str, expected: str) -> Exception:
    have, expected = (f", {t}" if t.endswith("->") else f"->{t}" for t in (have, expected))
    return invalid(f"Signature mismatch, have: resource{have} expected: resource{expected}")


def _dequeue_kernel(node: Node, env: Environment) -> AsyncCall:
    _check_no_timeout(node)
    types, up_to = node.attributes["component_types"], "UpTo" in node.type

    def dequeue(step: Any, done: Any, queue: Queue, n: Any = None) -> None:
        if queue.dtypes != types:
            done(None, _signature_mismatch(queue, type_names(types), type_names(queue.dtypes)))
        elif n is None:
            queue.dequeue(step, done)
        else:
            queue.dequeue_many(step, done, int(n), up_to)

    def at_once(queue: Queue, n: Any = SINGLE) -> Any:
        n = int(n)
        return queue.dequeue_at_once(n, up_to) if queue.dtypes == types and n >= SINGLE else None

    return AsyncCall(dequeue, at_once)


def _close_kernel(node: Node, env: Environment) -> AsyncCall:
    cancel = node.attributes["cancel_pending_enqueues"]
    return AsyncCall(lambda step, done, queue: queue.close(step, done, cancel))


def _infer_dequeue(node: Node) -> Shapes:
    if len(node.inputs) > 1 and "Many" in node.type:
        n = node.constant(1)
        if n is not None and n.ndim == 0 and int(n) < 0:
            raise ValueError(f"Input 'n' must be >= 0, but is {int(n)}")
    return [None] * len(node.attributes["component_types"])


_TIMEOUT = "timeout_ms: int = -1"
_ENQUEUE = f"Tcomponents: list(type) >= 1 ; {_TIMEOUT}"
_DEQUEUE = f"component_types: list(type) >= 1 ; {_TIMEOUT}"
_COMPONENTS = "{handle}, components: *Tcomponents ->"
_OUTPUTS = "components: *component_types"

queue_enqueue, queue_enqueue_v2 = _declare(
    "QueueEnqueue", _COMPONENTS, _ENQUEUE, lambda node: None, _enqueue_kernel(False),
    asynchronous=True, keeps=[1],
)  # fmt: skip
queue_enqueue_many, queue_enqueue_many_v2 = _declare(
    "QueueEnqueueMany", _COMPONENTS, _ENQUEUE, lambda node: None, _enqueue_kernel(True),
    asynchronous=True, keeps=[1],
)  # fmt: skip
queue_dequeue, queue_dequeue_v2 = _declare(
    "QueueDequeue", "{handle} -> " + _OUTPUTS, _DEQUEUE, _infer_dequeue, _dequeue_kernel,
    asynchronous=True, overlapping=True, role="element",
)  # fmt: skip
queue_dequeue_many, queue_dequeue_many_v2 = _declare(
    "QueueDequeueMany", "{handle}, n: int32 -> " + _OUTPUTS, _DEQUEUE, _infer_dequeue, _dequeue_kernel,
    asynchronous=True, overlapping=True, role="element", host=["n"],
)  # fmt: skip
queue_dequeue_up_to, queue_dequeue_up_to_v2 = _declare(
    "QueueDequeueUpTo", "{handle}, n: int32 -> " + _OUTPUTS, _DEQUEUE, _infer_dequeue, _dequeue_kernel,
    asynchronous=True, overlapping=True, role="element", host=["n"],
)  # fmt: skip
queue_close, queue_close_v2 = _declare(
    "QueueClose", "{handle} ->", "cancel_pending_enqueues: bool = false", lambda node: None, _close_kernel,
    asynchronous=True,
)  # fmt: skip
queue_is_closed, queue_is_closed_v2 = _declare(
    "QueueIsClosed", "{handle} -> is_closed: bool", "", lambda node: (),
    lambda node, env: lambda queue: torch.tensor(queue.is_closed),
)  # fmt: skip
queue_size, queue_size_v2 = _declare(
    "QueueSize", "{handle} -> size: int32", "", lambda node: (),
    lambda node, env: lambda queue: torch.tensor(queue.size, dtype=torch.int32),
)  # fmt: skip
