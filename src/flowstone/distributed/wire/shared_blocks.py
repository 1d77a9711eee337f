"""Memory that two processes of one host share, for the payloads of large frames.

A sender copies a payload into a *block*, memory without a name (memfd), whose file goes over their Unix
socket once, and then sends its number alone. The receiver maps it once and uses the payload where it lies.
The first byte of a block tells whether it is in use: the sender sets it, the receiver clears it when the
last tensor in it is gone, and the sender takes the block again: a step like the one before makes no new
memory.

A block has no name, and no file stays open: the system has it back when both processes have let it go,
however they end. Its size is sealed, so that reading a mapping cannot fail. Blocks that stay in use for
long (a variable took the value over) are the receiver's alone after a while. Where the system gives none,
`BlockPool.take` is None, and payloads go over the socket.

>>> pool, mapped = BlockPool(), MappedBlocks()
>>> block, is_new = pool.take(3)
>>> mapped.add(block.number, block.take_file())
>>> block.write([b"a", b"bc"])
>>> payload = mapped.payload(block.number, 3)
>>> bytes(payload), block.is_free()
(b'abc', False)
>>> del payload
>>> block.is_free(), pool.take(2) == (block, False)
(True, True)
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework.process.finalizers import when_freed

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["Block", "BlockPool", "MappedBlocks", "can_share"]

_START = 64  # of the payload, behind what tells the state, in a cache line of its own
_LEAST = 1 << 18  # bytes of a block
_MOST_BLOCKS = 256  # of one direction of a connection that may be used again
_MOST_IDLE = 1 << 30  # bytes that wait for that
_LOOSE = 2  # times as large as its payload a block may be: a variable may keep it for good
_PARTS = 8  # sizes are multiples of an eighth of a power of two


def can_share() -> bool:
    """Whether this system has memory that can be given to another process by a socket."""
    return hasattr(os, "memfd_create") and fcntl is not None and _has_made_one()


@functools.cache
def _has_made_one() -> bool:
    """Whether this process could make and map such memory when it tried; sandboxes may not allow it."""
    try:
        Block(0, _LEAST)
    except (OSError, RuntimeError, ValueError):
        return False
    return True


def _mapping(file: int, size: int) -> Any:
    """The bytes of a file as an array, which end the mapping with their own end; the file may be closed."""
    return torch.from_file(f"/proc/self/fd/{file}", shared=True, size=size, dtype=torch.uint8).numpy()


def _rounded(size: int) -> int:
    step = max(_LEAST, 1 << (size - 1).bit_length()) // _PARTS
    return max(_LEAST, -(-size // step) * step)


class Block:
    """A block as its sender has it. OSError or RuntimeError if the system gives none."""

    def __init__(self, number: int, capacity: int) -> None:
        self.number, self.capacity = number, capacity
        self._file = os.memfd_create("flowstone", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.posix_fallocate(self._file, 0, _START + capacity)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, seals)
            self._bytes = _mapping(self._file, _START + capacity)
        except BaseException:
            os.close(self.take_file())
            raise

    def take_file(self) -> int:
        """Its file, which the caller closes; once."""
        file, self._file = self._file, -1
        return file

    def is_free(self) -> bool:
        """Whether the receiver is done with it."""
        return not self._bytes[0]

    def hold(self) -> None:
        """It is in use from now on."""
        self._bytes[0] = 1

    def write(self, parts: Sequence[Any]) -> None:
        """Copies a payload into it."""
        at = _START
        for part in filter(len, parts):
            np.copyto(self._bytes[at : at + len(part)], np.frombuffer(part, np.uint8))
            at += len(part)

    def __del__(self) -> None:
        if getattr(self, "_file", -1) >= 0:
            os.close(self._file)


class BlockPool:
    """The blocks of one direction of a connection, at its sender. Not to be used by two threads at once."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []  # those used last are the last
        self._count = 0
        self._dropped: list[int] = []
        self._is_broken = not can_share()

    def take(self, size: int) -> tuple[Block, bool] | None:
        """A block for so many bytes, in use from now on, and whether the receiver does not know it yet;
        None if there is none."""
        if self._is_broken:
            return None
        fitting = [each for each in self._blocks if size <= each.capacity <= max(_LOOSE * size, _LEAST)]
        found = next((each for each in sorted(fitting, key=_capacity) if each.is_free()), None)
        is_new = found is None
        if found is None:
            found = self._new(size)
            if found is None:
                return None
        else:
            self._blocks.remove(found)
        self._blocks.append(found)
        found.hold()
        if is_new:
            self._drop()
        return found, is_new

    def dropped(self) -> list[int]:
        """The numbers of the blocks that were given up since the last call."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def _new(self, size: int) -> Block | None:
        if len(self._blocks) >= _MOST_BLOCKS:
            idle = next((each for each in self._blocks if each.is_free()), None)
            self._give_up(idle or self._blocks[0])
        self._count += 1
        try:
            return Block(self._count, _rounded(size))
        except (OSError, RuntimeError, ValueError):
            self._is_broken = not self._blocks  # else it may be memory, or files, that are short
            return None

    def _drop(self) -> None:
        """Gives up those that were idle longest, if they are many bytes."""
        idle = [each for each in self._blocks if each.is_free()]
        excess = sum(map(_capacity, idle)) - _MOST_IDLE
        for each in idle:
            if excess <= 0:
                break
            excess -= each.capacity
            self._give_up(each)

    def _give_up(self, block: Block) -> None:
        self._blocks.remove(block)
        self._dropped.append(block.number)


def _capacity(block: Block) -> int:
    return block.capacity


class MappedBlocks:
    """The blocks of one direction of a connection, at its receiver."""

    def __init__(self) -> None:
        self._blocks: dict[int, Any] = {}

    def add(self, number: int, file: int) -> None:
        """Maps a block, and closes its file. ValueError for a file that is none."""
        try:
            size = os.fstat(file).st_size
            seals = fcntl.fcntl(file, fcntl.F_GET_SEALS)
            if not seals & fcntl.F_SEAL_SHRINK or size <= _START or len(self._blocks) >= _MOST_BLOCKS:
                raise ValueError(f"a file of {size} bytes with the seals {seals} is no block")
            self._blocks[number] = _mapping(file, size)
        except (OSError, RuntimeError) as error:
            raise ValueError(f"a block cannot be mapped: {error}") from None
        finally:
            os.close(file)

    def payload(self, number: int, size: int) -> memoryview:
        """The payload in a block, which is free again when nothing uses these bytes any more. ValueError
        for a block that is not there, or too small."""
        block = self._blocks.get(number)
        if block is None or size > len(block) - _START:
            raise ValueError(f"the block {number} has no {size} bytes")
        held = block[_START : _START + size]  # arrays of its `data` do not hold `block`, but this
        when_freed(held, _free, block)
        found: memoryview = held.data
        return found

    def forget(self, number: int) -> None:
        """Its sender has given it up; values that are in it stay."""
        self._blocks.pop(number, None)


def _free(block: Any) -> None:
    block[0] = 0
