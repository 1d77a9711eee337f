"""Graphs that reduce tensors of several devices, made of binary operations on parts of the tensors.

Each function takes tensors of one shape, one a device, and gives as many, each on the device of its input,
all with the same value. They differ in what is computed where: around a ring (Patarasuk and Yuan, "Bandwidth
optimal all-reduce algorithms for clusters of workstations", 2009), by halves among pairs (recursive halving
and doubling; Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
2005), or on devices that gather a part each (shuffle). The hybrid forms reduce within each task first, then
among the tasks, and pass the result on.

`red_op` merges two tensors element by element, such as `tf.add`; `un_op`, if given, is applied to the merged
value, element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.framework.graphs.device_name import DeviceSpec
from flowstone.ops.collectives import nccl_ops

__all__ = [
    "build_nccl_all_reduce",
    "build_nccl_then_recursive_hd",
    "build_nccl_then_ring",
    "build_nccl_then_shuffle",
    "build_recursive_hd_all_reduce",
    "build_ring_all_reduce",
    "build_shuffle_all_reduce",
    "build_shuffle_then_ring",
    "build_shuffle_then_shuffle",
]

Tensors = Sequence[Any]
Merge = Callable[[Any, Any], Any]
Unary = Callable[[Any], Any] | None


# ---- parts of tensors


def _flat(tensors: Tensors) -> tuple[list[Any], tuple[int, ...]]:
    """The tensors as vectors, and their shape. ValueError unless it is known and the same for all."""
    if not tensors:
        raise ValueError("tensors cannot be empty: there must be at least one")
    dims = tensors[0].shape.as_list() if tensors[0].shape.is_fully_defined() else None
    if dims is None:
        raise ValueError(f"The shape of {tensors[0].name} must be known statically")
    for tensor in tensors:
        if tensor.shape.as_list() != dims:
            raise ValueError(f"{tensor.name} has the shape {tensor.shape}, but {tensors[0].name} {dims}")
    flat = []
    for tensor in tensors:
        with tf.device(tensor.device):
            flat.append(tf.reshape(tensor, [-1]))
    return flat, tuple(dims)


def _sizes(count: int, parts: int) -> list[int]:
    """The sizes of `parts` parts of `count` elements, as equal as can be."""
    return [count // parts + (i < count % parts) for i in range(parts)]


def _divided(vector: Any, parts: int) -> list[Any]:
    with tf.device(vector.device):
        return list(tf.split(vector, _sizes(vector.shape.as_list()[0], parts)))


def _shaped(vectors: Tensors, dims: Sequence[int]) -> list[Any]:
    """The vectors in their original shape, where they are."""
    results = []
    for vector in vectors:
        with tf.device(vector.device):
            results.append(tf.reshape(vector, dims))
    return results


def _joined(pieces: Tensors, device: str) -> Any:
    with tf.device(device):
        return tf.concat(list(pieces), 0) if len(pieces) > 1 else tf.identity(pieces[0])


def _applied(un_op: Unary, tensor: Any) -> Any:
    return un_op(tensor) if un_op is not None else tensor


# ---- the ring


def build_ring_all_reduce(
    input_tensors: Tensors,
    num_workers: int,
    num_subchunks: int,
    gpu_perm: Sequence[int],
    red_op: Merge,
    un_op: Unary = None,
) -> list[Any]:
    """The tensors reduced around rings.

    Args:
        input_tensors: one a device, those of a worker after each other.
        num_workers: how many workers there are.
        num_subchunks: into how many parts each device's share is divided; each part goes round its own ring.
        gpu_perm: the order of a worker's devices in the ring.
        red_op: merges two tensors.
        un_op: applied to the merged value.

    Raises ValueError for fewer than two tensors or a shape that is not known, IndexError if there are not as
    many tensors as workers and their devices say.
    """
    if len(input_tensors) < 2:
        raise ValueError("input_tensors must be length 2 or longer")
    flat, dims = _flat(input_tensors)
    order = _ring_order(len(flat), num_workers, gpu_perm)
    shards = len(flat) * max(1, num_subchunks)
    pieces = [_divided(vector, shards) for vector in flat]
    devices = [vector.device for vector in flat]
    for shard in range(shards):
        _go_round(pieces, devices, order, shard, red_op, un_op)
    return _shaped([_joined(each, place) for each, place in zip(pieces, devices)], dims)


def _ring_order(count: int, num_workers: int, gpu_perm: Sequence[int]) -> list[int]:
    """The tensors in the order of the ring: one worker's after the other's."""
    each = len(gpu_perm)
    order = [worker * each + place for worker in range(num_workers) for place in gpu_perm]
    if len(order) == 1 and count > 1:
        raise IndexError(f"{count} tensors are not those of one worker with one device")
    if sorted(order) != list(range(count)):
        raise IndexError(
            f"{num_workers} workers with {each} devices each do not have {count} tensors, or {gpu_perm} is "
            "no order of a worker's devices"
        )
    return order


def _go_round(
    pieces: list[list[Any]],
    devices: Sequence[str],
    order: Sequence[int],
    shard: int,
    red_op: Merge,
    un_op: Unary,
) -> None:
    """Merges a part from device to device, then passes the result round."""
    count = len(order)
    route = [order[(shard + i) % count] for i in range(count)]
    total = pieces[route[0]][shard]
    for place in route[1:]:
        with tf.device(devices[place]):
            total = red_op(pieces[place][shard], total)
    with tf.device(devices[route[-1]]):
        total = _applied(un_op, total)
    pieces[route[-1]][shard] = total
    for place in route[:-1]:
        with tf.device(devices[place]):
            total = pieces[place][shard] = tf.identity(total)


# ---- halves among pairs


def build_recursive_hd_all_reduce(input_tensors: Tensors, red_op: Merge, un_op: Unary = None) -> list[Any]:
    """The tensors reduced by halves among pairs of devices, at distances 1, 2, 4 …

    Raises ValueError unless there are 1, 2, 4, 8 … tensors, of a shape that is known.
    """
    flat, dims = _flat(input_tensors)
    count = len(flat)
    rounds = count.bit_length() - 1
    if count != 1 << rounds:
        raise ValueError(f"The number of tensors must be a power of 2, not {count}")
    devices = [vector.device for vector in flat]
    held = flat
    for distance in [1 << i for i in range(rounds)]:
        halves = [_divided(vector, 2) for vector in held]
        held = []
        for place in range(count):
            side = 1 if place & distance else 0
            with tf.device(devices[place]):
                held.append(red_op(halves[place][side], halves[place ^ distance][side]))
    for place in range(count):
        with tf.device(devices[place]):
            held[place] = _applied(un_op, held[place])
    for distance in [1 << i for i in reversed(range(rounds))]:
        held = [
            _joined([held[place & ~distance], held[place | distance]], devices[place])
            for place in range(count)
        ]
    return _shaped(held, dims)


# ---- shuffle


def build_shuffle_all_reduce(
    input_tensors: Tensors,
    gather_devices: Sequence[str],
    red_op: Callable[[list[Any]], Any],
    un_op: Unary = None,
) -> list[Any]:
    """The tensors reduced on `gather_devices`, a part on each. `red_op` merges a list of tensors, as
    `tf.add_n` does. Raises ValueError for no tensors, no devices or a shape that is not known."""
    flat, dims = _flat(input_tensors)
    if not gather_devices:
        raise ValueError("gather_devices cannot be empty: there must be at least one")
    pieces = [_divided(vector, len(gather_devices)) for vector in flat]
    merged = []
    for device, parts in zip(gather_devices, zip(*pieces)):
        with tf.device(device):
            merged.append(_applied(un_op, red_op(list(parts))))
    return _shaped([_joined(merged, vector.device) for vector in flat], dims)


# ---- sums within a process


def build_nccl_all_reduce(input_tensors: Tensors, red_op: Merge, un_op: Unary = None) -> list[Any]:
    """The sums of the tensors, by `tf.contrib.nccl`. ValueError for another `red_op` than `tf.add`."""
    if red_op is not tf.add:
        raise ValueError(f"red_op {red_op} is not supported by a sum within a process: it is tf.add")
    results = []
    for tensor in nccl_ops.all_sum(list(input_tensors)):
        with tf.device(tensor.device):
            results.append(_applied(un_op, tensor))
    return results


# ---- within tasks, then among them


def _by_task(tensors: Tensors) -> list[list[Any]]:
    """The tensors of each task. ValueError for one that names no task."""
    found: dict[str, list[Any]] = {}
    for tensor in tensors:
        spec = DeviceSpec.from_string(tensor.device or "")
        if spec.job is None or spec.task is None:
            raise ValueError(f"{tensor.name} is on {tensor.device or 'no device'}, which names no task")
        found.setdefault(f"/job:{spec.job}/replica:{spec.replica or 0}/task:{spec.task}", []).append(tensor)
    return list(found.values())


def _hybrid(
    input_tensors: Tensors,
    within: Callable[[list[Any]], list[Any]],
    among: Callable[[list[Any]], list[Any]],
    un_op: Unary,
) -> list[Any]:
    """Reduces by `within` in each task, by `among` the first tensors of the tasks, which applies `un_op`;
    each task's other devices get a copy."""
    _, dims = _flat(input_tensors)
    groups = _by_task(input_tensors)
    leaders = []
    for group in groups:
        reduced = within(group)
        with tf.device(group[0].device), tf.control_dependencies(reduced[1:]):  # all of them must run
            leaders.append(tf.identity(reduced[0]))
    if len(leaders) > 1:
        totals = among(leaders)
    else:
        with tf.device(leaders[0].device):
            totals = [_applied(un_op, leaders[0])]
    results: dict[str, Any] = {}
    for group, total in zip(groups, totals):
        for tensor in group:
            with tf.device(tensor.device):
                results[tensor.name] = tf.reshape(total, dims)
    return [results[tensor.name] for tensor in input_tensors]


def build_nccl_then_ring(
    input_tensors: Tensors, subdiv: int, red_op: Merge, un_op: Unary = None
) -> list[Any]:
    """Sums within each task, then a ring among the tasks."""
    return _hybrid(
        input_tensors,
        lambda tensors: build_nccl_all_reduce(tensors, red_op),
        lambda tensors: build_ring_all_reduce(tensors, len(tensors), subdiv, [0], red_op, un_op),
        un_op,
    )


def build_nccl_then_recursive_hd(input_tensors: Tensors, red_op: Merge, un_op: Unary = None) -> list[Any]:
    """Sums within each task, then halves among pairs of tasks."""
    return _hybrid(
        input_tensors,
        lambda tensors: build_nccl_all_reduce(tensors, red_op),
        lambda tensors: build_recursive_hd_all_reduce(tensors, red_op, un_op),
        un_op,
    )


def build_nccl_then_shuffle(
    input_tensors: Tensors,
    gather_devices: Sequence[str],
    nccl_red_op: Merge,
    shuffle_red_op: Callable[[list[Any]], Any],
    un_op: Unary = None,
) -> list[Any]:
    """Sums within each task, then a shuffle among the tasks."""
    return _hybrid(
        input_tensors,
        lambda tensors: build_nccl_all_reduce(tensors, nccl_red_op),
        lambda tensors: build_shuffle_all_reduce(tensors, gather_devices, shuffle_red_op, un_op),
        un_op,
    )


def build_shuffle_then_ring(
    input_tensors: Tensors,
    gather_devices: Sequence[str],
    subdiv: int,
    red_n_op: Callable[[list[Any]], Any],
    red_op: Merge,
    un_op: Unary = None,
) -> list[Any]:
    """A shuffle within each task, then a ring among the tasks. `gather_devices`: of all tasks."""
    return _hybrid(
        input_tensors,
        lambda tensors: build_shuffle_all_reduce(tensors, _devices_of(tensors, gather_devices), red_n_op),
        lambda tensors: build_ring_all_reduce(tensors, len(tensors), subdiv, [0], red_op, un_op),
        un_op,
    )


def build_shuffle_then_shuffle(
    input_tensors: Tensors,
    first_gather_devices: Sequence[str],
    second_gather_devices: Sequence[str],
    red_op: Callable[[list[Any]], Any],
    un_op: Unary = None,
) -> list[Any]:
    """A shuffle within each task, then one among the tasks. `first_gather_devices`: of all tasks."""
    return _hybrid(
        input_tensors,
        lambda tensors: build_shuffle_all_reduce(tensors, _devices_of(tensors, first_gather_devices), red_op),
        lambda tensors: build_shuffle_all_reduce(tensors, second_gather_devices, red_op, un_op),
        un_op,
    )


def _devices_of(tensors: Tensors, devices: Sequence[str]) -> list[str]:
    """Those of the devices that are in the tensors' task; ValueError if there is none."""
    own = DeviceSpec.from_string(tensors[0].device)
    found = [
        name
        for name in devices
        if (spec := DeviceSpec.from_string(name)).job == own.job and spec.task == own.task
    ]
    if not found:
        raise ValueError(f"No device is given to gather on for the task of {tensors[0].device}")
    return found
