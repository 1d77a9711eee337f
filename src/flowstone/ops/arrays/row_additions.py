"""Rows added to those of a table that indices name, which may repeat, or multiplied with them."""

from __future__ import annotations

import torch

from flowstone.framework.machine import machine_code

__all__ = ["add_rows", "are_changed"]


def add_rows(
    table: torch.Tensor, indices: torch.Tensor, rows: torch.Tensor, subtracts: bool = False
) -> torch.Tensor:
    """Adds rows [n, …] to those of `table` at indices [n], or subtracts them, one after the other; returns
    `table`. IndexError or RuntimeError on a host for an index that is outside. ATen wakes its team for a
    single row, which takes up to a millisecond."""
    if are_changed(table, indices, rows, "subtract" if subtracts else "add"):
        return table
    if not subtracts:
        return table.index_add_(0, indices, rows)
    if rows.is_floating_point() and rows.device.type == "cpu":
        return table.index_add_(0, indices, rows.neg())  # which ATen adds in a third of the time
    return table.index_add_(0, indices, rows, alpha=-1)


def are_changed(table: torch.Tensor, indices: torch.Tensor, rows: torch.Tensor, how: str) -> bool:
    """Changes them by machine code, as `machine_code.RowAdditions` says; whether it is there, and for tensors
    such as these."""
    is_plain = table.device.type == "cpu" and table.dim() > 1 and table.is_contiguous()
    if how == "divide" and not table.is_floating_point():
        return False
    if not is_plain or table.dtype is not rows.dtype or table.is_neg() or rows.is_neg() or not rows.numel():
        return False
    native = machine_code.row_additions(table.dtype, indices.dtype)
    return native is not None and native(table, indices.contiguous(), rows.contiguous(), how)
