"""Records and events of TensorFlow's, small, and whether TensorFlow reads ours.

    $TF_PYTHON tests/golden/make_record_goldens.py write     writes tests/golden/records
    python tests/golden/make_record_goldens.py ours FOLDER   writes the same by ours
    $TF_PYTHON tests/golden/make_record_goldens.py read FOLDER

The last compares what TensorFlow reads from FOLDER with what it should, and adds its release to
`records/read_by_tensorflow.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "records"
NOTE = FOLDER / "read_by_tensorflow.json"
RECORDS = [b"abc", b"", b"\x00\xff" * 300, "é".encode()]
KINDS = ("", "ZLIB", "GZIP")
STEPS = 4


def write_records(tf: Any, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for kind in KINDS:
        with tf.python_io.TFRecordWriter(str(folder / f"records{kind}"), kind) as writer:
            for record in RECORDS:
                writer.write(record)
    example = tf.train.Example()
    example.features.feature["b"].bytes_list.value.append(b"x")
    example.features.feature["f"].float_list.value.extend([1.5, -2])
    example.features.feature["i"].int64_list.value.extend([1, -(2**40)])
    (folder / "example").write_bytes(example.SerializeToString())


def check_records(tf: Any, folder: Path) -> None:
    for kind in KINDS:
        options = tf.python_io.TFRecordOptions({"": 0, "ZLIB": 1, "GZIP": 2}[kind])
        read = list(tf.python_io.tf_record_iterator(str(folder / f"records{kind}"), options))
        assert read == RECORDS, (kind, read)
    example = tf.train.Example.FromString((folder / "example").read_bytes())
    features = example.features.feature
    assert list(features["b"].bytes_list.value) == [b"x"]
    assert list(features["f"].float_list.value) == [1.5, -2]
    assert list(features["i"].int64_list.value) == [1, -(2**40)]


def check_events(events: list[Any]) -> None:
    first, *others = events
    assert first.file_version == "brain.Event:2" and first.wall_time > 1e9
    assert [(event.step, event.summary.value[0].simple_value) for event in others] == [
        (step, step / 2) for step in range(STEPS)
    ]


def event(tf: Any, step: int) -> Any:
    summary = tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=step / 2)])
    return tf.Event(wall_time=1.5, step=step, summary=summary)


def write() -> None:
    import tensorflow as tf

    tf = tf.compat.v1
    write_records(tf, FOLDER)
    with tf.Graph().as_default():
        writer = tf.summary.FileWriter(str(FOLDER))
        for step in range(STEPS):
            writer.add_event(event(tf, step))
        writer.close()
    (path,) = FOLDER.glob("events.out.tfevents.*")
    path.rename(FOLDER / "events")


def ours(folder: Path) -> None:
    import flowstone as tf
    from flowstone.io.events import EventLog

    write_records(tf, folder)
    log = EventLog(folder)
    for step in range(STEPS):
        log.add_event(event(tf, step))
    log.close()


def read(folder: Path) -> None:
    import tensorflow as tf

    release = tf.__version__
    tf = tf.compat.v1
    check_records(tf, folder)
    (path,) = folder.glob("events.out.tfevents.*")
    check_events(list(tf.train.summary_iterator(str(path))))
    releases = json.loads(NOTE.read_text()) if NOTE.exists() else []
    NOTE.write_text(json.dumps(sorted({*releases, release})) + "\n")
    print(release, "read records, an Example and events")


if __name__ == "__main__":
    {"write": write, "read": read, "ours": ours}[sys.argv[1]](*map(Path, sys.argv[2:]))
