"""Blocks: taken again when they are free, gone when nobody has them, and safe from what is no block."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from flowstone.distributed.wire import shared_blocks
from flowstone.distributed.wire.shared_blocks import BlockPool, MappedBlocks, can_share

pytestmark = pytest.mark.skipif(not can_share(), reason="this system has no memfd")


def mapped_blocks() -> int:
    """How many mappings of blocks this process has."""
    gc.collect()
    return sum("memfd:flowstone" in line for line in Path("/proc/self/maps").read_text().splitlines())


def open_files() -> int:
    """How many files of blocks this process has."""
    names = []
    for file in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            names.append(os.readlink(f"/proc/self/fd/{file}"))
    return sum("memfd:flowstone" in name for name in names)


class Ends:
    """A sender's pool and a receiver's blocks, with the files that pass between them."""

    def __init__(self) -> None:
        self.pool, self.mapped = BlockPool(), MappedBlocks()

    def pass_on(self, content: bytes) -> tuple[int, memoryview]:
        """Sends a payload: the block's number, and what the receiver has."""
        taken = self.pool.take(len(content))
        assert taken is not None
        block, is_new = taken
        for number in self.pool.dropped():
            self.mapped.forget(number)
        if is_new:
            self.mapped.add(block.number, block.take_file())
        block.write([content[:10], b"", content[10:]])
        return block.number, self.mapped.payload(block.number, len(content))


def test_a_block_is_taken_again_when_all_its_values_are_gone() -> None:
    ends = Ends()
    content = os.urandom(500_000)
    first, payload = ends.pass_on(content)
    assert bytes(payload) == content
    tensor = torch.from_numpy(np.frombuffer(payload[64:128], np.float32).reshape(4, 4))
    row = tensor[2]
    del payload, tensor
    second, _ = ends.pass_on(os.urandom(500_000))
    assert second != first
    assert bytes(row.numpy()) == content[64 + 32 : 64 + 48]  # a view of a view still holds its block
    del row
    third, _ = ends.pass_on(os.urandom(400_000))
    assert third in (first, second)


def test_the_receiver_may_write_where_its_values_lie() -> None:
    ends = Ends()
    _, payload = ends.pass_on(bytes(400))
    torch.from_numpy(np.frombuffer(payload, np.float32)).add_(1.0)
    assert bytes(payload) == np.ones(100, np.float32).tobytes()


def test_sizes_choose_blocks() -> None:
    ends = Ends()
    large, payload = ends.pass_on(bytes(4_000_000))
    del payload
    assert ends.pass_on(bytes(1_000_000))[0] != large  # which would waste the most of it
    assert ends.pass_on(bytes(3_000_000))[0] == large


def test_nothing_stays_behind() -> None:
    files, mappings = open_files(), mapped_blocks()
    ends = Ends()
    held = [ends.pass_on(os.urandom(300_000))[1] for _ in range(10)]
    assert open_files() == files and mapped_blocks() == mappings + 20
    ends.pool = BlockPool()  # as if the sender was gone
    ends.mapped = MappedBlocks()
    assert mapped_blocks() == mappings + 10 and len(bytes(held[3])) == 300_000
    del held
    assert mapped_blocks() == mappings


def test_idle_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_blocks, "_MOST_IDLE", 3 << 20)
    before, ends = mapped_blocks(), Ends()
    held = [ends.pass_on(bytes(1 << 20))[1] for _ in range(12)]
    assert mapped_blocks() == before + 24
    del held
    ends.pass_on(bytes(8 << 20))
    assert mapped_blocks() <= before + 2 * 4


def test_blocks_that_stay_in_use_become_the_receivers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_blocks, "_MOST_BLOCKS", 4)
    before, ends = mapped_blocks(), Ends()
    contents = [os.urandom(300_000) for _ in range(20)]
    held = [ends.pass_on(content)[1] for content in contents]
    assert [bytes(each) for each in held] == contents
    assert mapped_blocks() == before + 20 + 4


def test_without_memory_to_share_there_is_no_block(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(1, "not permitted")

    monkeypatch.setattr(os, "memfd_create", refuse)
    files, pool = open_files(), BlockPool()
    assert pool.take(1000) is None and pool.take(1000) is None
    monkeypatch.undo()
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    assert BlockPool().take(1000) is None and open_files() == files
    shared_blocks._has_made_one.cache_clear()
    assert not can_share()  # a sandbox that does not let it
    monkeypatch.undo()
    shared_blocks._has_made_one.cache_clear()
    assert can_share()
    monkeypatch.delattr(os, "memfd_create")
    assert not can_share() and BlockPool().take(1000) is None


@pytest.mark.parametrize("kind", ["pipe", "file", "unsealed", "empty", "null"])
def test_files_that_are_no_blocks(kind: str, tmp_path: Path) -> None:
    if kind == "pipe":
        file, other = os.pipe()
        os.close(other)
    elif kind == "file":
        (tmp_path / "x").write_bytes(bytes(10_000))
        file = os.open(tmp_path / "x", os.O_RDWR)
    elif kind == "null":
        file = os.open("/dev/null", os.O_RDWR)
    else:
        file = os.memfd_create("x", os.MFD_ALLOW_SEALING)
        os.ftruncate(file, 10_000 if kind == "unsealed" else 0)
    mapped = MappedBlocks()
    with pytest.raises(ValueError, match="block"):
        mapped.add(1, file)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)
    with pytest.raises(ValueError, match="the block 1 has no 10 bytes"):
        mapped.payload(1, 10)


def test_a_payload_that_its_block_does_not_have() -> None:
    ends = Ends()
    number, payload = ends.pass_on(bytes(100))
    for size in (1 << 30, 1 << 62):
        with pytest.raises(ValueError, match="has no"):
            ends.mapped.payload(number, size)
    ends.mapped.forget(number)
    with pytest.raises(ValueError, match="has no"):
        ends.mapped.payload(number, 1)
    assert len(payload) == 100
