"""Files in an S3 store, of a server on this machine: what programs do with paths works there, too."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowstone as tf

_REASON = "needs s3fs and moto[server], which are large: pip install s3fs 'moto[server]'"
server = pytest.importorskip("moto.server", reason=_REASON)
pytest.importorskip("s3fs", reason=_REASON)


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """An empty bucket."""
    import boto3

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        }.items():
            patch.setenv(name, value)
        boto3.client("s3").create_bucket(Bucket="bucket")
        yield "s3://bucket"
    running.stop()


def test_files(bucket: str) -> None:
    gfile = tf.gfile
    with gfile.Open(f"{bucket}/a/b.txt", "w") as file:
        file.write("hello\nthere\n")
    assert gfile.Open(f"{bucket}/a/b.txt").readlines() == ["hello\n", "there\n"]
    assert gfile.Stat(f"{bucket}/a/b.txt").length == 12
    assert gfile.IsDirectory(f"{bucket}/a") and gfile.ListDirectory(f"{bucket}/a") == ["b.txt"]
    gfile.Rename(f"{bucket}/a/b.txt", f"{bucket}/a/c.txt")
    assert gfile.Glob(f"{bucket}/a/*") == [f"{bucket}/a/c.txt"]
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        gfile.Open(f"{bucket}/nowhere").read()
    gfile.DeleteRecursively(f"{bucket}/a")
    assert not gfile.Exists(f"{bucket}/a/c.txt")


def test_records_and_input_pipelines(bucket: str) -> None:
    records = [b"record %d" % i for i in range(5)]
    with tf.python_io.TFRecordWriter(f"{bucket}/records") as writer:
        for record in records:
            writer.write(record)
    assert list(tf.python_io.tf_record_iterator(f"{bucket}/records")) == records
    with tf.Graph().as_default(), tf.Session() as session:
        batch = tf.data.TFRecordDataset(f"{bucket}/records").batch(5).make_one_shot_iterator().get_next()
        assert session.run(batch).tolist() == records


def test_checkpoints_and_logs(bucket: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(np.arange(6.0))
        saver = tf.train.Saver()
        session.run(variable.initializer)
        saver.save(session, f"{bucket}/run/model", global_step=1)
        session.run(variable.assign(variable * 0))
        saver.restore(session, tf.train.latest_checkpoint(f"{bucket}/run"))
        assert session.run(variable).tolist() == [0, 1, 2, 3, 4, 5]
        writer = tf.summary.FileWriter(f"{bucket}/logs", session.graph)
        value: Any = tf.Summary.Value(tag="loss", simple_value=0.5)
        writer.add_summary(tf.Summary(value=[value]), 7)
        writer.close()
    (path,) = tf.gfile.Glob(f"{bucket}/logs/*")
    assert [event.step for event in tf.train.summary_iterator(path)][-1] == 7
