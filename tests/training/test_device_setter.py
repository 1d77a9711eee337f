"""`replica_device_setter` as TensorFlow's: which operations go to which server, merging, strategies."""

from __future__ import annotations

import logging

import pytest

import flowstone as tf
from flowstone.training.sessions.device_setter import (
    GreedyLoadBalancingStrategy,
    RandomStrategy,
    byte_size_load_fn,
)

pytestmark = pytest.mark.usefixtures("graph")


def devices(setter, use_resource=False):
    """The devices of four variables, a constant, one on a GPU, one of another job, an update and a read."""
    with tf.device(setter):
        v = [tf.get_variable(f"v{i}", [2, 3], use_resource=use_resource) for i in range(4)]
        a = tf.constant(1.0)
        with tf.device("/gpu:0"):
            b, w = tf.constant(1.0), tf.get_variable("w", [3], use_resource=use_resource)
        with tf.device("/job:other/task:3"):
            c = tf.constant(1.0)
        update, read = v[0].assign_add(tf.ones([2, 3])), v[1] + 1.0
    rest = [x.device for x in (a, b, w, c, update, read)]
    return [x.device for x in v], rest


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize(
    "arguments", [{"ps_tasks": 2}, {"cluster": {"ps": ["a:1", "b:2"], "worker": ["c:1"]}}]
)
def test_variables_take_turns_on_the_servers(arguments, use_resource):
    variables, rest = devices(tf.train.replica_device_setter(**arguments), use_resource)
    assert variables == ["/job:ps/task:0", "/job:ps/task:1"] * 2
    assert rest == [
        "/job:worker",
        "/job:worker/device:GPU:0",
        "/job:ps/task:0/device:GPU:0",
        "/job:other/task:3",
        "/job:ps/task:0",
        "/job:worker",
    ]


def test_full_names_are_completed():
    setter = tf.train.replica_device_setter(3, "/job:ps/cpu:0", "/job:worker/task:7/gpu:1")
    variables, rest = devices(setter)
    assert variables == [f"/job:ps/task:{i}/device:CPU:0" for i in (0, 1, 2, 0)]
    assert rest == [
        "/job:worker/task:7/device:GPU:1",
        "/job:worker/task:7/device:GPU:0",
        "/job:ps/task:1/device:GPU:0",
        "/job:other/task:3/device:GPU:1",
        "/job:ps/task:0/device:CPU:0",
        "/job:worker/task:7/device:GPU:1",
    ]


def test_without_merging_what_an_operation_says_replaces(caplog):
    with caplog.at_level(logging.WARNING):
        setter = tf.train.replica_device_setter(2, merge_devices=False)
    assert "merge_devices=true" in caplog.text
    variables, rest = devices(setter)
    assert variables == ["/job:ps/task:0", "/job:ps/task:1"] * 2
    assert rest[:4] == ["/job:worker", "/device:GPU:0", "/device:GPU:0", "/job:other/task:3"]


@pytest.mark.parametrize(
    ("arguments", "variable", "other"),
    [
        ({"ps_tasks": 1, "ps_device": None}, "/job:worker", "/job:worker"),
        ({"ps_tasks": 1, "worker_device": None}, "/job:ps/task:0", ""),
        ({"ps_tasks": 1, "ps_ops": ["Const"]}, "/job:worker", "/job:ps/task:0"),
    ],
)
def test_parts_may_be_left_out(arguments, variable, other):
    variables, rest = devices(tf.train.replica_device_setter(**arguments))
    assert variables[0] == variable and rest[0] == other


def test_no_servers_no_function():
    assert tf.train.replica_device_setter() is None
    assert tf.train.replica_device_setter(cluster={"worker": ["x:1"]}) is None
    assert tf.train.replica_device_setter(cluster={"ps": ["x:1"]}, ps_device="/cpu:0") is None


def test_wrong_arguments():
    with pytest.raises(TypeError, match="`cluster` must be a dictionary"):
        tf.train.replica_device_setter(cluster=5)
    with pytest.raises(TypeError, match="ps_strategy must be callable"):
        tf.train.replica_device_setter(1, ps_strategy=3)


def test_the_strategy_is_asked_only_about_variables_of_the_servers():
    asked = []
    setter = tf.train.replica_device_setter(3, ps_strategy=lambda op: asked.append(op.name) or 1)
    with tf.device(setter):
        v = tf.Variable(tf.zeros([2, 3]), name="v")
        with tf.device("/job:ps/task:0"):
            named = tf.Variable(1.0, name="named")
        with tf.device("/job:worker/task:1"):
            elsewhere = tf.Variable(1.0, name="elsewhere")
        with tf.device("/task:2"):
            task = tf.Variable(1.0, name="task")
    assert asked == ["v", "named", "task"]
    assert [x.device for x in (v, named, elsewhere, task)] == [
        "/job:ps/task:1", "/job:ps/task:0", "/job:worker/task:1", "/job:ps/task:2",
    ]  # fmt: skip


@pytest.mark.parametrize("use_resource", [False, True])
def test_greedy_balances_bytes(use_resource):
    strategy = GreedyLoadBalancingStrategy(2, byte_size_load_fn)
    with tf.device(tf.train.replica_device_setter(2, ps_strategy=strategy)):
        sizes = [[100], [10], [20], [69], [2], [5]]
        v = [tf.get_variable(f"v{i}", size, use_resource=use_resource) for i, size in enumerate(sizes)]
    assert [x.device[-1] for x in v] == ["0", "1", "1", "1", "1", "0"]


def test_the_load_of_a_variable_is_its_bytes():
    v = tf.get_variable("v", [3, 4], tf.float64)
    r = tf.get_variable("r", [5], tf.int32, use_resource=True, initializer=tf.zeros_initializer())
    open_shape = tf.Variable(tf.placeholder(tf.float32, None), validate_shape=False, name="open")
    assert byte_size_load_fn(v.op) == 96
    assert byte_size_load_fn(r.handle.op) == 20
    assert byte_size_load_fn(open_shape.op) == 4


def test_random_strategy_repeats_itself():
    strategies = [RandomStrategy(5, seed=1) for _ in range(2)]
    chosen = [[strategy(None) for _ in range(40)] for strategy in strategies]
    assert chosen[0] == chosen[1] and set(chosen[0]) == set(range(5))


def test_contrib_offers_the_strategies():
    assert tf.contrib.training.GreedyLoadBalancingStrategy is GreedyLoadBalancingStrategy
    assert tf.contrib.training.byte_size_load_fn is byte_size_load_fn
