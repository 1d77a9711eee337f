"""What a program leaves open is written when it ends, or when it drops the writer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from flowstone.io import records

_PROGRAM = """
import sys
import flowstone as tf

class Mine:
    pass

def main(folder):
    mine = Mine()
    mine.me = mine  # so that nothing frees it at the exit
    mine.writer = tf.python_io.TFRecordWriter(folder + "/records")
    mine.writer.write(b"abc")
    mine.packed = tf.python_io.TFRecordWriter(folder + "/packed", "GZIP")
    mine.packed.write(b"abc")
    mine.file = tf.gfile.GFile(folder + "/text", "w")
    mine.file.write("hello")
    mine.log = tf.summary.FileWriter(folder + "/log")
    for step in range(3):
        mine.log.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=step)]), step)

main(sys.argv[1])
"""


def test_what_is_open_at_the_exit_is_written(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM, str(tmp_path)], check=True)
    assert list(records.tf_record_iterator(tmp_path / "records")) == [b"abc"]
    assert list(records.tf_record_iterator(tmp_path / "packed", records.TFRecordOptions("GZIP"))) == [b"abc"]
    assert (tmp_path / "text").read_text() == "hello"
    (path,) = (tmp_path / "log").iterdir()
    assert len(list(records.tf_record_iterator(path))) == 4


def test_a_dropped_writer_ends_its_file(tmp_path: Path) -> None:
    records.TFRecordWriter(tmp_path / "records").write(b"abc")
    assert list(records.tf_record_iterator(tmp_path / "records")) == [b"abc"]
