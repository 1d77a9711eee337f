"""Collective operations over devices of one process, against TensorFlow's results and errors; those of later
versions; loops, gradients, sessions that meet."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collective_programs
import flowstone as tf
from flowstone.ops.collectives import collective_ops as collective

GOLDENS = json.loads((Path(__file__).parents[2] / "golden" / "collectives.json").read_text(encoding="utf-8"))
LIMIT = tf.RunOptions(timeout_in_ms=20_000)


def session(count: int, target: str = "") -> tf.Session:
    return tf.Session(target, config=tf.ConfigProto(device_count={"CPU": count}))


def on_devices(count: int, build: Any) -> list[Any]:
    found = []
    for i in range(count):
        with tf.device(f"/cpu:{i}"):
            found.append(build(i))
    return found


@pytest.mark.parametrize("name", collective_programs.PROGRAMS)
def test_as_tensorflow(name: str) -> None:
    found = collective_programs.outcome(tf, collective, collective_programs.PROGRAMS[name])
    expected = GOLDENS[name]
    if expected and isinstance(expected[0], str):
        assert found == expected
    else:
        assert len(found) == len(expected)
        for value, wanted in zip(found, expected):
            np.testing.assert_allclose(value, wanted, rtol=1e-3)


def test_every_program_has_its_answer() -> None:
    assert sorted(GOLDENS) == sorted(collective_programs.PROGRAMS)


def test_static_shapes() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3])
        assert collective.all_reduce(x, 2, 1, 1).shape.as_list() == [None, 3]
        assert collective.all_gather(x, 2, 1, 1).shape.as_list() == [None, 3]
        assert collective.all_reduce_v2(x, 2, 1, 1).shape.as_list() == [None, 3]
        assert collective.broadcast_recv([2, 2], tf.int32, 2, 1, 1).shape.as_list() == [2, 2]
        assert collective.broadcast_recv_v2([4, 2], tf.int32, 2, 1, 1).shape.as_list() == [4, 2]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "int64"])
def test_keys_that_are_tensors(dtype: str) -> None:
    value = np.arange(12).reshape(4, 3)
    with tf.Graph().as_default(), session(2) as running:
        group = tf.placeholder(tf.int32, [])

        def build(i: int) -> list[Any]:
            x = tf.cast(tf.constant(value + 100 * i), dtype)
            keys = (2, group)
            found = [
                collective.all_reduce_v2(x, *keys, 1, final_op="Div"),
                collective.all_to_all_v2(x, *keys, 2),
            ]
            found.append(
                tf.raw_ops.CollectiveReduceScatterV2(
                    input=x, group_size=2, group_key=group, instance_key=3, ordering_token=[], merge_op="Max",
                    final_op="Id",
                )
            )  # fmt: skip
            if dtype != "bfloat16":
                found.append(collective.all_gather_v2(x, *keys, 4))
            return found

        results = running.run(on_devices(2, build), {group: 5}, options=LIMIT)
    both = [value, value + 100]
    for i, found in enumerate(results):
        part = slice(2 * i, 2 * i + 2)
        expected = [value + 50, np.concatenate([each[part] for each in both]), both[1][part]]
        expected += [np.concatenate(both)] if dtype != "bfloat16" else []
        for result, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(result.astype(np.float64), wanted)


def test_broadcasts_of_later_versions() -> None:
    def build(i: int) -> Any:
        if i == 1:
            return collective.broadcast_send_v2(tf.constant([True, False]), 2, 1, 1)
        return collective.broadcast_recv_v2([2], tf.bool, 2, 1, 1)

    with tf.Graph().as_default(), session(2) as running:
        for result in running.run(on_devices(2, build), options=LIMIT):
            assert result.tolist() == [True, False]


def test_values_that_cannot_be_divided() -> None:
    with tf.Graph().as_default(), session(2) as running:
        results = on_devices(2, lambda i: collective.all_to_all_v2(tf.zeros([3]), 2, 1, 1))
        with pytest.raises(tf.errors.InvalidArgumentError, match="divides dimension 0, which is 3, among 2"):
            running.run(results, options=LIMIT)
        scalar = collective.all_gather(tf.placeholder(tf.float32), 1, 1, 1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="at least one dimension"):
            running.run(scalar, {scalar.op.inputs[0]: 1.0})
        with pytest.raises(tf.errors.InvalidArgumentError, match="group_size is 0"):
            running.run(collective.all_reduce_v2(1.0, 0, 1, 1))


def test_keys_are_used_once_a_step() -> None:
    """TensorFlow gives results or InternalError, as the nodes happen to run; here it is always an error."""
    with tf.Graph().as_default(), session(2) as running:
        totals = [on_devices(2, lambda i: collective.all_reduce(1.0, 2, 1, 1)) for _ in range(2)]
        with pytest.raises(tf.errors.InternalError, match="have the same keys"):
            running.run(totals, options=LIMIT)


def test_in_a_loop() -> None:
    """Each iteration of one device meets the same one of the other."""

    def build(i: int) -> Any:
        def body(k: Any, x: Any) -> Any:
            return k + 1, collective.all_reduce(x, 2, 1, 1) + float(i)

        return tf.while_loop(lambda k, x: k < 4, body, [0, tf.constant(1.0)])[1]

    with tf.Graph().as_default(), session(2) as running:
        results = running.run(on_devices(2, build), options=LIMIT)
    expected = np.array([1.0, 1.0])
    for _ in range(4):
        expected = expected.sum() + np.array([0.0, 1.0])
    assert results == expected.tolist()


def test_variables_and_feeds_are_read_when_the_step_does() -> None:
    with tf.Graph().as_default(), session(2) as running:
        states = on_devices(2, lambda i: tf.Variable([1.0 + i]))
        totals = [collective.all_reduce(state, 2, 1, 1) for state in states]
        with tf.control_dependencies(totals):
            moved = [tf.assign_add(state, total) for state, total in zip(states, totals)]
        running.run(tf.global_variables_initializer())
        assert [value.tolist() for value in running.run(moved, options=LIMIT)] == [[4.0], [5.0]]
        assert [value.tolist() for value in running.run(moved, options=LIMIT)] == [[13.0], [14.0]]


def test_results_are_not_shared() -> None:
    """Each member may overwrite its own."""
    with tf.Graph().as_default(), session(2) as running:
        totals = on_devices(2, lambda i: collective.all_reduce(tf.ones([100]), 2, 1, 1))
        changed = [tf.tanh(tf.exp(total * 0.1) + i) for i, total in enumerate(totals)]
        found = running.run(changed, options=LIMIT)
        for i in range(2):
            np.testing.assert_allclose(found[i], np.tanh(np.exp(0.2) + i), rtol=1e-5)


def test_sessions_of_one_target_meet_and_others_do_not() -> None:
    results: list[Any] = [None, None]

    def run(i: int, target: str, options: Any) -> None:
        with tf.Graph().as_default(), session(2, target) as running, tf.device(f"/cpu:{i}"):
            total = collective.all_reduce(tf.constant(1.0 + i), 2, 71, 1)
            try:
                results[i] = running.run(total, options=options)
            except tf.errors.OpError as error:
                results[i] = type(error)

    for target, limit_ms, expected in (("local", 20_000, 3.0), ("", 500, tf.errors.DeadlineExceededError)):
        options = tf.RunOptions(timeout_in_ms=limit_ms)
        threads = [threading.Thread(target=run, args=(i, target, options)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert results == [expected, expected]


def test_closing_the_session_ends_what_waits() -> None:
    errors: list[Any] = []
    with tf.Graph().as_default():
        running = session(1)
        total = collective.all_reduce(1.0, 2, 1, 1)

        def run() -> None:
            try:
                running.run(total)
            except tf.errors.CancelledError as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        while not len(running.steps):
            pass
        running.close()
        thread.join(10)
    assert len(errors) == 1


def test_an_error_names_the_node_and_the_session_goes_on() -> None:
    with tf.Graph().as_default(), session(2) as running:
        fed = on_devices(2, lambda i: tf.placeholder(tf.float32, [None]))
        totals = [collective.all_reduce(x, 2, 1, 1) for x in fed]
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            running.run(totals, {fed[0]: [1.0], fed[1]: [1.0, 2.0]}, options=LIMIT)
        assert caught.value.op.name in {total.op.name for total in totals}
        assert "device:CPU:0" in caught.value.message
        assert "device:CPU:1" in caught.value.message
        assert [x.tolist() for x in running.run(totals, {fed[0]: [1.0], fed[1]: [2.0]})] == [[3.0], [3.0]]


@pytest.mark.parametrize("hint", ["auto", "RING", "nccl"])
def test_hints_change_nothing(hint: str) -> None:
    with tf.Graph().as_default(), session(2) as running:
        totals = on_devices(2, lambda i: collective.all_reduce(1.0 + i, 2, 1, 1, communication_hint=hint))
        assert running.run(totals, options=LIMIT) == [3.0, 3.0]


def test_graphs_are_written_and_read() -> None:
    with tf.Graph().as_default() as graph:
        on_devices(2, lambda i: collective.all_reduce(1.0 + i, 2, 1, 1, "Max", "Div"))
        on_devices(2, lambda i: collective.all_gather([1.0 + i], 2, 1, 2))
        message = graph.as_graph_def()
    with tf.Graph().as_default() as graph, session(2) as running:
        tf.import_graph_def(message, name="")
        names = [node.name for node in message.node if node.op.startswith("Collective")]
        results = running.run([f"{name}:0" for name in names], options=LIMIT)
    assert [np.asarray(each).tolist() for each in results] == [1.0, 1.0, [1.0, 2.0], [1.0, 2.0]]
