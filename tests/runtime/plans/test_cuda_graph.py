"""Steps as recordings, with simulated CUDA graphs on the CPU (`tape.py`); and on a GPU, where there is
one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.runtime.plans import cuda_graph, plan
from flowstone.runtime.plans.cuda_graph import MOST_CAPTURES, WARM_UPS, CapturedStep
from flowstone.runtime.plans.plans_by_shape import PlansByShape
from tape import Tape

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: captures its kernels")


pytestmark = pytest.mark.by_aten  # on a GPU, graphs have no clusters


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(3)
        yield graph


@pytest.fixture
def tapes(monkeypatch: pytest.MonkeyPatch) -> list[Tape]:
    monkeypatch.setattr(plan, "recorder_of", lambda device: Tape)
    monkeypatch.setattr("flowstone.ops.randomness.random.sequence_of", lambda node, env: None)  # as on a GPU
    monkeypatch.setattr(Tape, "made", [])
    return Tape.made


def config(level: int) -> tf.ConfigProto:
    result = tf.ConfigProto()
    result.graph_options.optimizer_options.global_jit_level = level
    return result


def session(captures: bool = True) -> tf.Session:
    return tf.Session(config=config(tf.OptimizerOptions.ON_1 if captures else tf.OptimizerOptions.OFF))


def captured_steps(s: tf.Session) -> list[CapturedStep]:
    return [p.captured for p in s.planner.plans.values() if p.captured is not None]


def plan_once_for_all_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.AT_ONCE", 0)
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.MOST_WIDENINGS", 0)
    monkeypatch.setattr(PlansByShape, "_is_wanted", lambda plans, *_: False)


def network(optimizer: tf.train.Optimizer, keep: float = 1.0, dims: int | None = 8) -> tuple:
    x = tf.placeholder(tf.float32, [dims, 6])
    weights = tf.Variable(tf.random_normal([6, 5], seed=1))
    hidden = tf.nn.dropout(tf.tanh(tf.matmul(x, weights)), keep_prob=keep, seed=4)
    bias = tf.Variable(tf.zeros([5]), use_resource=True)
    loss = tf.reduce_mean(tf.square(hidden + bias - 0.5))
    step = tf.Variable(0, trainable=False)
    return x, loss, optimizer.minimize(loss, global_step=step), step


OPTIMIZERS = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.3),
    "momentum": lambda: tf.train.MomentumOptimizer(0.3, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1),
}


@pytest.mark.parametrize("name", sorted(OPTIMIZERS.keys() - {"adam"}))  # whose kernel on CPUs reads numbers
def test_replayed_steps_are_the_steps(tapes, name):
    x, loss, train, step = network(OPTIMIZERS[name](), keep=0.7)
    given = np.random.RandomState(0).rand(9, 8, 6).astype("f")
    results = []
    for captures in (False, True):
        with session(captures) as s:
            s.run(tf.global_variables_initializer())
            losses = [s.run([train, loss], {x: value})[1] for value in given]
            results.append([losses, s.run(step), s.run(tf.trainable_variables())])
            if captures:
                assert [c.replays for c in captured_steps(s) if c.captures] == [9 - WARM_UPS]
    (losses, count, values), (replayed, replayed_count, replayed_values) = results
    np.testing.assert_array_equal(replayed, losses)
    assert len(set(losses)) == 9 and replayed_count == count == 9
    for value, expected in zip(replayed_values, values):
        np.testing.assert_array_equal(value, expected)


def test_a_loop_that_counts_is_recorded_whole(tapes):
    x = tf.placeholder(tf.float32, [3, 2])
    weights = tf.Variable(tf.random_normal([2, 2], seed=1))
    y = tf.while_loop(lambda i, h: i < 4, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, weights))), [0, x])[1]
    given = np.random.RandomState(0).rand(8, 3, 2).astype("f")
    results = []
    for captures in (False, True):
        with session(captures) as s:
            s.run(tf.global_variables_initializer())
            results.append([s.run(y, {x: value}) for value in given])
            if captures:
                assert [c.replays for c in captured_steps(s) if c.captures] == [8 - WARM_UPS]
    np.testing.assert_array_equal(*results)


def test_it_warms_up_then_records_once(tapes):
    x, loss, train, _ = network(OPTIMIZERS["descent"]())
    with session() as s:
        s.run(tf.global_variables_initializer())
        tapes.clear()
        for i in range(WARM_UPS + 3):
            s.run([train, loss], {x: np.full((8, 6), i, "f")})
        assert len(tapes) == 1
        warm_ups, recording = ["beside"] * WARM_UPS, ["beside", "begin", "end"]
        assert tapes[0].events == [*warm_ups, *recording, *["replay"] * 3]
        assert "captured (1 times so far), replayed 3 times" in s.explain([train, loss], [x])


def test_the_user_keeps_what_was_fetched(tapes):
    x = tf.placeholder(tf.float32, [3])
    y, weights = tf.tanh(x), tf.Variable(tf.ones([3]))
    with session() as s:
        s.run(tf.global_variables_initializer())
        kept = [s.run([y, x, weights], {x: np.full(3, i, "f")}) for i in range(8)]
        s.run(weights.assign_add([1, 1, 1]))
        for i, (tanh, same, ones) in enumerate(kept):
            np.testing.assert_allclose(tanh, np.full(3, np.tanh(i), "f"), rtol=1e-6)
            np.testing.assert_array_equal(same, np.full(3, i, "f"))
            np.testing.assert_array_equal(ones, np.ones(3))
            tanh[:] = 7  # nobody else's


def test_another_shape_is_recorded_anew(tapes, monkeypatch):
    plan_once_for_all_shapes(monkeypatch)
    x, loss, train, _ = network(OPTIMIZERS["descent"](), dims=None)
    sizes = [8] * 5 + [4] * 6 + [8] * 5
    results = []
    for captures in (False, True):
        with session(captures) as s:
            s.run(tf.global_variables_initializer())
            tapes.clear()
            results.append([s.run([loss, train], {x: np.ones((n, 6), "f")})[0] for n in sizes])
            if captures:
                assert [c.captures for c in captured_steps(s) if c.captures] == [3]
                assert [tape.events[-1] for tape in tapes] == ["release", "release", "replay"]
    np.testing.assert_array_equal(*results)


def test_a_variable_with_another_buffer_is_recorded_anew(tapes):
    w = tf.Variable(tf.zeros([2]), validate_shape=False)
    grow = tf.assign(w, [5.0, 6.0, 7.0], validate_shape=False)
    doubled = w.value() * 2
    with session() as s:
        s.run(tf.global_variables_initializer())
        assert [s.run(doubled).tolist() for _ in range(5)] == [[0, 0]] * 5
        s.run(grow)
        assert [s.run(doubled).tolist() for _ in range(5)] == [[10, 12, 14]] * 5
        assert max(c.captures for c in captured_steps(s)) == 2


def test_values_assigned_between_replays_are_seen(tapes):
    w = tf.Variable([1.0, 2.0])
    x = tf.placeholder(tf.float32, [2])
    assign, total = w.assign(x), tf.reduce_sum(w * 3)
    with session() as s:
        s.run(tf.global_variables_initializer())
        for i in range(8):
            s.run(assign, {x: [i, i]})
            assert s.run(total) == 6 * i
        assert sorted(c.captures for c in captured_steps(s)) == [0, 1, 1]


def test_a_step_that_always_changes_is_given_up(tapes, monkeypatch):
    plan_once_for_all_shapes(monkeypatch)
    x = tf.placeholder(tf.float32, [None])
    y = tf.reduce_sum(x)
    with session() as s:
        for n in range(1, MOST_CAPTURES + 3):
            for _ in range(WARM_UPS + 2):
                assert s.run(y, {x: np.ones(n)}) == n
        (step,) = captured_steps(s)
        assert step.captures == MOST_CAPTURES and "have changed" in step.reason


def test_another_precision_is_recorded_anew(tapes):
    y = tf.constant([1.0]) + tf.Variable([1.0])
    choose = tf.config.experimental.enable_tensor_float_32_execution
    with session() as s:
        s.run(tf.global_variables_initializer())
        try:
            for enabled in (False, True):
                choose(enabled)
                assert [s.run(y)[0] for _ in range(WARM_UPS + 2)] == [2] * (WARM_UPS + 2)
        finally:
            choose(False)
        assert max(c.captures for c in captured_steps(s)) == 2


def refused(fetches: object, feeds: dict | None = None) -> str:
    """Why a step is not recorded; runs it a few times."""
    with session() as s:
        s.run(tf.global_variables_initializer())
        for _ in range(WARM_UPS + 3):
            s.run(fetches, feeds)
        text = s.explain(fetches, feeds)
        assert "captured" not in text
        return text.rpartition("CUDA graph: none, since ")[2].strip()


def test_what_the_host_takes_part_in_is_not_recorded(tapes, capfd):
    x = tf.constant([1.0, 2.0, 2.0]) + tf.Variable([0.0, 0.0, 0.0])
    assert refused(tf.unique(x).y) == "the host takes part in Unique (Unique)"
    assert refused(tf.py_func(lambda a: a * 2, [x], tf.float32)) == "the host takes part in PyFunc (PyFunc)"
    assert refused(tf.Print(x, [x])) == "the host takes part in Print (Print)"
    assert "decides in the step which nodes run" in refused(
        tf.cond(tf.reduce_sum(x) > 3, lambda: x + 1, lambda: x - 1)
    )
    assert "which nodes run" in refused(tf.while_loop(lambda i: i < x[2], lambda i: i + x[0], [x[0]]))
    assert refused(tf.constant("a", name="text")) == "text is no tensor of the device"
    assert not tapes or all("begin" not in tape.events for tape in tapes)


def test_queues_are_not_recorded(tapes):
    queue = tf.FIFOQueue(100, [tf.float32], [[]])
    enqueue = queue.enqueue_many([np.arange(50, dtype="f")])
    element = queue.dequeue()
    with session() as s:
        s.run(enqueue)
        assert [s.run(element * 2) for _ in range(8)] == [2.0 * i for i in range(8)]
        assert "CUDA graph: none" in s.explain(queue.size())


def test_an_error_in_the_capture_leaves_the_step_as_it_is(tapes):
    x = tf.placeholder(tf.int64, [4])
    w = tf.Variable(tf.zeros([4]))
    update = tf.scatter_update(w, x, [1.0, 2.0, 3.0, 4.0])  # declared not to be recorded ...
    assert "takes part" in refused(update, {x: [0, 1, 2, 3]})
    v = tf.Variable(tf.zeros([4]))
    rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=x, logits=tf.ones([4, 900]) * v[0])
    with tf.control_dependencies([rows]):
        count = v.assign_add(tf.ones([4]))
    with session() as s:  # ... and this reads a value on the host, which only the capture finds out
        s.run(tf.global_variables_initializer())
        counts = [s.run([rows, count], {x: [0, 1, 2, 3]})[1][0] for _ in range(8)]
        assert counts == list(range(1, 9))
        text = s.explain([rows, count], [x])
        assert "the capture failed: RuntimeError: operation not permitted when stream is capturing" in text
        assert tapes[-1].events[-2:] == ["end", "release"]


def test_a_buffer_replaced_in_the_capture_is_put_back(tapes, monkeypatch):
    w = tf.Variable([1.0])
    add = w.assign_add([1.0])
    with session() as s:
        s.run(tf.global_variables_initializer())
        for _ in range(WARM_UPS):
            s.run(add)
        (step,) = [c for c in captured_steps(s) if c._warm == WARM_UPS]
        (variable,) = step._variables
        function, buffer = step._function, variable.tensor

        def replacing(*arguments):
            if tapes[-1].events[-1] == "begin":
                variable.tensor = variable.tensor.clone()
            return function(*arguments)

        step._function = replacing
        assert [s.run(add)[0] for _ in range(3)] == [5, 6, 7]
        assert step.reason == "variable Variable gets another buffer in the step"
        assert variable.tensor is buffer


def test_an_uninitialised_variable_is_the_usual_error(tapes):
    w = tf.Variable([1.0])
    y = w * 2
    with session() as s:
        for _ in range(WARM_UPS + 2):
            with pytest.raises(tf.errors.FailedPreconditionError):
                s.run(y)
        s.run(w.initializer)
        assert [s.run(y)[0] for _ in range(WARM_UPS + 2)] == [2] * (WARM_UPS + 2)
        assert max(c.captures for c in captured_steps(s)) == 1


def test_limits_and_traces_use_the_steps_as_they_are(tapes):
    x, loss, train, step = network(OPTIMIZERS["descent"]())
    feed = {x: np.ones((8, 6), "f")}
    with session() as s:
        s.run(tf.global_variables_initializer())
        for _ in range(WARM_UPS + 2):
            s.run([train, loss], feed)
        replays = tapes[-1].events.count("replay")
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        s.run([train, loss], feed, options, metadata)
        s.run([train, loss], feed, tf.RunOptions(timeout_in_ms=10_000))
        assert metadata.step_stats.dev_stats and tapes[-1].events.count("replay") == replays
        assert s.run(step) == WARM_UPS + 4


def test_closing_the_session_releases_the_recording(tapes):
    x, loss, train, _ = network(OPTIMIZERS["descent"]())
    with session() as s:
        s.run(tf.global_variables_initializer())
        for _ in range(WARM_UPS + 1):
            s.run([train, loss], {x: np.ones((8, 6), "f")})
        steps = captured_steps(s)
    assert {tape.events[-1] for tape in tapes} == {"release"}
    assert all(step.reason == "the session is closed" and not step._results for step in steps)


def test_threads_take_turns(tapes):
    x = tf.placeholder(tf.float32, [64])
    y, results = tf.square(x), {}
    with session() as s:

        def work(k):
            results[k] = all((s.run(y, {x: np.full(64, k, "f")}) == k * k).all() for _ in range(40))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == dict.fromkeys(range(4), True)


def test_who_asks_for_it(monkeypatch):
    monkeypatch.setattr(plan, "recorder_of", lambda device: Tape)
    y = tf.constant(1.0) + tf.Variable(1.0)
    for level, asked, expected in ((0, False, 0), (0, True, 1), (-1, True, 0), (1, False, 1), (2, False, 1)):
        monkeypatch.setattr("flowstone.framework.flags.CUDA_GRAPHS", asked)
        with tf.Session(config=config(level)) as s:
            s.run(tf.global_variables_initializer())
            s.run(y)
            assert bool(captured_steps(s)) == expected
    assert cuda_graph.recorder_of(torch.device("cpu")) is None


# ---- on a GPU


@GPU
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_captured_training_step_on_a_gpu(name):
    x, loss, train, step = network(OPTIMIZERS[name](), keep=0.7)
    given = np.random.RandomState(0).rand(9, 8, 6).astype("f")
    results = []
    for captures in (False, True):
        with session(captures) as s:
            s.run(tf.global_variables_initializer())
            losses = [s.run([train, loss], {x: value})[1] for value in given]
            results.append([losses, s.run(step)])
            if captures:
                assert [c.replays for c in captured_steps(s) if c.captures] == [9 - WARM_UPS]
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-5)
    assert results[0][1] == results[1][1] == 9


@GPU
def test_a_failed_capture_on_a_gpu_leaves_it_usable(monkeypatch):
    monkeypatch.setattr(cuda_graph, "obstacle", lambda *_: "")
    x = tf.placeholder(tf.float32, [8])
    y, _ = tf.unique(x)
    with session() as s:
        for i in range(WARM_UPS + 3):
            np.testing.assert_array_equal(s.run(y * 2, {x: np.full(8, i)}), [2.0 * i])
        assert any("the capture failed" in c.reason for c in captured_steps(s))
