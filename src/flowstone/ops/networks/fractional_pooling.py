"""Fractional pooling: the largest or mean element of windows whose sizes differ by one (Graham, 2014).

Rows and columns are each cut at a sequence of positions, from 0 to their number. Windows reach from one
position to the next, which they include if they overlap. Lengths between positions are the pooling ratio
rounded down or up: in random order, or by rounding multiples of the ratio at a random phase
("pseudo-random"). The sequences are results besides the pooled images [batch, height, width, channels];
they are TensorFlow's own for the same seeds. Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.image_code import CutWindows, cut_windows
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank
from flowstone.ops.randomness.op_seeds import own_sequence
from flowstone.ops.randomness.random_words import RandomWords

__all__ = ["fractional_avg_pool", "fractional_max_pool"]

_TYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)
_ATTRIBUTES = (
    "pooling_ratio: list(float) >= 4 ; pseudo_random: bool = false ; overlapping: bool = false ; "
    "deterministic: bool = false ; seed: int = 0 ; seed2: int = 0"
)
_SEQUENCES = "row_pooling_sequence: int64, col_pooling_sequence: int64"
_HOST = ("row_pooling_sequence", "col_pooling_sequence")


def _pool_op(name: str) -> OpDeclaration:
    return op(name, f"value: T -> output: T, {_SEQUENCES}", _ATTRIBUTES, T=_TYPES, stateful=True, host=_HOST)


max_pool_op, avg_pool_op = _pool_op("FractionalMaxPool"), _pool_op("FractionalAvgPool")
max_grad_op = op(
    "FractionalMaxPoolGrad",
    f"orig_input: T, orig_output: T, out_backprop: T, {_SEQUENCES} -> output: T",
    "overlapping: bool = false",
    T=_TYPES,
    host=_HOST,
    capturable=False,
)
avg_grad_op = op(
    "FractionalAvgPoolGrad",
    f"orig_input_tensor_shape: int64, out_backprop: T, {_SEQUENCES} -> output: T",
    "overlapping: bool = false",
    T=_TYPES,
    host=("orig_input_tensor_shape", *_HOST),
    capturable=False,
)


# ---- sequences


def random_sequence(length: int, count: int, pseudo_random: bool, words: RandomWords) -> Any:
    """`count` + 1 increasing positions from 0 to `length`, whose distances differ by at most one."""
    shortest, longer = length // count, length % count
    if pseudo_random and longer:
        ratio = length / count
        phase = words.double() * min(
            (shortest + 2) / ratio - 1, (length + 1 - shortest) / ratio - (count - 1)
        )
        positions = np.ceil(ratio * (np.arange(count + 1) + phase)).astype(np.int64) - 1
        positions[0], positions[-1] = 0, length
        return positions
    steps = [shortest + 1] * longer + [shortest] * (count - longer)
    for i in range(count - 1):
        other = i + words.below(count - i)
        steps[i], steps[other] = steps[other], steps[i]
    return np.concatenate([[0], np.cumsum(steps)])


def _blocks(count: int, pseudo_random: bool) -> int:
    """What a sequence of `count` steps takes of the random numbers."""
    return 1 if pseudo_random else -(-count // 4)


class _Windows:
    """The positions that the windows along one dimension cover.

    `starts` and `counts` (windows): the first place of each, and how many it covers. `places` and `inside`
    [windows, longest]: the places of a window, repeating its last one, and which of them are not repeats.
    """

    def __init__(self, sequence: Any, length: int, overlapping: bool, device: torch.device) -> None:
        starts, ends = sequence[:-1], np.minimum(sequence[1:] - (not overlapping), length - 1)
        starts, ends = np.clip(starts, 0, length - 1), np.maximum(ends, np.clip(starts, 0, length - 1))
        self.starts, self.counts = (torch.from_numpy(each).to(device) for each in (starts, ends - starts + 1))

    @functools.cached_property
    def _offsets(self) -> torch.Tensor:
        longest = int(self.counts.max()) if len(self.counts) else 1
        return torch.arange(longest, device=self.counts.device)

    @functools.cached_property
    def places(self) -> torch.Tensor:
        return torch.minimum(self._offsets, self.counts[:, None] - 1) + self.starts[:, None]

    @functools.cached_property
    def inside(self) -> torch.Tensor:
        return self._offsets < self.counts[:, None]

    @property
    def spans(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The first places, and the numbers of places."""
        return self.starts, self.counts


def _taken(x: torch.Tensor, rows: _Windows, columns: _Windows) -> torch.Tensor:
    """The elements of all windows: [batch, rows, columns, places in rows, places in columns, channels]."""
    x = x[:, rows.places][:, :, :, columns.places]
    return x.permute(0, 1, 3, 2, 4, 5)


def _means(x: torch.Tensor, rows: _Windows, columns: _Windows) -> torch.Tensor:
    x = _sums(_sums(x, rows, 1), columns, 2)
    counts = (rows.counts[:, None] * columns.counts)[:, :, None]
    return (
        x / counts if x.dtype.is_floating_point else torch.div(x, counts, rounding_mode="trunc").to(x.dtype)
    )


def _sums(x: torch.Tensor, windows: _Windows, axis: int) -> torch.Tensor:
    taken = x.index_select(axis, windows.places.flatten()).unflatten(axis, windows.places.shape)
    inside = windows.inside.view(*windows.inside.shape, *[1] * (x.dim() - axis - 1))
    return torch.where(inside, taken, 0).sum(axis + 1, dtype=x.dtype)


def _maxima(x: torch.Tensor, rows: _Windows, columns: _Windows) -> torch.Tensor:
    if x.dtype.is_floating_point:
        lowest = torch.finfo(x.dtype).min
        x = x.nan_to_num(nan=lowest, posinf=math.inf, neginf=lowest)
    for axis, windows in ((1, rows), (2, columns)):
        taken = x.index_select(axis, windows.places.flatten())
        x = taken.unflatten(axis, windows.places.shape).amax(axis + 1)
    return x


# ---- pooling


def _infer(node: Node) -> Shapes:
    ratios = node.attributes["pooling_ratio"]
    if len(ratios) != 4:
        raise ValueError(f"pooling_ratio field must specify 4 dimensions, not {len(ratios)}")
    if any(ratio < 1 for ratio in ratios):
        raise ValueError(f"pooling_ratio field must be at least 1 in every dimension: {list(ratios)}")
    sizes = require_rank(node.dims(0), 4)
    pooled = [None if n is None else math.floor(n / ratio) for n, ratio in zip(sizes, ratios)]
    return [tuple(pooled), *[(None if n is None else n + 1,) for n in pooled[1:3]]]


def _kernel(node: Node, env: Environment) -> Kernel:
    attributes = node.attributes
    ratios, pseudo, overlapping = (
        attributes["pooling_ratio"], attributes["pseudo_random"], attributes["overlapping"]
    )  # fmt: skip
    seeds = attributes["seed"], attributes["seed2"]
    fixed = attributes["deterministic"]
    if any(seeds) and not fixed:
        raise invalid("Both seed and seed2 should be 0 if deterministic is false.")
    if ratios[0] != 1 or ratios[3] != 1:
        raise errors.UnimplementedError(
            None, None, "Fractional pooling is not yet supported on the batch nor channel dimension."
        )
    pooled = _maxima if node.declaration is max_pool_op else _means
    drawn = own_sequence(node, env)
    first = drawn.state()  # of every run, if they are all the same

    def run(x: torch.Tensor) -> list[Any]:
        if x.dim() != 4:
            raise invalid("tensor_in must be 4-dimensional")
        for axis, (size, ratio) in enumerate(zip(x.shape, ratios)):
            if size < ratio:
                raise invalid(
                    f"Pooling ratio is higher than input dimension size for dimension {axis}. "
                    f"Input dim size: {size} pooling ratio: {ratio}"
                )
        lengths = x.shape[1:3]
        counts = [math.floor(length / ratio) for length, ratio in zip(lengths, ratios[1:3])]
        sizes = [_blocks(count, pseudo) for count in counts]
        start = first if fixed else drawn.take_blocks(sum(sizes))
        words = RandomWords(start, sizes[0]), RandomWords(start.skipped(sizes[0]), sizes[1])
        sequences = [random_sequence(*each[:2], pseudo, each[2]) for each in zip(lengths, counts, words)]
        rows, columns = (
            _Windows(sequence, x.shape[axis], overlapping, x.device)
            for axis, sequence in zip((1, 2), sequences)
        )
        return [pooled(x, rows, columns), *[torch.from_numpy(sequence) for sequence in sequences]]

    return run


def _pool_cost(node: Node) -> float:
    return 2.0 * math.prod(size or 32 for size in node.dims(0) or (32,) * 4)


for _pool in (max_pool_op, avg_pool_op):
    _pool.infer(_infer)
    _pool.kernel(CPU, GPU)(_kernel)
    _pool.cost(_pool_cost)


@max_pool_op.gradient
def _(op: Operation, dy: Tensor, *_: Any) -> Gradients:
    y, rows, columns = op.outputs
    return F.FractionalMaxPoolGrad(
        op.inputs[0], y, dy, rows, columns, overlapping=op.attributes["overlapping"]
    )


@avg_pool_op.gradient
def _(op: Operation, dy: Tensor, *_: Any) -> Gradients:
    rows, columns = op.outputs[1:]
    shape = F.Shape(op.inputs[0], out_type=dtypes.int64)
    return F.FractionalAvgPoolGrad(shape, dy, rows, columns, overlapping=op.attributes["overlapping"])


# ---- gradients


def _windows_of(
    shape: Any, dy: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, overlapping: bool
) -> list[_Windows]:
    """The windows of a gradient; InvalidArgumentError unless the sequences fit it."""
    if dy.dim() != 4:
        raise invalid("out_backprop must be 4-dimensional")
    found = []
    for axis, name, sequence in ((1, "row", rows.numpy()), (2, "col", columns.numpy())):
        if len(sequence) <= dy.shape[axis]:
            raise invalid(
                f"Given out_backprop shape {list(dy.shape)}, {name}_seq_tensor must have at least "
                f"{dy.shape[axis] + 1} elements, but got {len(sequence)}"
            )
        if dy.numel() and not shape[axis]:
            raise invalid(f"out_backprop {list(dy.shape)} is not of images of shape {list(shape)}")
        if (sequence < 0).any() or (sequence > shape[axis]).any() or (np.diff(sequence) < 0).any():
            raise invalid(
                f"{name} sequence values must grow from 0 to {shape[axis]} at most: {sequence.tolist()}"
            )
        found.append(_Windows(sequence[: dy.shape[axis] + 1], shape[axis], overlapping, dy.device))
    return found


def _machine_code(node: Node, env: Environment, i: int) -> CutWindows | None:
    """That for images of input i's type."""
    dtype = node.dtype(i)
    return cut_windows(dtype.torch) if dtype is not None and env.device.type == "cpu" else None


@max_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    overlapping, code = node.attributes["overlapping"], _machine_code(node, env, 0)

    def run(
        x: torch.Tensor, y: torch.Tensor, dy: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor
    ) -> torch.Tensor:
        if x.dim() != 4 or y.shape != dy.shape:
            raise invalid(f"orig_output and out_backprop differ: {list(y.shape)}, {list(dy.shape)}")
        if dy.dim() == 4 and [x.shape[0], x.shape[3]] != [dy.shape[0], dy.shape[3]]:
            raise invalid(f"out_backprop {list(dy.shape)} is not of images of shape {list(x.shape)}")
        along_rows, along_columns = _windows_of(x.shape, dy, rows, columns, overlapping)
        if not dy.numel():
            return torch.zeros_like(x)
        if code is not None:
            return code.to_largest(x, dy, along_rows.spans, along_columns.spans)
        taken = _taken(x, along_rows, along_columns).flatten(3, 4)
        if x.dtype.is_floating_point:  # NaN is a window's largest only where it is the first
            taken = taken.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)
            taken[:, :, :, 0].masked_fill_(
                x[:, along_rows.starts][:, :, along_columns.starts].isnan(), math.inf
            )
        best = taken.argmax(3)
        row, column = best // along_columns.places.shape[1], best % along_columns.places.shape[1]
        count = torch.arange(dy.shape[1], device=x.device)[:, None, None]
        place = along_rows.places[count, row] * x.shape[2]
        count = torch.arange(dy.shape[2], device=x.device)[:, None]
        place = place + along_columns.places[count, column]
        dx = torch.zeros_like(x).flatten(1, 2)
        return dx.scatter_add_(1, place.flatten(1, 2), dy.flatten(1, 2)).view(x.shape)

    return run


@avg_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    overlapping, code = node.attributes["overlapping"], _machine_code(node, env, 1)

    def spread(dy: torch.Tensor, windows: _Windows, axis: int, length: int) -> torch.Tensor:
        inside = windows.inside.view(*windows.inside.shape, *[1] * (dy.dim() - axis - 1))
        shares = torch.where(inside, dy.unsqueeze(axis + 1), 0).flatten(axis, axis + 1)
        dx = dy.new_zeros([*dy.shape[:axis], length, *dy.shape[axis + 1 :]])
        return dx.index_add_(axis, windows.places.flatten(), shares)

    def run(shape: Any, dy: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        if shape.dim() != 1 or len(shape) != 4:
            raise invalid("original input tensor shape must be 1-dimensional and 4 elements")
        sizes = shape.tolist()
        if [sizes[0], sizes[3]] != [dy.shape[0], dy.shape[-1]]:
            raise invalid(f"out_backprop {list(dy.shape)} is not of images of shape {sizes}")
        along_rows, along_columns = _windows_of(sizes, dy, rows, columns, overlapping)
        if code is not None:
            found = code.to_all(dy, along_rows.spans, along_columns.spans, sizes)
            if found is not None:
                return found
        counts = (along_rows.counts[:, None] * along_columns.counts)[:, :, None]
        shares = (dy if dy.dtype.is_floating_point else dy.double()) / counts
        dx = spread(spread(shares, along_columns, 2, sizes[2]), along_rows, 1, sizes[1])
        return dx.to(dy.dtype)

    return run


@avg_grad_op.infer
def _(node: Node) -> Shapes:
    sizes = node.constant_dims(0)
    return (None,) * 4 if sizes is None else sizes


@max_grad_op.infer
def _(node: Node) -> Shapes:
    return require_rank(node.dims(0), 4)


max_grad_op.no_gradient()
avg_grad_op.no_gradient()


def fractional_max_pool(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False,
    deterministic: bool = False, seed: int = 0, seed2: int = 0, name: str | None = None,
) -> Any:  # fmt: skip
    """(the largest elements of windows of differing sizes, where rows and columns are cut).

    Args:
        value: images [batch, height, width, channels] of float32, float64, int32 or int64.
        pooling_ratio: four numbers, at least 1, by which the sizes shrink; the first and last are 1.
        pseudo_random: whether cuts are rounded multiples of the ratio, rather than in random distances.
        overlapping: whether windows include the place of the next cut.
        deterministic: whether each run has the same cuts, of `seed` and `seed2`; without it both must be 0.

    The cuts are int64 vectors with one element more than rows and columns remain.
    """
    return max_pool_op.several(
        value, pooling_ratio=pooling_ratio, pseudo_random=pseudo_random, overlapping=overlapping,
        deterministic=deterministic, seed=seed, seed2=seed2, name=name,
    )  # fmt: skip


def fractional_avg_pool(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False,
    deterministic: bool = False, seed: int = 0, seed2: int = 0, name: str | None = None,
) -> Any:  # fmt: skip
    """(the means of windows of differing sizes, where rows and columns are cut), as `fractional_max_pool`."""
    return avg_pool_op.several(
        value, pooling_ratio=pooling_ratio, pseudo_random=pseudo_random, overlapping=overlapping,
        deterministic=deterministic, seed=seed, seed2=seed2, name=name,
    )  # fmt: skip
