"""Segments: taken again when they are free, gone when nobody has them, and safe from what is no segment."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from flowstone.distributed import shared_segments
from flowstone.distributed.shared_segments import MappedSegments, SegmentPool, can_share

pytestmark = pytest.mark.skipif(not can_share(), reason="this system has no memfd")


def mapped_segments() -> int:
    """How many mappings of segments this process has."""
    gc.collect()
    return sum("memfd:flowstone" in line for line in Path("/proc/self/maps").read_text().splitlines())


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


class Ends:
    """A sender's pool and a receiver's segments, with the files that pass between them."""

    def __init__(self) -> None:
        self.pool, self.mapped = SegmentPool(), MappedSegments()

    def pass_on(self, content: bytes) -> tuple[int, memoryview]:
        """Sends a payload: the segment's number, and what the receiver has."""
        taken = self.pool.take(len(content))
        assert taken is not None
        segment, is_new = taken
        for number in self.pool.dropped():
            self.mapped.forget(number)
        if is_new:
            self.mapped.add(segment.number, segment.take_file())
        segment.write([content[:10], b"", content[10:]])
        return segment.number, self.mapped.payload(segment.number, len(content))


def test_a_segment_is_taken_again_when_all_its_values_are_gone() -> None:
    ends = Ends()
    content = os.urandom(500_000)
    first, payload = ends.pass_on(content)
    assert bytes(payload) == content
    tensor = torch.from_numpy(np.frombuffer(payload[64:128], np.float32).reshape(4, 4))
    row = tensor[2]
    del payload, tensor
    second, _ = ends.pass_on(os.urandom(500_000))
    assert second != first
    assert bytes(row.numpy()) == content[64 + 32 : 64 + 48]  # a view of a view still holds its segment
    del row
    third, _ = ends.pass_on(os.urandom(400_000))
    assert third in (first, second)


def test_the_receiver_may_write_where_its_values_lie() -> None:
    ends = Ends()
    _, payload = ends.pass_on(bytes(400))
    torch.from_numpy(np.frombuffer(payload, np.float32)).add_(1.0)
    assert bytes(payload) == np.ones(100, np.float32).tobytes()


def test_sizes_choose_segments() -> None:
    ends = Ends()
    large, payload = ends.pass_on(bytes(4_000_000))
    del payload
    assert ends.pass_on(bytes(1_000_000))[0] != large  # which would waste the most of it
    assert ends.pass_on(bytes(3_000_000))[0] == large


def test_nothing_stays_behind() -> None:
    files, mappings = open_files(), mapped_segments()
    ends = Ends()
    held = [ends.pass_on(os.urandom(300_000))[1] for _ in range(10)]
    assert open_files() == files and mapped_segments() == mappings + 20
    ends.pool = SegmentPool()  # as if the sender was gone
    ends.mapped = MappedSegments()
    assert mapped_segments() == mappings + 10 and len(bytes(held[3])) == 300_000
    del held
    assert mapped_segments() == mappings


def test_idle_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_segments, "_MOST_IDLE", 3 << 20)
    before, ends = mapped_segments(), Ends()
    held = [ends.pass_on(bytes(1 << 20))[1] for _ in range(12)]
    assert mapped_segments() == before + 24
    del held
    ends.pass_on(bytes(8 << 20))
    assert mapped_segments() <= before + 2 * 4


def test_segments_that_stay_in_use_become_the_receivers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_segments, "_MOST_SEGMENTS", 4)
    before, ends = mapped_segments(), Ends()
    contents = [os.urandom(300_000) for _ in range(20)]
    held = [ends.pass_on(content)[1] for content in contents]
    assert [bytes(each) for each in held] == contents
    assert mapped_segments() == before + 20 + 4


def test_without_memory_to_share_there_is_no_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(1, "not permitted")

    monkeypatch.setattr(os, "memfd_create", refuse)
    files, pool = open_files(), SegmentPool()
    assert pool.take(1000) is None and pool.take(1000) is None
    monkeypatch.undo()
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    assert SegmentPool().take(1000) is None and open_files() == files
    monkeypatch.delattr(os, "memfd_create")
    assert not can_share() and SegmentPool().take(1000) is None


@pytest.mark.parametrize("kind", ["pipe", "file", "unsealed", "empty", "null"])
def test_files_that_are_no_segments(kind: str, tmp_path: Path) -> None:
    before = open_files()
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
    mapped = MappedSegments()
    with pytest.raises(ValueError, match="segment"):
        mapped.add(1, file)
    assert open_files() == before
    with pytest.raises(ValueError, match="the segment 1 has no 10 bytes"):
        mapped.payload(1, 10)


def test_a_payload_that_its_segment_does_not_have() -> None:
    ends = Ends()
    number, payload = ends.pass_on(bytes(100))
    for size in (1 << 30, 1 << 62):
        with pytest.raises(ValueError, match="has no"):
            ends.mapped.payload(number, size)
    ends.mapped.forget(number)
    with pytest.raises(ValueError, match="has no"):
        ends.mapped.payload(number, 1)
    assert len(payload) == 100
