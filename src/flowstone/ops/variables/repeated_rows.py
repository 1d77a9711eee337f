"""Rows of tensors by indices that may repeat: which of these come first, and copies that keep the last.

>>> rounds(torch.tensor([2, 0, 2, 1]))
[tensor([0, 1, 3]), tensor([2])]
"""

from __future__ import annotations

import torch

from flowstone.framework.machine.machine_code import placing

__all__ = ["copy_rows", "rounds"]

_MARKS = 64  # places an index up to which marking them is faster than a sort
_LISTED = 64  # indices above which Python is slower than a sort at finding repetitions


def rounds(indices: torch.Tensor, limit: int | None = None) -> list[torch.Tensor] | None:
    """Positions of a vector of indices in groups without repetition, in order of occurrence; None where
    none repeats. `limit`: what the indices should be below.
    """
    count = indices.shape[0]
    if count > _LISTED and _distinct(indices, limit) == count:
        return None
    flat = indices.tolist()
    if len(set(flat)) == count:
        return None
    seen: dict[int, int] = {}
    groups: list[list[int]] = []
    for position, index in enumerate(flat):
        turn = seen.get(index, 0)
        seen[index] = turn + 1
        if turn == len(groups):
            groups.append([])
        groups[turn].append(position)
    return [torch.tensor(group, device=indices.device) for group in groups]


def _distinct(indices: torch.Tensor, limit: int | None) -> int:
    """How many different indices there are: by marks for those below the limit, where these are not many
    more than the indices and bound them all, or else by sorting."""
    if limit is None or limit > _MARKS * indices.shape[0] or not _are_inside(indices, limit):
        return len(torch.unique(indices))
    marks = torch.zeros(limit, dtype=torch.bool, device=indices.device)
    return int(torch.count_nonzero(marks.index_fill_(0, indices, True)))


def _are_inside(indices: torch.Tensor, limit: int) -> bool:
    lowest, highest = torch.aminmax(indices)
    return lowest.item() >= 0 and highest.item() < limit


def _is_dense(tensor: torch.Tensor) -> bool:
    return (
        tensor.device.type == "cpu" and tensor.is_contiguous() and not (tensor.is_conj() or tensor.is_neg())
    )


def _are_placed(table: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> bool:
    """Copies rows in their order by machine code, so that the last of those for one place stays; whether it
    is there, and for tensors such as these."""
    if not (_is_dense(table) and _is_dense(updates)):
        return False
    native = placing(indices.dtype)
    if native is None or table.dtype is not updates.dtype or not updates.numel():
        return False
    return native.put(table, indices.contiguous(), updates)


def copy_rows(table: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> None:
    """Copies rows to the places in `table` that the indices say; of those for one place the last stays.
    IndexError for a place that is not there."""
    if _are_placed(table, indices, updates):
        return
    indices = indices.long()
    groups = rounds(indices, table.shape[0])
    if groups is None:
        table.index_copy_(0, indices, updates)
        return
    for group in groups:
        table.index_copy_(0, indices[group], updates[group])
