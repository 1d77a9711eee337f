"""The context of a program that is built for the shards of a TPU, of which there are none here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["TpuContext", "get_tpu_context", "tpu_shard_context"]


class TpuContext:
    """How many shards the program that is being built runs on; None outside `tpu_shard_context`."""

    def __init__(self) -> None:
        self._number_of_shards: int | None = None

    @property
    def number_of_shards(self) -> int | None:
        """The number of shards."""
        return self._number_of_shards

    def set_number_of_shards(self, number_of_shards: int | None) -> None:
        """Sets the number of shards."""
        self._number_of_shards = number_of_shards


_context = TpuContext()


def get_tpu_context() -> TpuContext:
    """The context."""
    return _context


@contextmanager
def tpu_shard_context(number_of_shards: int) -> Iterator[None]:
    """What is built within is for that many shards. NotImplementedError within another one."""
    if _context.number_of_shards is not None:
        raise NotImplementedError("tpu_shard_context cannot be nested.")
    _context.set_number_of_shards(number_of_shards)
    try:
        yield
    finally:
        _context.set_number_of_shards(None)
