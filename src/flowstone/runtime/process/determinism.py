"""Whether every run computes in the same way, the first ones too (`native_kernels.begin_kernels`)."""

from __future__ import annotations

from flowstone.framework import flags

__all__ = ["enable_op_determinism"]


def enable_op_determinism() -> None:
    """Has first runs wait for machine code, from the next plans on: a program that goes on from a checkpoint
    then computes the same as one that never ended. Equal programs compute the same anyway."""
    flags.DETERMINISTIC = True
