"""Frames from streams of any bytes, in pieces of any size, with files and without."""

from __future__ import annotations

import os
import random
import socket
import threading
from typing import Any

import pytest

from flowstone.distributed.wire import frames
from flowstone.distributed.wire.frames import FrameReader, header


class Pieces:
    """A stream that gives its bytes in pieces of random sizes."""

    def __init__(self, content: bytes, seed: int) -> None:
        self._rest, self._choose = content, random.Random(seed)

    def recv_into(self, view: memoryview) -> int:
        most = min(len(view), len(self._rest), self._choose.choice((1, 7, 30, 1000, 1 << 20)))
        view[:most], self._rest = self._rest[:most], self._rest[most:]
        return most


def written(kind: int, step: int, text: str, payload: bytes, number: int = 0) -> bytes:
    words = text.encode()
    follows = frames.NUMBER.pack(number) if kind & frames.SHARED else payload
    return header(kind, step, len(words), len(payload)) + words + follows


def all_frames(reader: FrameReader) -> list[Any]:
    found = []
    while (frame := reader.frame()) is not None:
        found.append(frame)
    return found


def random_frames(choose: random.Random) -> list[tuple[int, int, str, bytes, int]]:
    return [
        (
            choose.choice((frames.RUN, frames.PUSH, frames.DONE, frames.PUSH | frames.SHARED, frames.FORGET)),
            choose.getrandbits(64),
            "ü" * choose.choice((0, 1, 40, 40_000)),
            choose.randbytes(choose.choice((0, 1, 100, 5_000, 200_000))),
            choose.getrandbits(64),
        )
        for _ in range(choose.randrange(1, 12))
    ]


@pytest.mark.parametrize("seed", range(20))
def test_frames_come_out_as_they_went_in(seed: int) -> None:
    given = random_frames(random.Random(seed))
    found = all_frames(FrameReader(Pieces(b"".join([written(*each) for each in given]), seed)))
    assert len(found) == len(given)
    for frame, (kind, step, text, payload, number) in zip(found, given):
        assert (frame.kind, frame.step, frame.text, frame.size) == (kind, step, text, len(payload))
        assert frame.payload == (number if kind & frames.SHARED else payload)


@pytest.mark.parametrize("seed", range(200))
def test_damaged_frames_are_errors_or_other_frames(seed: int) -> None:
    choose = random.Random(seed)
    content = bytearray(b"".join([written(*each) for each in random_frames(choose)]))
    for _ in range(choose.randrange(1, 4)):
        content[choose.randrange(min(len(content), 200))] = choose.randrange(256)
    if seed % 3 == 0:
        del content[choose.randrange(len(content)) :]
    reader = FrameReader(Pieces(bytes(content), seed))
    try:
        while (frame := reader.frame(most_payload=1 << 24)) is not None:
            assert frames.HELLO <= frame.kind & ~frames.SHARED <= frames.FORGET
    except (ValueError, EOFError):
        pass


@pytest.mark.parametrize(("text", "payload"), [(5000, 0), (10, 1), (10, 1 << 39)])
def test_little_is_read_of_who_is_not_known(text: int, payload: int) -> None:
    reader = FrameReader(Pieces(header(frames.HELLO, 0, text, payload) + bytes(text), 0))
    with pytest.raises(ValueError, match="malformed"):
        reader.first()


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no Unix sockets")
def test_files_come_in_the_order_of_their_frames() -> None:
    here, there = socket.socketpair(socket.AF_UNIX)
    files = [os.open(f"/proc/self/{name}", os.O_RDONLY) for name in ("stat", "status", "maps")] * 6
    reader = FrameReader(there, takes_files=True)

    def send() -> None:
        for number, file in enumerate(files):
            socket.send_fds(here, [header(frames.BLOCK, number, 0, 0)], [file])
            here.sendall(written(frames.PUSH, number, "key", bytes(1000 * number)))
        here.close()

    thread = threading.Thread(target=send)
    thread.start()
    steps = []
    while (frame := reader.frame()) is not None:
        steps.append(frame.step)
        if frame.kind == frames.BLOCK:
            file = reader.take_file()
            assert os.fstat(file).st_ino == os.fstat(files[frame.step]).st_ino
            assert not os.get_inheritable(file)
            os.close(file)
    thread.join()
    assert steps == [number for number in range(len(files)) for _ in range(2)]
    with pytest.raises(ValueError, match="without its file"):
        reader.take_file()
    there.close()
    for file in files[:3]:
        os.close(file)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no Unix sockets")
def test_files_that_no_frame_is_about_do_not_stay_open() -> None:
    here, there = socket.socketpair(socket.AF_UNIX)
    before = len(os.listdir("/proc/self/fd"))
    reader = FrameReader(there, takes_files=True)
    with pytest.raises(ValueError, match="files came that no frame is about"):
        for _ in range(200):
            socket.send_fds(here, [written(frames.PUSH, 1, "k", b"")], [0, 1, 2, 2, 2])
            reader.frame()
    reader.close()
    # A few may be those of other threads; a leak would be of hundreds.
    assert len(os.listdir("/proc/self/fd")) <= before + 5
    here.close()
    there.close()
