"""The operations of staging areas, in order and by key; any that name the same area meet in it.

A tuple that a step puts aside is copied once and kept until another step takes it, so that one step may load
or compute what the next one uses. The runtime objects are in `staging_state.py`, the classes in
`staging_areas.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, AsyncCall, Environment, Kernel, KernelFactory
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.queues.queue_ops import find_resource, type_names
from flowstone.ops.queues.staging_state import StagingBuffer, StagingMap, copied

__all__: list[str] = []

_LIMITS = "capacity: int >= 0 = 0 ; memory_limit: int >= 0 = 0"
_SHARING = "container: string = '' ; shared_name: string = ''"
_TUPLES = f"{_LIMITS} ; dtypes: list(type) >= 1 ; {_SHARING}"
_ANY = f"{_LIMITS} ; dtypes: list(type) ; {_SHARING}"
_PARTS = f"{_LIMITS} ; dtypes: list(type) ; fake_dtypes: list(type) >= 1 ; {_SHARING}"


def _buffer(node: Node, env: Environment) -> StagingBuffer:
    attributes = node.attributes
    found: StagingBuffer = find_resource(
        node,
        env,
        "staging area",
        lambda name: StagingBuffer(name, attributes["capacity"], attributes["memory_limit"]),
    )
    return found


def _map(node: Node, env: Environment) -> StagingMap:
    attributes, ordered = node.attributes, node.type.startswith("Ordered")
    found: StagingMap = find_resource(
        node,
        env,
        "ordered staging map" if ordered else "staging map",
        lambda name: StagingMap(name, attributes["capacity"], attributes["memory_limit"], ordered),
    )
    return found


def _declare(
    name: str, signature: str, attributes: str, kernel: Any, infer: Callable[[Any], Any], **traits: Any
) -> OpDeclaration:
    declaration = op(name, signature, attributes, stateful=True, **traits)
    declaration.infer(infer)
    declaration.kernel(CPU, GPU)(kernel)
    return declaration.not_differentiable()


def _checker(node: Node) -> Callable[[Any], None]:
    """Refuses a tuple of other types than the node declares."""
    types = node.attributes["dtypes"]

    def check(values: Any) -> None:
        if len(values) != len(types):
            raise invalid(f"The staged tuple has {len(values)} components, {len(types)} were asked for")
        for i, (value, dtype) in enumerate(zip(values, types)):
            held = dtypes.from_torch(value.dtype) if isinstance(value, torch.Tensor) else dtypes.string
            if held.torch is not dtype.torch:
                raise errors.InternalError(
                    None,
                    None,
                    f"Output {i} of type {type_names((held,))} does not match declared output type "
                    f"{type_names((dtype,))} for node {node.name}",
                )

    return check


def _size_kernel(find: Any, attribute: str) -> KernelFactory:
    def factory(node: Node, env: Environment) -> Kernel:
        area = find(node, env)
        return lambda: torch.tensor(getattr(area, attribute)(), dtype=torch.int32)

    return factory


def _clear_kernel(find: Any) -> Any:
    return lambda node, env: find(node, env).clear


def _no_dims(node: Node) -> Shapes:
    return [None] * len(node.outputs or node.attributes["dtypes"])


# ---- in order


def _stage(node: Node, env: Environment) -> AsyncCall:
    buffer = _buffer(node, env)
    return AsyncCall(lambda step, done, *values: buffer.put(step, done, copied(values)))


def _unstage(node: Node, env: Environment) -> AsyncCall:
    buffer, check = _buffer(node, env), _checker(node)
    return AsyncCall(lambda step, done: buffer.take(step, done, check))


def _stage_peek(node: Node, env: Environment) -> AsyncCall:
    buffer, check = _buffer(node, env), _checker(node)
    return AsyncCall(lambda step, done, index: buffer.peek(step, done, _scalar(index, "index"), check))


def _scalar(value: Any, name: str) -> int:
    if value.ndim:
        dtype = "int64" if name == "key" else "int32"
        raise invalid(
            f"{name} must be an {dtype} scalar, got tensor with shape: {format_dims(tuple(value.shape))}"
        )
    return int(value)


_declare("Stage", "values: *dtypes ->", _TUPLES, _stage, lambda node: None, asynchronous=True)
_declare("Unstage", "-> values: *dtypes", _TUPLES, _unstage, _no_dims, asynchronous=True)
_declare(
    "StagePeek", "index: int32 -> values: *dtypes", _TUPLES, _stage_peek, _no_dims,
    asynchronous=True, host=["index"],
)  # fmt: skip
_declare("StageSize", "-> size: int32", _ANY, _size_kernel(_buffer, "__len__"), lambda node: ())
_declare("StageClear", "->", _ANY, _clear_kernel(_buffer), lambda node: None)


# ---- by key


def _map_stage(node: Node, env: Environment) -> AsyncCall:
    area, types, given = _map(node, env), node.attributes["dtypes"], node.attributes["fake_dtypes"]

    def put(step: Any, done: Any, key: Any, indices: Any, *values: Any) -> None:
        places = indices.tolist()
        for place, dtype in zip(places, given):
            if 0 <= place < len(types) and types[place] is not dtype:
                raise invalid(
                    f"Component {place} is of type {type_names((types[place],))}, not {type_names((dtype,))}"
                )
        area.put(step, done, _scalar(key, "key"), places, copied(values), len(types))

    return AsyncCall(put)


def _map_take(node: Node, env: Environment) -> AsyncCall:
    area, check = _map(node, env), _checker(node)
    function = area.peek if node.type.endswith("Peek") else area.take
    return AsyncCall(
        lambda step, done, key, indices: function(step, done, _scalar(key, "key"), indices.tolist(), check)
    )


def _map_take_any(node: Node, env: Environment) -> AsyncCall:
    area, check = _map(node, env), _checker(node)
    return AsyncCall(lambda step, done, indices: area.take(step, done, None, indices.tolist(), check))


for _prefix in ("Map", "OrderedMap"):
    _declare(
        f"{_prefix}Stage", "key: int64, indices: int32, values: *fake_dtypes ->", _PARTS, _map_stage,
        lambda node: None, asynchronous=True, host=["key", "indices"],
    )  # fmt: skip
    for _name in ("Unstage", "Peek"):
        _declare(
            _prefix + _name, "key: int64, indices: int32 -> values: *dtypes", _TUPLES, _map_take, _no_dims,
            asynchronous=True, overlapping=True, host=["key", "indices"],
        )  # fmt: skip
    _declare(
        f"{_prefix}UnstageNoKey", "indices: int32 -> key: int64, values: *dtypes", _TUPLES, _map_take_any,
        lambda node: [None] * (1 + len(node.attributes["dtypes"])), asynchronous=True, overlapping=True,
        host=["indices", "key"],
    )  # fmt: skip
    _declare(f"{_prefix}Size", "-> size: int32", _ANY, _size_kernel(_map, "__len__"), lambda node: ())
    _declare(
        f"{_prefix}IncompleteSize", "-> size: int32", _ANY,
        lambda node, env: _incomplete_size(_map(node, env)), lambda node: (),
    )  # fmt: skip
    _declare(f"{_prefix}Clear", "->", _ANY, _clear_kernel(_map), lambda node: None)


def _incomplete_size(area: StagingMap) -> Any:
    return lambda: torch.tensor(area.incomplete_size, dtype=torch.int32)
