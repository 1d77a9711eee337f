"""Device types from outside, with buffers that CPU kernels cannot read."""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.operation import registry
from flowstone.runtime.process import device_types
from flowstone.runtime.process.device import default_device, local_devices, needs_placement
from flowstone.runtime.process.device_types import register_device_type, unregister_device_type

pytestmark = pytest.mark.usefixtures("graph")

EXAMPLE = Path(__file__).parents[3] / "examples" / "example_device" / "example_device.py"
TASK = "/job:localhost/replica:0/task:0"


@pytest.fixture(scope="module")
def package():
    """The example package, without installing it."""
    spec = importlib.util.spec_from_file_location("example_device", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def arena(package):
    """Registers arenas; gives a function of their options."""
    made = []

    def make(**options):
        kind = package.Arenas(**options)
        register_device_type(kind)
        made.append(kind.name)
        return device_types.memory_of(kind.name, 0)

    yield make
    for name in made:
        unregister_device_type(name)


def on_arena(index=0):
    return tf.device(f"/device:ARENA:{index}")


# ---- which there are


def test_a_registered_type_is_among_the_devices(arena):
    arena(count=2, limit_bytes=1 << 20)
    own = [device for device in local_devices() if device.device_type == "ARENA"]
    assert [device.name for device in own] == [f"{TASK}/device:ARENA:{i}" for i in range(2)]
    assert [device.memory_limit for device in own] == [1 << 20] * 2
    assert default_device(local_devices()).device_type != "ARENA"
    assert needs_placement([], local_devices())
    assert len(local_devices({"ARENA": 1})) == len(local_devices()) - 1
    assert not any(device.device_type == "ARENA" for device in local_devices({"ARENA": 0}))


def test_an_entry_point_registers_its_type(package, monkeypatch):
    point = EntryPoint("arena", "example_device:ARENA", device_types.ENTRY_POINTS)
    monkeypatch.setattr(device_types, "entry_points", lambda group: [point] if group == point.group else [])
    monkeypatch.setattr(device_types, "_loaded", False)
    try:
        assert [kind.name for kind in device_types.device_types()] == ["ARENA"]
        assert device_types.device_types() == [package.ARENA], "loaded once"
    finally:
        unregister_device_type("ARENA")
    assert "ARENA" not in registry["MatMul"].kernels


def test_a_broken_package_is_warned_about(monkeypatch, caplog):
    point = EntryPoint("arena", "no_such_package:ARENA", device_types.ENTRY_POINTS)
    monkeypatch.setattr(device_types, "entry_points", lambda group: [point])
    monkeypatch.setattr(device_types, "_loaded", False)
    assert device_types.device_types() == []
    assert "no_such_package:ARENA cannot be used: ModuleNotFoundError" in caplog.text
    assert local_devices()[0].device_type == "CPU"


def test_the_package_declares_its_entry_point():
    text = (EXAMPLE.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert f'[project.entry-points."{device_types.ENTRY_POINTS}"]\narena = "example_device:ARENA"' in text


@pytest.mark.parametrize("name", ["CPU", "GPU", "arena", "A B", ""])
def test_a_name_must_be_free_and_plain(package, name):
    with pytest.raises(ValueError, match="cannot be the name of a device type"):
        register_device_type(package.Arenas(name))


def test_a_type_is_registered_once_and_for_ops_that_exist(package, arena):
    arena()
    with pytest.raises(ValueError, match="already"):
        register_device_type(package.Arenas())
    with pytest.raises(ValueError, match="NoSuchOp"):
        register_device_type(package.Arenas("OTHER", kernels={"NoSuchOp": None}))


# ---- steps


def test_values_cross_by_send_and_receive(arena):
    memory = arena()
    x = tf.placeholder(tf.float32, [2, 2])
    with on_arena():
        product = tf.matmul(x, x + 1.0)
    total = tf.reduce_sum(product)  # no kernel there
    value = np.float32([[1, 2], [3, 4]])
    with tf.Session() as session:
        assert session.run(total, {x: value}) == (value @ (value + 1)).sum()
        np.testing.assert_array_equal(session.run(product, {x: value}), value @ (value + 1))
        text = session.explain(total, [x])
    assert text.count("_Send") >= 2 and "# /job:localhost/replica:0/task:0/device:ARENA:0" in text
    assert memory.statistics().allocations > 0


def test_cpu_kernels_cannot_read_its_buffers(arena):
    buffer = arena().copy_in(torch.ones(3))
    with pytest.raises(TypeError):
        torch.add(buffer, 1.0)
    with pytest.raises((TypeError, ValueError)):
        np.asarray(buffer, dtype=np.float32)


def test_placement_leaves_on_the_cpu_what_has_no_kernel(arena):
    arena(relative_speed=50.0)
    x = tf.placeholder(tf.float32, [256, 256], name="x")
    y = tf.matmul(tf.matmul(x, x, name="a"), x, name="b")
    total = tf.reduce_mean(y, name="total")
    w = tf.Variable(tf.zeros([256, 256]), name="w")
    update = tf.assign_add(w, y).op
    with tf.Session() as session:
        session.run(w.initializer)
        table = session.explain_placement([total, update], [x])
        placed = {words[0]: words[2][-7:] for line in table.splitlines() if len(words := line.split()) == 5}
        assert placed["a"] == placed["b"] == "ARENA:0", "fifty times as fast"
        assert placed["total"] == placed["w"] == placed["AssignAdd"] == "e:CPU:0"
        value = np.eye(256, dtype=np.float32)
        session.run(update, {x: value})
        np.testing.assert_array_equal(session.run(w), value)


def test_a_request_without_a_kernel_is_refused_or_softened(arena):
    arena()
    x = tf.placeholder(tf.float32, [2])
    with on_arena():
        total = tf.reduce_sum(x, name="total")
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="supported kernel for"):
        session.run(total, {x: [1, 1]})
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        assert session.run(total, {x: [1, 1]}) == 2


def test_fusion_does_not_take_away_its_kernels(arena):
    arena()
    x = tf.placeholder(tf.float32, [2, 3])
    with on_arena():
        y = tf.nn.relu(tf.add(tf.matmul(x, tf.ones([3, 4])), tf.constant([1.0, -50.0, 0.0, 2.0])))
    with tf.Session() as session:
        value = np.arange(6, dtype=np.float32).reshape(2, 3)
        expected = np.maximum(value @ np.ones((3, 4), np.float32) + np.float32([1, -50, 0, 2]), 0)
        np.testing.assert_array_equal(session.run(y, {x: value}), expected)


def test_control_edges_cross(arena):
    arena()
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign_add(1.0)]), on_arena():
        y = tf.square(tf.constant(3.0))
    with tf.control_dependencies([y]):
        after = v.assign_add(10.0)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([y, after]) == [9.0, 12.0]


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_on_it(arena, taken):
    arena()
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [3])

    def there():
        with on_arena():
            return tf.square(x)

    y = tf.cond(p, there, lambda: x - 1.0)
    with tf.Session() as session:
        value = np.float32([1, 2, 3])
        expected = value**2 if taken else value - 1
        np.testing.assert_array_equal(session.run(y, {p: taken, x: value}), expected)


def test_a_loop_with_a_node_on_it_and_its_gradient(arena):
    arena()
    x = tf.placeholder(tf.float32, [3])

    def body(i, y):
        with on_arena():
            z = tf.tanh(y)
        return i + 1, z * x

    _, y = tf.while_loop(lambda i, y: i < 4, body, [0, x])
    (dy,) = tf.gradients(y, x)
    value = np.float32([0.1, 0.5, 2.0])
    with tf.Session() as session:
        found = session.run([y, dy], {x: value})
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3])
        y = x
        for _ in range(4):
            y = tf.tanh(y) * x
        (dy,) = tf.gradients(y, x)
        with tf.Session() as session:
            expected = session.run([y, dy], {x: value})
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)


# ---- memory


def test_memory_is_counted_and_given_back(arena):
    memory = arena()
    x = tf.placeholder(tf.float32, [1024])
    with on_arena():
        y = tf.exp(tf.square(x))
    with tf.Session() as session:
        for _ in range(5):
            session.run(y, {x: np.zeros(1024)})
        (device,) = [device for device in session.list_devices() if device.device_type == "ARENA"]
        held = device.statistics()
    assert held.bytes_in_use == 0 and held.allocations == 15
    assert 2 * 4096 <= held.peak_bytes <= 3 * 4096
    assert held.limit_bytes == device.memory_limit_bytes == memory.limit


def test_a_limit_exceeded_names_the_node(arena):
    arena(limit_bytes=1 << 16)
    x = tf.placeholder(tf.float32, [None])
    with on_arena():
        y = tf.exp(tf.square(x, name="first"), name="second")
    with tf.Session() as session:
        config = tf.RunOptions(timeout_in_ms=60_000)
        with pytest.raises(tf.errors.ResourceExhaustedError, match=r"out of memory.*bytes wanted") as caught:
            session.run(y, {x: np.zeros(12_000)}, options=config)
        assert "node first (op Square)" in str(caught.value)
        assert session.run(y, {x: np.zeros(2)}).tolist() == [1, 1], "the session is usable, the memory free"


def test_placement_respects_the_limit(arena):
    arena(limit_bytes=1 << 16, relative_speed=50.0)
    x = tf.placeholder(tf.float32, [256, 256])
    y = tf.matmul(x, x, name="large")
    with tf.Session() as session:
        assert "ARENA" not in session.explain_placement(y, [x])
        value = np.eye(256, dtype=np.float32)
        np.testing.assert_array_equal(session.run(y, {x: value}), value)


def test_a_predicate_made_on_it_steers_there(package, arena):
    """The executor asks for a host value, never for a buffer."""
    kernels = {**package.KERNELS, "Less": package._kernel(torch.lt)}
    arena(kernels=kernels)
    x = tf.placeholder(tf.float32, [])
    with on_arena():
        y = tf.cond(x < 3.0, lambda: tf.square(x), lambda: tf.negative(x))
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=60_000)) as session:
        assert [session.run(y, {x: value}) for value in (2.0, 4.0)] == [4.0, -4.0]


def test_training_on_it_gives_what_the_cpu_gives(arena):
    """What the arena has no kernels for, variables and most of the gradient, stays on the CPU."""

    def train(device_count):
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            x, y = tf.placeholder(tf.float32, [64, 200]), tf.placeholder(tf.float32, [64, 1])
            hidden = tf.tanh(_dense(x, 200))
            loss = tf.reduce_mean(tf.square(_dense(hidden, 1) - y))
            step = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
            with tf.Session(config=tf.ConfigProto(device_count=device_count)) as session:
                session.run(tf.global_variables_initializer())
                rng = np.random.RandomState(0)
                given = {x: rng.randn(64, 200), y: rng.randn(64, 1)}
                return [session.run([loss, step], given)[0] for _ in range(10)]

    memory = arena(relative_speed=20.0)
    expected, found = train({"ARENA": 0}), train({})
    np.testing.assert_allclose(found, expected, rtol=1e-4)  # other products, in another order
    assert found[-1] < 0.5 * found[0]
    assert memory.statistics().allocations > 50, "it took part"


def _dense(x, width):
    w = tf.get_variable(f"w{width}", [x.shape[1], width], initializer=tf.random_normal_initializer(0, 0.05))
    return tf.matmul(x, w) + tf.get_variable(f"b{width}", [width], initializer=tf.zeros_initializer())


def test_steps_on_it_can_be_traced(arena):
    arena()
    x = tf.placeholder(tf.float32, [4])
    with on_arena():
        y = tf.exp(tf.square(x, name="s"), name="e")
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(y, {x: np.zeros(4)}, options=options, run_metadata=metadata)
    names = {stats.device: {n.node_name for n in stats.node_stats} for stats in metadata.step_stats.dev_stats}
    assert {"s", "e"} <= names[f"{TASK}/device:ARENA:0"]
