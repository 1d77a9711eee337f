"""Where a debugger's nodes send what they see; `tests/ops/tables/debugging.py` has their values."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event

import flowstone as tf
from flowstone.framework.declarations.operation import F

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
VALUES = np.array([1.0, np.nan, np.nan], np.float32)


def run(tensor: tf.Tensor) -> object:
    with tf.Session() as session:
        return session.run(tensor)


def events(folder: pathlib.Path) -> dict[str, Event]:
    """The events below `folder`, by their path without the time at its end."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)).rpartition("_")[0]: Event.FromString(path.read_bytes())
        for path in files
    }


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "int32"])
def test_nan_count(kind: str) -> None:
    values = np.array([1, 0, 3]).astype(kind) if kind == "int32" else VALUES.astype(kind)
    count = run(F.DebugNanCount(values, tensor_name="a:0"))
    assert count.tolist() == [0 if kind == "int32" else 2]
    assert count.dtype == np.int64


@pytest.mark.parametrize("value", [[True], [b"a"], [1j]])
def test_nan_count_of_other_types(value: list) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="real numbers"):
        run(F.DebugNanCount(tf.constant(value), tensor_name="a:0"))


def test_files(tmp_path: pathlib.Path) -> None:
    where = {"device_name": DEVICE, "tensor_name": "a/b:1", "debug_urls": [f"file://{tmp_path}"]}
    run(F.DebugIdentity(VALUES, **where))
    run(F.DebugNanCount(VALUES, **where))
    run(F.DebugIdentity(tf.constant([b"x"]), **(where | {"tensor_name": "c"})))
    found = events(tmp_path)
    folder = "_tfdbg_device_,job_localhost,replica_0,task_0,device_CPU_0"
    assert sorted(found) == [
        f"{folder}/{name}" for name in ("a/b_1_DebugIdentity", "a/b_1_DebugNanCount", "c_0_DebugIdentity")
    ]
    event = found[f"{folder}/a/b_1_DebugIdentity"]
    value = event.summary.value[0]
    assert (value.tag, value.node_name) == ("a/b", "a/b:1:DebugIdentity")
    np.testing.assert_array_equal(tf.make_ndarray(value.tensor), VALUES)
    place = json.loads(value.metadata.plugin_data.content)
    assert place == {"device": DEVICE, "outputSlot": 1, "numChunks": 1, "chunkIndex": 0}
    assert event.wall_time > 1e15
    count = found[f"{folder}/a/b_1_DebugNanCount"].summary.value[0].tensor
    assert tf.make_ndarray(count).tolist() == [2]


def test_healthy_tensors_are_muted(tmp_path: pathlib.Path) -> None:
    where = {"tensor_name": "a:0", "debug_urls": [f"file://{tmp_path}"], "mute_if_healthy": True}
    assert run(F.DebugNumericSummary(np.ones(2), **where)).shape == (15,)
    assert events(tmp_path) == {}
    run(F.DebugNumericSummary(VALUES, **where))
    assert list(events(tmp_path)) == ["_tfdbg_device_/a_0_DebugNumericSummary"]


def test_servers() -> None:
    where = {"tensor_name": "a:0", "debug_urls": ["grpc://localhost:1"]}
    with pytest.raises(tf.errors.UnimplementedError, match="debugger's server"):
        run(F.DebugIdentity(VALUES, **where))
    assert run(F.DebugIdentity(VALUES, gated_grpc=True, **where)).shape == (0,)
    assert run(F.DebugNanCount(VALUES, gated_grpc=True, **where)).shape == (0,)


def test_no_gradient() -> None:
    x = tf.constant(VALUES)
    for node in (F.Copy(x), F.DebugIdentity(x, tensor_name="a:0")):
        with pytest.raises(LookupError):
            tf.gradients(node, x)
