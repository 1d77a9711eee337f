"""Index rows of sparse tensors, [n, rank] in int64: checked, numbered in row-major order and found again.

A row's number is its position in a dense tensor: in the one meant, or in the smallest that holds the rows at
hand. Where such positions do not fit into 64 bits, rows are numbered by their rank among those at hand, which
has the same order.

>>> positions(torch.tensor([[1, 2], [0, 1]]), [2, 3])
tensor([5, 1])
>>> rows_at(torch.tensor([5, 1]), [2, 3])
tensor([[1, 2],
        [0, 1]])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import Dims, format_dims
from flowstone.ops.arrays.arrays import invalid, places_by_code, whole_numbers

LARGEST = 2**63 - 1
_FEW_COLUMNS = 4


def listed(numbers: Any) -> str:
    """Numbers as errors name them: "[2,3]"."""
    return format_dims(tuple(int(n) for n in numbers))


# ---- static shapes


def check_sparse_dims(node: Node, first: int) -> None:
    """ValueError unless inputs `first`, `first` + 1 and `first` + 2 may be the indices, values and sizes of
    one sparse tensor.
    """
    indices, values, sizes = (node.dims(first + i) for i in range(3))
    check_rank(indices, 2)
    check_rank(values, 1)
    check_rank(sizes, 1)
    if indices is not None and values is not None and _differ(indices[0], values[0]):
        raise ValueError(f"Number of elements in index ({indices[0]}) and values ({values[0]}) do not match.")
    if indices is not None and sizes is not None and _differ(indices[1], sizes[0]):
        raise ValueError(f"Index rank ({indices[1]}) and shape rank ({sizes[0]}) do not match.")


def check_rank(dims: Dims, rank: int) -> None:
    """ValueError if the rank is known and not `rank`."""
    if dims is not None and len(dims) != rank:
        raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}")


def _differ(a: int | None, b: int | None) -> bool:
    return a is not None and b is not None and a != b


# ---- checks in a step


def checked_parts(
    indices: torch.Tensor, values: Any, shape: torch.Tensor, what: str = "", negative: bool = False
) -> list[int]:
    """The sizes of a sparse tensor. InvalidArgumentError unless its parts fit together.

    `what` goes before the parts' names in messages: "a_" gives "a_indices". `negative` lets sizes be so.
    """
    sizes = checked_index_sizes(indices, shape, what)
    if values.ndim != 1:
        raise invalid(f"{what}values should be a vector but received shape {listed(values.shape)}")
    if indices.shape[0] != values.shape[0]:
        raise invalid(
            f"{what}indices has {len(indices)} rows, but {what}values has {len(values)} elements: there must "
            "be one row for each element"
        )
    for size in sizes:
        if size < 0 and not negative:
            raise invalid(f"{what}shape = {listed(sizes)} has the negative dimension {size}")
    return sizes


def checked_index_sizes(indices: torch.Tensor, shape: torch.Tensor, what: str = "") -> list[int]:
    """The sizes that go with these index rows. InvalidArgumentError unless they fit together."""
    if indices.ndim != 2:
        raise invalid(f"{what}indices should be a matrix but received shape {listed(indices.shape)}")
    if shape.ndim != 1:
        raise invalid(f"{what}shape should be a vector but received shape {listed(shape.shape)}")
    sizes: list[int] = shape.tolist()
    if indices.shape[1] != len(sizes):
        raise invalid(
            f"{what}indices has rows of {indices.shape[1]} numbers, but {what}shape = {listed(sizes)} has "
            f"{len(sizes)} dimensions"
        )
    return sizes


def check_countable(sizes: Sequence[int], what: str = "shape") -> None:
    """InvalidArgumentError if a tensor of these sizes has more elements than 64 bits count."""
    if not fits(sizes):
        raise invalid(f"{what} = {listed(sizes)} has more elements than 64 bits count")


def check_within(rows: torch.Tensor, sizes: Sequence[int], what: str = "indices") -> None:
    """InvalidArgumentError if a row is outside of a tensor of these sizes."""
    if are_within(rows, sizes):
        return
    limits = torch.tensor(list(sizes), dtype=rows.dtype, device=rows.device)
    i = int(((rows < 0) | (rows >= limits)).any(1).nonzero()[0])
    raise invalid(f"{what}[{i}] = {listed(rows[i])} is out of bounds: need 0 <= index < {listed(sizes)}")


def are_within(rows: torch.Tensor, sizes: Sequence[int]) -> bool:
    """Whether all rows are inside of a tensor of these sizes."""
    if not rows.numel():
        return True
    low, high = _extremes(rows)
    return all(a >= 0 and b < size for a, b, size in zip(low, high, sizes))


def _extremes(rows: torch.Tensor) -> tuple[list[int], list[int]]:
    """The lowest and the highest number of each column; there is at least one row."""
    if rows.device.type != "cpu" or rows.shape[1] > _FEW_COLUMNS:
        low, high = torch.stack((rows.amin(0), rows.amax(0))).tolist()
        return low, high
    found = [torch.aminmax(column) for column in rows.unbind(1)]  # a third of the time
    return [int(each.min) for each in found], [int(each.max) for each in found]


def check_ordered(
    rows: torch.Tensor, numbers: torch.Tensor, what: str = "indices", twice: bool = False
) -> None:
    """InvalidArgumentError unless the rows' numbers increase; with `twice` a row may repeat."""
    if len(numbers) < 2:
        return
    before, after = numbers[:-1], numbers[1:]
    wrong = after < before if twice else after <= before
    if not bool(wrong.any()):
        return
    i = int(wrong.nonzero()[0]) + 1
    if int(numbers[i]) == int(numbers[i - 1]):
        raise invalid(f"{what}[{i}] = {listed(rows[i])} is repeated")
    raise invalid(
        f"{what}[{i}] = {listed(rows[i])} is out of order. Many sparse ops require sorted indices.\n    Use "
        "`tf.sparse.reorder` to create a correctly ordered copy."
    )


def check_rows(rows: torch.Tensor, sizes: Sequence[int], what: str = "indices") -> torch.Tensor:
    """The rows' numbers. InvalidArgumentError unless the rows are within, in order, and differ."""
    if len(rows) <= _FEW and fits(sizes) and (few := _numbers_of_few(rows, sizes)) is not None:
        return few
    if fits(sizes):
        numbers = checked_positions(rows, sizes, what)
    else:
        check_within(rows, sizes, what)
        numbers = numbered_together(rows)[0]
    check_ordered(rows, numbers, what)
    return numbers


_FEW_SORTED = 1024  # rows, up to which sorting by columns takes less time than numbering them
_FEW = 128  # rows, up to which calls take longer than what they do


def _numbers_of_few(rows: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor | None:
    """The numbers of few rows, by Python; None unless all is as it has to be."""
    numbers, last = [], -1
    for row in rows.tolist():
        number = 0
        for index, size in zip(row, sizes):
            if not 0 <= index < size:
                return None
            number = number * size + index
        if number <= last:
            return None
        numbers.append(number)
        last = number
    return whole_numbers(numbers).to(rows.device)


# ---- numbers


def fits(sizes: Sequence[int]) -> bool:
    """Whether a tensor of these sizes has fewer elements than 64 bits count."""
    return math.prod(sizes) <= LARGEST


def positions(rows: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Positions in row-major order of rows [n, rank] in a tensor of these sizes, whose product fits."""
    if not len(sizes):
        return zeros_for(rows)
    total = rows[:, 0].long()
    for axis in range(1, len(sizes)):
        total = torch.add(rows[:, axis], total, alpha=sizes[axis])
    return total


def checked_positions(rows: torch.Tensor, sizes: Sequence[int], what: str = "indices") -> torch.Tensor:
    """`positions` after `check_within`, in one pass of machine code where there is some."""
    found = places_by_code(rows, sizes) if rows.numel() and fits(sizes) else None
    if found is None:
        check_within(rows, sizes, what)
        return positions(rows, sizes)
    return found


def rows_at(numbers: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """The rows [n, rank] at these positions of a tensor of these sizes."""
    rows = numbers.new_empty((len(numbers), len(sizes)))
    rest = numbers
    for axis in range(len(sizes) - 1, 0, -1):
        size = max(sizes[axis], 1)
        upper = rest.div(size, rounding_mode="floor")
        rows[:, axis] = torch.sub(rest, upper, alpha=size)
        rest = upper
    if len(sizes):
        rows[:, 0] = rest
    return rows


def numbered_together(*parts: torch.Tensor) -> list[torch.Tensor]:
    """Numbers of several tensors' rows, in the rows' order and equal where the rows are, whatever the sizes
    meant.
    """
    filled = [rows for rows in parts if rows.numel()]
    if not filled:
        return [zeros_for(rows) for rows in parts]
    lows, highs = zip(*map(_extremes, filled))
    low = [min(column) for column in zip(*lows)]
    spans = [max(column) - least + 1 for column, least in zip(zip(*highs), low)]
    if fits(spans):
        first = 0
        for least, span in zip(low, spans):
            first = first * span + least
        numbers = [positions(rows, spans) for rows in parts]  # modulo 2^64, as the first one is
        return [each - _wrapped(first) for each in numbers] if first else numbers
    ranks = torch.unique(torch.cat(parts), dim=0, return_inverse=True)[1]
    return list(ranks.split([len(rows) for rows in parts]))


def _wrapped(number: int) -> int:
    """The number of int64 that has its last 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


def columns_of(rows: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    """These columns of rows; a view of one, which is what most programs take."""
    return rows.narrow(1, axes[0], 1) if len(axes) == 1 else rows[:, list(axes)]


def zeros_for(rows: torch.Tensor) -> torch.Tensor:
    """A zero for each row."""
    return rows.new_zeros(len(rows), dtype=torch.int64)


def stable_order(numbers: torch.Tensor) -> torch.Tensor:
    """The permutation that puts the numbers in order, equal ones as they are; fast where they are a few
    ordered runs.
    """
    if numbers.device.type == "cpu":
        return torch.from_numpy(np.argsort(numbers.numpy(), kind="stable"))  # merges runs, unlike ATen's
    return torch.argsort(numbers, stable=True)


def search(ordered: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Where each number is among the ordered ones, or would be."""
    if numbers.device.type == "cpu":
        return torch.from_numpy(np.searchsorted(ordered.numpy(), numbers.numpy()))  # in half of ATen's time
    return torch.searchsorted(ordered, numbers)


def places_of(mask: torch.Tensor) -> torch.Tensor:
    """Where a vector is true. Taking what is there twice is faster by places than by the mask."""
    return mask.nonzero().squeeze(1)


def in_order(rows: torch.Tensor) -> torch.Tensor | None:
    """The permutation that puts the rows in row-major order, equal ones as they are; None if they are."""
    if rows.device.type == "cpu" and rows.shape[1] and len(rows) <= _FEW_SORTED:
        order = np.lexsort(rows.numpy().T[::-1])
        return None if bool((order[1:] > order[:-1]).all()) else torch.from_numpy(order)
    numbers = numbered_together(rows)[0]
    if len(numbers) < 2 or bool((numbers[1:] >= numbers[:-1]).all()):
        return None
    return stable_order(numbers)
