"""Collective operations: the nodes of a group, one on each of its devices, exchange values in a step.

`all_reduce` gives every member the sum (or another merge) of the members' values, `all_gather` their
concatenation, `broadcast_send` and `broadcast_recv` the value of the one that sends. The members may be in
one graph or, one each, in the graphs of the tasks of a cluster, whose steps then meet. A kernel holds no
thread while it waits for the others (`runtime/steps/collectives.py`).

Members are told by `group_key`, operations of one group by `instance_key`. Both are numbers that the members'
programs choose alike. With the `communication_hint` "nccl", large values go from one task's GPU to another's,
if each member has one (`distributed/links/process_groups.py`). `subdiv_offsets` and `wait_for` are taken as
TensorFlow does. None of these changes a result.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, AsyncCall, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, TensorShape
from flowstone.ops.collectives import offers
from flowstone.ops.collectives.offers import BROADCAST, EXCHANGE, GATHER, REDUCE, SCATTER, Offer

__all__ = [
    "all_gather",
    "all_gather_v2",
    "all_reduce",
    "all_reduce_v2",
    "all_to_all_v2",
    "broadcast_recv",
    "broadcast_recv_v2",
    "broadcast_send",
    "broadcast_send_v2",
]

_FLOATS = (dtypes.float32, dtypes.float16, dtypes.float64)
_NUMBERS = (*_FLOATS, dtypes.int32, dtypes.int64)
_REDUCED = (dtypes.bfloat16, *_NUMBERS)
_SENT = (dtypes.bool, *_NUMBERS)
_SENT_TYPE = "T: type in [bool, float32, float16, float64, int32, int64]"
_KEYS = "group_size: int ; group_key: int ; instance_key: int"
_HINTS = "communication_hint: string = 'auto' ; timeout_seconds: float = 0"
_MERGES = "merge_op: string in ['Min', 'Max', 'Mul', 'Add'] ; final_op: string in ['Id', 'Div']"
_HOST = ["group_size", "group_key", "instance_key"]
_KEY_INPUTS = "group_size: int32, group_key: int32, instance_key: int32"
_TOKENS = "is_stateless: bool = false ; Nordering_token: int >= 0 = 0"
_SUBDIVISIONS = "max_subdivs_per_device: int = -1"
_MERGED = {"Add": "sum", "Mul": "product", "Min": "min", "Max": "max"}


# ---- kernels


def _member(node: Node, env: Environment, kind: str) -> Any:
    """A function ``start(step, done, value, dims, size, group, instance)`` that offers a value. The result is
    on the kernel's device."""
    attributes, collectives, device = node.attributes, env.collectives, env.device
    timeout_s = attributes.get("timeout_seconds", 0.0)
    merge, is_mean = _MERGED.get(attributes.get("merge_op", ""), ""), attributes.get("final_op") == "Div"
    dtype, name, member = attributes["T"].name, node.name, env.name
    gpu = offers.gpu_identity(device) if attributes.get("communication_hint") == "nccl" else ""

    def start(
        step: Any, done: Any, value: Any, dims: Any, size: int, group: int, instance: int, sends: bool = False
    ) -> None:
        def here(outputs: Any, error: BaseException | None) -> None:
            if error is None and outputs[0].device != device:
                outputs = (outputs[0].to(device),)
            done(outputs, error)

        if size < 1:
            done(None, _invalid(f"group_size is {size}, but a group has at least one member"))
            return
        offer = Offer(
            kind, group, size, instance, member, name, dtype, tuple(dims), merge, is_mean, sends,
            value=value, device=device, gpu=gpu,
        )  # fmt: skip
        collectives.join(step, here, offer, timeout_s)

    return start


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _keyed(kind: str, sends: bool = False) -> Any:
    """The kernel of an op whose keys are attributes and whose argument is the value."""

    def factory(node: Node, env: Environment) -> AsyncCall:
        start, attributes = _member(node, env, kind), node.attributes
        keys = attributes["group_size"], attributes["group_key"], attributes["instance_key"]

        def call(step: Any, done: Any, value: Any) -> None:
            _check(kind, value, keys[0])
            start(step, done, value, value.shape, *keys, sends)

        return AsyncCall(call)

    return factory


def _fed(kind: str, sends: bool = False) -> Any:
    """The kernel of an op whose arguments are the value and the keys."""

    def factory(node: Node, env: Environment) -> AsyncCall:
        start = _member(node, env, kind)

        def call(
            step: Any, done: Any, value: Any, size: Any, group: Any, instance: Any, *tokens: Any
        ) -> None:
            _check(kind, value, int(size))
            start(step, done, value, value.shape, int(size), int(group), int(instance), sends)

        return AsyncCall(call)

    return factory


def _check(kind: str, value: Any, size: int) -> None:
    """InvalidArgumentError for a value that cannot be joined with others or divided."""
    if kind in (GATHER, SCATTER, EXCHANGE) and not value.dim():
        raise _invalid(f"A {kind} needs a value of at least one dimension, not a scalar")
    if kind in (SCATTER, EXCHANGE) and size > 0 and value.shape[0] % size:
        raise _invalid(f"A {kind} divides dimension 0, which is {value.shape[0]}, among {size} members")


def _receive(node: Node, env: Environment) -> AsyncCall:
    start, attributes = _member(node, env, BROADCAST), node.attributes
    keys = attributes["group_size"], attributes["group_key"], attributes["instance_key"]
    dims = attributes["shape"]

    def call(step: Any, done: Any) -> None:
        start(step, done, None, dims, *keys)

    return AsyncCall(call)


def _receive_fed(node: Node, env: Environment) -> AsyncCall:
    start = _member(node, env, BROADCAST)

    def call(step: Any, done: Any, size: Any, group: Any, instance: Any, shape: Any) -> None:
        start(step, done, None, shape.tolist(), int(size), int(group), int(instance))

    return AsyncCall(call)


# ---- shapes


def _same(node: Node) -> Dims:
    return node.dims(0)


def _gathered(node: Node) -> Dims:
    dims = node.dims(0)
    if dims is None:
        return None
    if not dims:
        raise ValueError(f"Shape must be at least rank 1 but is rank 0 for {node.name}")
    return (None, *dims[1:])


def _scattered(node: Node) -> Dims:
    dims = node.dims(0)
    return dims and (None, *dims[1:])


# ---- declarations


def _declare(
    name: str, signature: str, attributes: str, types: Any, kernel: Any, infer: Any, **traits: Any
) -> Any:
    if types is not None:
        traits["T"] = types
    declaration = op(
        name, signature, attributes, stateful=True, asynchronous=True, capturable=False, **traits
    )
    declaration.infer(infer)
    declaration.kernel(CPU, GPU)(kernel)
    declaration.no_gradient()
    return declaration


_KEPT: dict[str, Any] = {"keeps": [0]}
_FED: dict[str, Any] = {"keeps": [0], "host": _HOST}
_WITH_TOKENS = f"input: T, {_KEY_INPUTS}, ordering_token: Nordering_token*resource -> data: T"

_reduce = _declare(
    "CollectiveReduce",
    "input: T -> data: T",
    f"{_KEYS} ; {_MERGES} ; subdiv_offsets: list(int) ; wait_for: list(int) = [] ; {_HINTS}",
    _REDUCED, _keyed(REDUCE), _same, **_KEPT,
)  # fmt: skip
_gather = _declare(
    "CollectiveGather",
    "input: T -> data: T",
    f"{_KEYS} ; shape: shape ; {_HINTS}",
    _NUMBERS, _keyed(GATHER), _gathered, **_KEPT,
)  # fmt: skip
_send = _declare(
    "CollectiveBcastSend",
    "input: T -> data: T",
    f"{_KEYS} ; shape: shape ; {_HINTS}",
    _SENT, _keyed(BROADCAST, sends=True), lambda node: node.attributes["shape"], **_KEPT,
)  # fmt: skip
_recv = _declare(
    "CollectiveBcastRecv",
    "-> data: T",
    f"{_SENT_TYPE} ; {_KEYS} ; shape: shape ; {_HINTS}",
    None, _receive, lambda node: node.attributes["shape"],
)  # fmt: skip
_reduce_v2 = _declare(
    "CollectiveReduceV2",
    _WITH_TOKENS,
    f"{_MERGES} ; {_HINTS} ; {_TOKENS} ; {_SUBDIVISIONS}",
    _REDUCED, _fed(REDUCE), _same, **_FED,
)  # fmt: skip
_scatter_v2 = _declare(
    "CollectiveReduceScatterV2",
    _WITH_TOKENS,
    f"{_MERGES} ; {_HINTS} ; {_TOKENS} ; {_SUBDIVISIONS}",
    _REDUCED, _fed(SCATTER), _scattered, **_FED,
)  # fmt: skip
_gather_v2 = _declare(
    "CollectiveGatherV2", _WITH_TOKENS, f"{_HINTS} ; {_TOKENS}", _NUMBERS, _fed(GATHER), _gathered, **_FED
)
_exchange_v2 = _declare(
    "CollectiveAllToAllV2", _WITH_TOKENS, f"{_HINTS} ; {_TOKENS}", _REDUCED, _fed(EXCHANGE), _same, **_FED
)
_send_v2 = _declare(
    "CollectiveBcastSendV2",
    f"input: T, {_KEY_INPUTS} -> data: T",
    _HINTS,
    _SENT, _fed(BROADCAST, sends=True), _same, **_FED,
)  # fmt: skip
_recv_v2 = _declare(
    "CollectiveBcastRecvV2",
    f"{_KEY_INPUTS}, shape: Tshape -> data: T",
    f"{_SENT_TYPE} ; Tshape: type in [int32, int64] = int32 ; {_HINTS}",
    None, _receive_fed, lambda node: node.constant_dims(3), host=[*_HOST, "shape"],
)  # fmt: skip


# ---- public functions


def _check_size(group_size: int, least: int, what: str) -> None:
    if group_size < least:
        raise ValueError(f"{what} needs a group_size of at least {least}, not {group_size}")


def all_reduce(
    t: Any,
    group_size: int,
    group_key: int,
    instance_key: int,
    merge_op: str = "Add",
    final_op: str = "Id",
    subdiv_offsets: Any = (0,),
    communication_hint: str = "auto",
    timeout: float = 0,
) -> Any:
    """The members' values merged, element by element, on every member.

    Args:
        t: the value, of one type and shape on all members.
        group_size: the number of members, each on a device of its own.
        group_key: the number of the group.
        instance_key: the number of this operation in the group.
        merge_op: "Add", "Mul", "Min" or "Max".
        final_op: "Id", or "Div" for the merged value divided by the number of members.
        subdiv_offsets: taken, and not needed.
        communication_hint: "nccl" for large values to go from GPU to GPU; others are taken, and not needed.
        timeout: seconds after which DeadlineExceededError is raised (0: the step's own limit).

    Raises ValueError for a group of less than one member; in a step, InvalidArgumentError or InternalError
    for members that disagree, AbortedError or UnavailableError for one whose step or task fails.
    """
    _check_size(group_size, 1, "all_reduce")
    return _reduce(
        t, group_size=group_size, group_key=group_key, instance_key=instance_key, merge_op=merge_op,
        final_op=final_op, subdiv_offsets=list(subdiv_offsets), communication_hint=communication_hint.lower(),
        timeout_seconds=timeout,
    )  # fmt: skip


def all_gather(
    t: Any,
    group_size: int,
    group_key: int,
    instance_key: int,
    communication_hint: str = "auto",
    timeout: float = 0,
) -> Any:
    """The members' values, concatenated along dimension 0 in the order of their devices, on every member; for
    arguments and errors see `all_reduce`."""
    _check_size(group_size, 1, "all_gather")
    return _gather(
        t, shape=TensorShape([0]), group_size=group_size, group_key=group_key, instance_key=instance_key,
        communication_hint=communication_hint.lower(), timeout_seconds=timeout,
    )  # fmt: skip


def broadcast_send(
    t: Any,
    shape: Any,
    dtype: Any,
    group_size: int,
    group_key: int,
    instance_key: int,
    communication_hint: str = "auto",
    timeout: float = 0,
) -> Any:
    """The value `t`, which the other members of the group receive (`broadcast_recv`).

    `shape`, `dtype`: of the value. Raises ValueError if they are not, and for a group of less than two.
    """
    _check_size(group_size, 2, "broadcast_send")
    given = getattr(t, "shape", None)
    if given is not None and TensorShape(given).as_list() != TensorShape(shape).as_list():
        raise ValueError(f"broadcast_send: t has the shape {given}, but {shape} is declared")
    if getattr(t, "dtype", dtype) != dtype:
        raise ValueError(f"broadcast_send: t is of type {t.dtype}, but {dtype} is declared")
    return _send(
        t, shape=TensorShape(shape), group_size=group_size, group_key=group_key, instance_key=instance_key,
        communication_hint=communication_hint.lower(), timeout_seconds=timeout,
    )  # fmt: skip


def broadcast_recv(
    shape: Any,
    dtype: DType,
    group_size: int,
    group_key: int,
    instance_key: int,
    communication_hint: str = "auto",
    timeout: float = 0,
) -> Any:
    """The value, of this shape and type, that a member of the group sends (`broadcast_send`).

    Raises ValueError for a group of less than two.
    """
    _check_size(group_size, 2, "broadcast_recv")
    return _recv(
        T=dtype, shape=TensorShape(shape), group_size=group_size, group_key=group_key,
        instance_key=instance_key, communication_hint=communication_hint.lower(), timeout_seconds=timeout,
    )  # fmt: skip


def all_reduce_v2(
    t: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    merge_op: str = "Add",
    final_op: str = "Id",
    communication_hint: str = "auto",
    timeout: float = 0,
    ordering_token: Any = None,
    max_subdivs_per_device: int = -1,
    name: str | None = None,
) -> Any:
    """As `all_reduce`, with keys that are tensors."""
    return _reduce_v2(
        t, group_size, group_key, instance_key, _listed(ordering_token), merge_op=merge_op, final_op=final_op,
        communication_hint=communication_hint.lower(), timeout_seconds=timeout,
        is_stateless=False, max_subdivs_per_device=max_subdivs_per_device, name=name,
    )  # fmt: skip


def all_gather_v2(
    t: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    communication_hint: str = "auto",
    timeout: float = 0,
    ordering_token: Any = None,
    name: str | None = None,
) -> Any:
    """As `all_gather`, with keys that are tensors."""
    return _gather_v2(
        t, group_size, group_key, instance_key, _listed(ordering_token), is_stateless=False,
        communication_hint=communication_hint.lower(), timeout_seconds=timeout, name=name,
    )  # fmt: skip


def all_to_all_v2(
    t: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    communication_hint: str = "auto",
    timeout: float = 0,
    ordering_token: Any = None,
    name: str | None = None,
) -> Any:
    """The parts of the members' values that are this member's: each value is divided along dimension 0, the
    k-th part is for the member of rank k."""
    return _exchange_v2(
        t, group_size, group_key, instance_key, _listed(ordering_token), is_stateless=False,
        communication_hint=communication_hint.lower(), timeout_seconds=timeout, name=name,
    )  # fmt: skip


def broadcast_send_v2(
    t: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    communication_hint: str = "auto",
    timeout: float = 0,
) -> Any:
    """As `broadcast_send`, with keys that are tensors."""
    return _send_v2(
        t, group_size, group_key, instance_key, communication_hint=communication_hint.lower(),
        timeout_seconds=timeout,
    )  # fmt: skip


def broadcast_recv_v2(
    shape: Any,
    dtype: DType,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    communication_hint: str = "auto",
    timeout: float = 0,
) -> Any:
    """As `broadcast_recv`, with keys and a shape that are tensors."""
    return _recv_v2(
        group_size, group_key, instance_key, shape, T=dtype, communication_hint=communication_hint.lower(),
        timeout_seconds=timeout,
    )  # fmt: skip


def _listed(tokens: Any) -> list[Any]:
    return [] if tokens is None else list(tokens) if isinstance(tokens, (list, tuple)) else [tokens]
