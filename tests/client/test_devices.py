"""Devices as programs see them: `tf.device`, lists of devices, placement as log, table and picture."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.client.devices import list_local_devices
from flowstone.compat.module_paths import find_sources

pytestmark = pytest.mark.usefixtures("graph")

TASK = "/job:localhost/replica:0/task:0"


# ---- tf.device; expected values are TensorFlow's


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("/job:ps/task:1", "/job:ps/task:1"),
        ("/CPU:*", "/device:CPU:*"),
        ("gpu", "/device:GPU:*"),
        ("/device:LANE:3", "/device:LANE:3"),
        ("/job:a/job:b", "/job:b"),
        ("//", ""),
        ("", ""),
        ("/gpu:0/task:2/job:w/replica:1", "/job:w/replica:1/task:2/device:GPU:0"),
    ],
)
def test_names(name, device):
    with tf.device(name):
        assert tf.constant(1).device == device
    with tf.device(tf.DeviceSpec.from_string(name)):
        assert tf.constant(1).device == device


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("/foo:1", "Unknown attribute 'foo' is encountered while parsing the device spec: '/foo:1'."),
        (
            "/cpu:0/gpu:0",
            "Multiple device types are not allowed while parsing the device spec: /cpu:0/gpu:0.",
        ),
        ("/device:CPU", "Unknown attribute 'device' is encountered while parsing the device spec"),
        ("cpu:x", "invalid literal for int"),
        ("/task:1:2", "Unknown attribute 'task' is encountered while parsing the device spec: '/task:1:2'."),
    ],
)
def test_malformed_names(name, message):
    with pytest.raises(ValueError, match=message.replace(".", r"\.")), tf.device(name):
        tf.constant(1)


def test_inner_names_complete_and_replace_outer_ones():
    with tf.device("/job:ps/task:1"):
        with tf.device("/cpu:0"):
            assert tf.constant(1).device == "/job:ps/task:1/device:CPU:0"
            with tf.device(None):
                assert tf.constant(1).device == ""
            with tf.device(lambda op: "/gpu:1" if op.type == "Const" else ""):
                assert tf.constant(1).device == "/job:ps/task:1/device:GPU:1"
                assert tf.no_op().device == "/job:ps/task:1/device:CPU:0"
        with tf.device(lambda op: "/job:worker"):
            assert tf.constant(1).device == "/job:worker/task:1"
        with tf.device(""):
            assert tf.constant(1).device == "/job:ps/task:1"


def test_functions_see_the_finished_operation():
    seen = []
    with tf.device(lambda op: seen.append((op.name, op.type, [x.dtype for x in op.outputs])) or "/cpu:0"):
        tf.constant(1.0, name="one")
    assert seen == [("one", "Const", [tf.float32])]


def test_a_device_that_does_not_exist():
    with tf.device("/cpu:7"):
        x = tf.constant(1.0, name="x") + tf.Variable(1.0, name="v")
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="available devices are"),
    ):
        session.run(x)


# ---- lists


def test_a_session_lists_its_devices():
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 3})) as session:
        cpus = [device for device in session.list_devices() if device.device_type == "CPU"]
    assert [device.name for device in cpus] == [f"{TASK}/device:CPU:{i}" for i in range(3)]
    assert all(device.memory_limit_bytes > 1 << 20 for device in cpus)
    assert len({device.incarnation for device in cpus}) == 3


def test_local_devices():
    assert find_sources("tensorflow.python.client.device_lib") == ("flowstone.client.devices",)
    devices = list_local_devices()
    assert devices[0].name == "/device:CPU:0" and devices[0].device_type == "CPU"
    assert devices[0].memory_limit > 1 << 20 and devices[0].incarnation > 0
    assert str(devices[0]).startswith('name: "/device:CPU:0"\ndevice_type: "CPU"\nmemory_limit: ')
    assert len(list_local_devices(tf.ConfigProto(device_count={"CPU": 2}))) == len(devices) + 1
    gpus = [device for device in devices if device.device_type == "GPU"]
    assert bool(gpus) == tf.test.is_gpu_available()
    assert tf.test.gpu_device_name() == (gpus[0].name if gpus else "")


def test_gpu_options_are_accepted():
    options = tf.GPUOptions(per_process_gpu_memory_fraction=0.5, allow_growth=True)
    with tf.Session(config=tf.ConfigProto(gpu_options=options)) as session:
        assert session.run(tf.constant(2) + 3) == 5


# ---- placement


def program():
    with tf.device("/cpu:1"):
        a = tf.placeholder(tf.float32, [64, 64], name="a")
        b = tf.matmul(a, a, name="b")
    with tf.device("/cpu:0"):
        return a, tf.negative(b, name="c")


def test_placements_are_logged_once(capfd):
    a, c = program()
    config = tf.ConfigProto(device_count={"CPU": 2}, log_device_placement=True)
    with tf.Session(config=config) as session:
        for _ in range(2):
            session.run(c, {a: [[1.0] * 64] * 64})
        first = capfd.readouterr().err
        session.run(tf.exp(c, name="d"), {a: [[1.0] * 64] * 64})
        second = capfd.readouterr().err
    assert f"b: (MatMul): {TASK}/device:CPU:1\n" in first and f"c: (Neg): {TASK}/device:CPU:0\n" in first
    assert first.count("MatMul") == 1
    assert "d: (Exp): " in second and "MatMul" not in second


def test_nothing_is_logged_unless_asked_for(capfd):
    with tf.Session() as session:
        session.run(tf.constant(1.0) + tf.Variable(1.0, name="v").initial_value)
    assert "device:" not in capfd.readouterr().err


def test_a_placement_as_a_table(tmp_path):
    pytest.importorskip("matplotlib")
    a, c = program()
    picture = tmp_path / "placement.png"
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        table = session.explain_placement(c, [a], picture)
        assert session.explain_placement(c, {a: None}) == table
    rows = [line.split() for line in table.splitlines()]
    assert ["b", "MatMul", f"{TASK}/device:CPU:1"] in [row[:3] for row in rows]
    assert ["c", "Neg", f"{TASK}/device:CPU:0"] in [row[:3] for row in rows]
    assert "1 transfer of 16384 bytes" in table
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_the_table_of_one_device():
    with tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
        table = session.explain_placement(tf.exp(tf.placeholder(tf.float32, [4], name="x")), ["x:0"])
    assert "0 transfers" in table and "Exp" in table


def test_the_placement_of_a_session_stays():
    """What an earlier plan placed is shown where it is."""
    v = tf.get_variable("v", [64, 64])
    with tf.device("/cpu:1"):
        init = v.initializer
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        session.run(init)
        home = session.planner.assigned["v"]
        rows = [line.split() for line in session.explain_placement(tf.matmul(v, v)).splitlines()]
        assert ["v", "VariableV2", home] in [row[:3] for row in rows]
