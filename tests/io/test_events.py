"""Event files: what a log writes is read back, while it is written and after; TensorBoard reads it too."""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event

from flowstone.framework import errors
from flowstone.io import events, records
from flowstone.io.file_system import write_string_to_file
from stepping import own_threads


def event(step: int) -> Event:
    made = Event(step=step, wall_time=1.5)
    made.summary.value.add(tag="loss", simple_value=step / 2)
    return made


def steps(path: str) -> list[int]:
    return [each.step for each in events.summary_iterator(path)]


def test_a_log(tmp_path: Path) -> None:
    log = events.EventLog(tmp_path / "a/b", suffix=".tail")
    for step in (1, 2, 3):
        log.add_event(event(step))
    log.close()
    name = Path(log.path).name
    host = re.escape(socket.gethostname())
    assert re.fullmatch(rf"events\.out\.tfevents\.\d{{10}}\.{host}\.tail", name)
    first, *others = events.summary_iterator(log.path)
    assert first.file_version == "brain.Event:2" and first.wall_time > 1e9
    assert others == [event(1), event(2), event(3)]


def test_tensorboard_reads_it(tmp_path: Path) -> None:
    log = events.EventLog(tmp_path)
    log.add_event(event(7))
    log.close()
    read = list(EventFileLoader(log.path).Load())
    assert [each.step for each in read] == [0, 7] and read[0].file_version == "brain.Event:2"


def test_flushing_makes_events_seen(tmp_path: Path) -> None:
    log = events.EventLog(tmp_path, flush_secs=1000)
    assert steps(log.path) == [0]  # what says the version
    log.add_event(event(1))
    log.flush()
    assert steps(log.path) == [0, 1]
    reader = events.EventReader(log.path)
    assert [each.step for each in reader] == [0, 1]
    log.add_event(event(2))
    log.flush()
    assert [each.step for each in reader] == [2]
    reader.close()
    log.close()


def test_events_are_seen_after_a_while(tmp_path: Path) -> None:
    log = events.EventLog(tmp_path, flush_secs=0.02)
    log.add_event(event(1))
    seen = threading.Event()
    for _ in range(500):
        if steps(log.path) == [0, 1]:
            break
        seen.wait(0.01)
    assert steps(log.path) == [0, 1]
    log.close()


def test_a_closed_log(tmp_path: Path) -> None:
    log = events.EventLog(tmp_path, suffix=".1")
    log.close()
    log.close()
    log.add_event(event(1))
    log.flush()
    assert steps(log.path) == [0]
    first = log.path
    Path(first).rename(tmp_path / "first")
    log.reopen()
    log.reopen()
    log.add_event(event(2))
    log.close()
    assert steps(log.path) == [0, 2] and steps(str(tmp_path / "first")) == [0]


def test_a_log_ends_its_thread(tmp_path: Path) -> None:
    before = own_threads()
    log = events.EventLog(tmp_path)
    assert len(own_threads() - before) == 1
    log.close()
    assert own_threads() <= before


def test_many_threads(tmp_path: Path) -> None:
    log = events.EventLog(tmp_path, max_queue=2)
    threads = [
        threading.Thread(
            target=lambda at: [log.add_event(event(at + n)) for n in range(100)], args=(k * 100,)
        )
        for k in range(1, 5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    assert sorted(steps(log.path)) == [0, *range(100, 500)]


def test_errors_of_the_thread_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = events.EventLog(tmp_path)

    def full(self: records.TFRecordWriter, record: bytes) -> None:
        raise errors.ResourceExhaustedError(None, None, "disk; No space left on device")

    monkeypatch.setattr(records.TFRecordWriter, "write", full)
    log.add_event(event(1))
    with pytest.raises(errors.ResourceExhaustedError, match="No space left"):
        log.flush()
    log.close()


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(errors.FailedPreconditionError):
        events.EventLog(tmp_path / "file/logs")


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes(data: bytes, framed: bool) -> None:
    """Bytes that are no events, also in records whose checksums hold, give events or DataLossError."""
    write_string_to_file("memory://events/any", records.encode([data]) if framed else data)
    try:
        assert len(list(events.summary_iterator("memory://events/any"))) <= 1
    except errors.DataLossError as error:
        assert error.message.startswith("memory://events/any; ")


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "events"
    whole = records.encode([event(1).SerializeToString(), event(2).SerializeToString()])
    first = len(records.encode([event(1).SerializeToString()]))
    for end in range(first, len(whole)):
        path.write_bytes(whole[:end])
        assert steps(str(path)) == [1]
    path.write_bytes(whole[:-1] + b"?")
    with pytest.raises(errors.DataLossError, match=f"events; corrupted record at {first}"):
        steps(str(path))
    path.write_bytes(records.encode([b"\xff"]))
    with pytest.raises(errors.DataLossError, match="no Event in the record at 0"):
        steps(str(path))
    with pytest.raises(errors.NotFoundError):
        steps(str(tmp_path / "no"))
