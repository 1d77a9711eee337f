"""Whose memory is it: results are never spoilt by overwriting, and what leaves the step belongs to the
user.
"""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.kernel import Value
from flowstone.framework.declarations.registry import registry
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.code.aliasing import Aliasing

pytestmark = pytest.mark.usefixtures("graph")

ONES = np.ones([2, 3], np.float32)


def aliasing_of(fetches, feeds):
    """The analysis of the subgraph, and its nodes by type."""
    subgraph = prune(fetches, [], feeds)
    constants = {}
    for node in subgraph.nodes:
        if node.type == "Const":
            kernel = node.declaration.kernels["CPU"](node, _environment())
            assert isinstance(kernel, Value)
            constants[node.outputs[0]] = kernel.value
    return Aliasing(subgraph, constants), {node.type: node for node in subgraph.nodes}


def _environment():
    from flowstone.framework.declarations.kernel import Environment

    return Environment()


def test_a_dead_result_may_be_overwritten_a_feed_and_a_constant_may_not():
    x = tf.placeholder(tf.float32, [2])
    y = tf.sin(tf.exp(x) * 2.0)
    aliasing, nodes = aliasing_of([y], [x])
    assert aliasing.may_overwrite(nodes["Sin"], 0)
    assert aliasing.may_overwrite(nodes["Mul"], 0)
    assert not aliasing.may_overwrite(nodes["Mul"], 1)  # the constant
    assert not aliasing.may_overwrite(nodes["Exp"], 0)  # the feed


def test_a_result_that_is_fetched_used_later_or_used_twice_may_not_be_overwritten():
    x = tf.placeholder(tf.float32, [2])
    e = tf.exp(x)
    aliasing, nodes = aliasing_of([tf.sin(e), e], [x])
    assert not aliasing.may_overwrite(nodes["Sin"], 0)
    s = tf.sin(e)
    aliasing, nodes = aliasing_of([tf.cos(s) + e], [x])
    assert not aliasing.may_overwrite(nodes["Sin"], 0) and aliasing.may_overwrite(nodes["Cos"], 0)
    aliasing, nodes = aliasing_of([e * e], [x])
    assert not aliasing.may_overwrite(nodes["Mul"], 0)


def test_a_view_keeps_its_base_from_being_overwritten():
    x = tf.placeholder(tf.float32, [2, 3])
    e = tf.exp(x)
    view = tf.transpose(e)
    aliasing, nodes = aliasing_of([tf.matmul(tf.sin(e), view)], [x])
    assert not aliasing.may_overwrite(nodes["Sin"], 0)
    aliasing, nodes = aliasing_of([tf.sin(tf.transpose(tf.exp(x)))], [x])
    assert aliasing.may_overwrite(nodes["Sin"], 0)  # the last use of the view is the last of its base


def test_both_outputs_of_a_switch_and_a_merge_share_their_data():
    x, p = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, [])
    e = tf.exp(x)
    y = tf.cond(p, lambda: tf.sin(e), lambda: tf.identity(e))
    subgraph = prune([tf.cos(y) + e], [], [x, p])
    aliasing = Aliasing(subgraph, {})
    nodes = {node.type: node for node in subgraph.nodes}
    assert not aliasing.may_overwrite(nodes["Sin"], 0) and not aliasing.may_overwrite(nodes["Cos"], 0)
    subgraph = prune([tf.cos(y)], [], [x, p])
    aliasing = Aliasing(subgraph, {})
    nodes = {node.type: node for node in subgraph.nodes}
    assert aliasing.may_overwrite(nodes["Cos"], 0)


def test_fetches_that_share_memory_with_anything_kept_are_copied():
    x = tf.placeholder(tf.float32, [2])
    e = tf.exp(x)
    same = tf.identity(e)
    fetches = [x, e, same, tf.sin(x)]
    subgraph = prune(fetches, [], [x])
    aliasing = Aliasing(subgraph, {})
    assert aliasing.copied_fetches(subgraph.fetches) == [True, True, True, False]


def test_what_is_fetched_twice_is_copied_once():
    x = tf.placeholder(tf.float32, [2])
    a, b = tf.sin(x), tf.cos(x)
    subgraph = prune([a, b, a], [], [x])
    assert Aliasing(subgraph, {}).copied_fetches(subgraph.fetches) == [False, False, True]


@pytest.mark.parametrize(
    "make", [lambda x: x, tf.identity, tf.transpose, lambda x: tf.reshape(x, [6]), lambda x: x[0]]
)
def test_writing_into_a_fetch_changes_neither_feed_nor_constant_nor_variable(make):
    fed = ONES.copy()
    x, c, v = tf.placeholder(tf.float32, [2, 3]), tf.constant(ONES), tf.Variable(ONES)
    r = tf.Variable(ONES, use_resource=True)
    session = tf.Session()
    session.run([v.initializer, r.initializer])
    sources = [x, c, v, r]
    results = session.run([make(tf.convert_to_tensor(source)) for source in sources], {x: fed})
    for result in results:
        result[...] = 7
    np.testing.assert_array_equal(fed, ONES)
    np.testing.assert_array_equal(session.run(tf.stack([c, v, r])), np.stack([ONES] * 3))


def test_a_variable_keeps_no_fed_buffer():
    fed = ONES.copy()
    x = tf.placeholder(tf.float32, [2, 3])
    v, r = tf.Variable(ONES * 0), tf.Variable(ONES * 0, use_resource=True)
    session = tf.Session()
    session.run([v.initializer, r.initializer])
    session.run([v.assign(x).op, r.assign(x).op], {x: fed})
    fed[...] = 9
    np.testing.assert_array_equal(session.run(v), ONES)
    np.testing.assert_array_equal(session.run(r), ONES)


def test_a_resource_read_keeps_its_value_through_views_and_branches():
    p = tf.placeholder(tf.bool, [])
    v = tf.Variable(ONES, use_resource=True)
    before = tf.transpose(v.read_value())
    chosen = tf.cond(p, lambda: before, lambda: tf.negative(before))
    with tf.control_dependencies([chosen]):
        update = v.assign_add(ONES)
    with tf.control_dependencies([update]):
        late = tf.identity(chosen)
    session = tf.Session()
    session.run(v.initializer)
    np.testing.assert_array_equal(session.run(late, {p: True}), ONES.T)
    np.testing.assert_array_equal(session.run(late, {p: False}), -2 * ONES.T)
    np.testing.assert_array_equal(session.run(v), 3 * ONES)


def test_in_place_results_on_one_branch_leave_the_other_whole():
    x, p = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, [])
    e = tf.exp(x)
    y = tf.cond(p, lambda: e + 1.0, lambda: e - 1.0)
    session = tf.Session()
    for taken, shift in ((True, 1), (False, -1), (True, 1)):
        np.testing.assert_allclose(session.run(y, {x: [0, 1], p: taken}), np.exp([0, 1]) + shift, rtol=1e-6)
        both = session.run([y, e], {x: [0, 1], p: taken})
        np.testing.assert_allclose(both[1], np.exp([0, 1]), rtol=1e-6)


def test_a_read_keeps_its_value_while_its_step_waits_and_another_unit_writes():
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer(), use_resource=True)
    read = v.read_value()
    last = read
    for _ in range(2):  # two kernels that may wait: the step has several units
        with tf.control_dependencies([last]):
            last = tf.FIFOQueue(9, [tf.float32]).enqueue(1.0)
    with tf.control_dependencies([last]):
        added = v.assign_add(1.0)
    with tf.control_dependencies([added]):
        later = read * 1.0
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([read, added, later]) == [0.0, 1.0, 0.0]
        assert session.run([read, added, later]) == [1.0, 2.0, 1.0]


def test_an_input_of_which_another_is_a_view_is_not_overwritten():
    x = tf.placeholder(tf.float32, [3, 3])
    y = tf.exp(x)
    with tf.Session() as s:
        value = np.arange(9, dtype="f").reshape(3, 3) / 10
        expected = np.exp(value)
        np.testing.assert_allclose(s.run(y + tf.transpose(y), {x: value}), expected + expected.T, rtol=1e-6)
        parts = tf.split(y, 3, 0)
        total = s.run(tf.multiply(parts[0], parts[0] + parts[1]), {x: value})
        np.testing.assert_allclose(total, expected[:1] * (expected[:1] + expected[1:2]), rtol=1e-6)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("parted", [tf.unstack, lambda x: tf.split(x, 3), lambda x: tf.split(x, [1, 2])])
def test_parts_of_a_read_keep_their_values(parted, use_resource):
    value = np.arange(9, dtype="f").reshape(3, 3)
    v = tf.Variable(value, use_resource=use_resource)
    parts = parted(v.read_value())
    with tf.control_dependencies(parts):
        update = v.assign(-tf.ones([3, 3])).op
    with tf.control_dependencies([update]):
        later = tf.reshape(tf.concat([tf.reshape(part, [-1]) for part in parts], 0), [3, 3])
    with tf.Session() as s:
        s.run(v.initializer)
        np.testing.assert_array_equal(s.run(later), value)
        np.testing.assert_array_equal(s.run(v), -np.ones([3, 3]))


def test_fetches_that_are_computed_once_are_arrays_of_their_own():
    x = tf.placeholder(tf.float32, [3])
    with tf.Session() as s:
        a, b = s.run([x + 1.0, x + 1.0], {x: [1, 2, 3]})
        assert not np.shares_memory(a, b)
        a[:] = 0
        assert b.tolist() == [2, 3, 4]


@pytest.mark.parametrize(("receiver", "copies"), [("/job:a/task:0", True), ("/job:a/task:1", False)])
def test_what_is_sent_within_a_task_is_copied_from_a_feed_and_the_rest_by_whoever_sends_it(receiver, copies):
    x = tf.placeholder(tf.float32, [2])
    subgraph = prune([tf.exp(x)], [], [x])
    (source,) = subgraph.feeds
    way = {"tensor_name": "x", "send_device": "/job:a/task:0/device:CPU:0"}
    attributes = {**way, "recv_device": f"{receiver}/device:CPU:1", "T": tf.float32}
    send = subgraph.new_node(registry["_Send"], [source], attributes, like=source.op, name="send")
    assert Aliasing(subgraph, {}).must_copy_kept(send, 0) is copies


def test_a_constant_string_that_a_loop_begins_with_is_no_state():
    keys = tf.FIFOQueue(9, tf.string, [[1]])
    fill = keys.enqueue_many([[["a"], ["b"], ["c"], ["a"]]])
    first = keys.dequeue()
    start = [tf.constant([""]), 0]
    end = tf.while_loop(
        lambda key, _: tf.not_equal(key[0], first[0]), lambda _, n: (keys.dequeue(), n + 1), start
    )
    with tf.Session() as session:
        session.run(fill)
        key, count = session.run(end)
    assert (key.tolist(), count) == ([b"a"], 3)
