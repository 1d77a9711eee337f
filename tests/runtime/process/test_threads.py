"""Intra-op threads: decided from sizes, changed for the calling thread alone."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.framework.machine.machine_profiles import ZEN3, ZEN5
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.process import process, team_cores
from flowstone.runtime.process.threads import TeamUse, growth_on_one_thread, limit, team_use, wants_one_thread

pytestmark = pytest.mark.usefixtures("graph")


@pytest.mark.parametrize(
    ("rows", "inner", "columns", "expected"),
    [
        (2, 2, 2, False),
        (100, 784, 5, True),
        (100, 784, 10, True),
        (100, 784, 20, False),
        (128, 784, 256, False),
        (None, 784, 10, False),
    ],
)
def test_only_steps_that_would_wake_a_team_in_vain_are_limited(rows, inner, columns, expected):
    x = tf.placeholder(tf.float32, [rows, inner])
    product = tf.matmul(x, tf.zeros([inner, columns]))
    assert wants_one_thread(prune([product], [], [x])) is expected


@pytest.mark.parametrize(("rows", "expected"), [(20, True), (200_000, False)])
@pytest.mark.parametrize("function", [tf.nn.softmax, tf.nn.log_softmax])
def test_small_steps_are_limited_whose_kernels_start_a_team_for_anything(function, rows, expected):
    x = tf.placeholder(tf.float32, [rows, 8])
    assert wants_one_thread(prune([function(x)], [], [x])) is expected


@pytest.mark.parametrize(
    "function", [tf.conj, tf.real, tf.abs, tf.angle], ids=["conj", "real", "abs", "angle"]
)
def test_a_complex_number_counts_as_two(function):
    x = tf.placeholder(tf.complex64, [131_072])
    assert not wants_one_thread(prune([function(x)], [], [x]))


@pytest.mark.parametrize(
    ("dtype", "elements"),
    [("float32", 200_000), ("float64", 100_000), ("int64", 100_000), ("complex128", 50_000)],
)
def test_elements_count_by_their_words(dtype, elements, set_profile):
    set_profile(team_by_element=1_000_000)
    for count, expected in ((elements * 3 // 4, True), (elements, False)):
        x = tf.placeholder(dtype, [count])
        assert wants_one_thread(prune([tf.negative(x)], [], [x])) is expected


@pytest.mark.parametrize("profile", [ZEN3, ZEN5])
@pytest.mark.parametrize(("count", "expected"), [(120_000, True), (130_000, False)])
def test_one_operation_starts_a_team_early_on_epyc(profile, count, expected, set_profile):
    set_profile(team_by_element=profile.team_by_element)
    x = tf.placeholder(tf.float32, [count])
    assert wants_one_thread(prune([tf.nn.relu(x)], [], [x])) is expected


def _pooled(x):
    return tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")


@pytest.mark.parametrize(("rows", "expected"), [(2, True), (2000, False)])
@pytest.mark.parametrize(
    "function",
    [
        _pooled,
        lambda x: tf.gradients(_pooled(x), x)[0],
        lambda x: tf.nn.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
        lambda x: tf.spectral.rfft(x),
        lambda x: tf.cholesky(tf.matmul(x, x, transpose_b=True)),
        lambda x: tf.matrix_inverse(tf.matmul(x, x, transpose_b=True)),
    ],
    ids=["pool", "pool gradient", "mean", "transform", "cholesky", "inverse"],
)
def test_small_images_and_matrices_keep_to_one_thread(function, rows, expected):
    x = tf.placeholder(tf.float32, [rows, 16, 16, 8])
    assert wants_one_thread(prune([function(x)], [], [x])) is expected


@pytest.mark.parametrize(("elements", "expected"), [(16_384, True), (2_000_000, False)])
def test_variables_take_their_values_at_the_cost_of_their_elements(elements, expected):
    v = tf.Variable(tf.zeros([elements]))
    assert wants_one_thread(prune([], [v.initializer], [])) is expected


@pytest.mark.parametrize(("width", "expected"), [(5, True), (500, False)])
def test_work_that_no_shape_tells_is_that_of_the_cost(width, expected):
    x = tf.placeholder(tf.float32, [50, 4, 30])
    found = tf.nn.ctc_beam_search_decoder(x, [50, 40, 30, 20], beam_width=width)
    assert wants_one_thread(prune([found[1]], [], [x])) is expected


@pytest.mark.parametrize(("ids", "expected"), [(300, True), (200_000, False), (None, False)])
def test_sizes_that_depend_on_values_are_no_larger_than_what_is_fed(ids, expected):
    x = tf.placeholder(tf.int64, [ids])
    rows = tf.gather(tf.zeros([1000, 16]), tf.unique(x)[0])
    assert wants_one_thread(prune([tf.reduce_sum(rows * 2.0, 0)], [], [x])) is expected


@pytest.mark.parametrize(("layers", "expected"), [(3, True), (8, False)])
def test_a_team_pays_for_many_products_of_medium_size(layers, expected):
    x = h = tf.placeholder(tf.float32, [32, 200])
    for _ in range(layers):
        h = tf.matmul(h, tf.zeros([200, 200]))
    assert wants_one_thread(prune([h], [], [x])) is expected


@pytest.mark.parametrize(("units", "expected"), [(100, True), (200, False)])
def test_products_in_a_loop_are_many(units, expected):
    x = tf.placeholder(tf.float32, [32, units])
    w = tf.zeros([units, units])
    _, y = tf.while_loop(lambda i, _: i < 9, lambda i, h: (i + 1, tf.matmul(h, w)), [0, x])
    assert wants_one_thread(prune([y], [], [x])) is expected


@pytest.mark.parametrize(
    ("columns", "expected"), [(20, False), (3000, True), (70_000, True), (2_000_000, False)]
)
def test_ops_by_element_count_their_elements(columns, expected):
    x = tf.placeholder(tf.float32, [1, columns])
    subgraph = prune([tf.reduce_sum(tf.concat([x * 2.0 + x, x], 0))], [], [x])
    assert wants_one_thread(subgraph) is expected


@pytest.mark.parametrize(("size", "expected"), [(100, True), (600, False)])
def test_other_ops_count_no_less_than_what_they_make(size, expected):
    images = tf.placeholder(tf.float32, [size, size, 3])
    assert wants_one_thread(prune([tf.image.adjust_hue(images, 0.1)], [], [images])) is expected
    ids = tf.placeholder(tf.int64, [size])
    assert wants_one_thread(prune([tf.one_hot(ids, size, axis=0)], [], [ids])) is expected


@pytest.mark.parametrize(("rows", "expected"), [(8, True), (8000, False)])
def test_of_a_large_table_only_the_rows_that_are_taken_or_changed_count(rows, expected):
    table = tf.get_variable("table", [50_000, 128])
    ids = tf.placeholder(tf.int64, [rows])
    gathered = tf.gather(table, ids)
    changed = tf.scatter_sub(table, ids, tf.nn.relu(gathered))
    slot = tf.get_variable("slot", [50_000, 128])
    updated = F.SparseApplyAdagrad(table._ref(), slot._ref(), tf.constant(0.1), gathered, ids)
    product = tf.matmul(tf.zeros([100, 300]), tf.placeholder(tf.float32, [300, 10]))
    assert wants_one_thread(prune([product, changed, updated], [], [])) is expected


@pytest.mark.parametrize(
    ("rows", "units", "expected"),
    [
        (1, 10, TeamUse(False, False)),
        (10, 10, TeamUse(False, False)),
        (100, 100, TeamUse(True, False)),
        (4096, 512, TeamUse(True, True)),
        (None, 10, TeamUse(True, True)),
    ],
)
def test_only_large_or_unknown_nodes_may_start_a_team(rows, units, expected):
    x = tf.placeholder(tf.float32, [rows, units])
    product = tf.matmul(x, tf.zeros([units, units]))
    assert team_use(prune([product + 1.0], [], [x])) == expected


@pytest.mark.skipif(limit() is None, reason="torch's OpenMP runtime is not to be found on this machine")
def test_the_number_of_threads_is_put_back():
    seen, afterwards = [], []
    x = tf.placeholder(tf.float32, [100, 300])
    product = tf.matmul(x, tf.zeros([300, 10]))
    watched = tf.py_func(lambda v: (seen.append(torch.get_num_threads()), v)[1], [product], tf.float32)
    failing = tf.py_func(lambda v: seen.append(torch.get_num_threads()) or 1 // 0, [product], tf.float32)
    for output in (watched, failing):
        output.set_shape([100, 10])
    value = np.zeros((100, 300), np.float32)

    def work() -> None:  # in a thread of its own, so that no other test sees the number that it sets
        torch.get_num_threads()  # torch sets a thread's number when the thread first asks
        limit()(3)
        with tf.Session(graph=product.graph) as session:
            session.run(watched, {x: value})
            afterwards.append(torch.get_num_threads())
            with pytest.raises(tf.errors.OpError):
                session.run(failing, {x: value})
            afterwards.append(torch.get_num_threads())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [1, 1]
    assert afterwards == [3, 3]


def threads_of_steps(run) -> list[int]:
    """What `run(watch)` sees, where `watch(x)` is a tensor like `x` whose computation takes the number of
    threads down."""
    seen: list[int] = []

    def watch(x):
        def note(value):
            seen.append(torch.get_num_threads())
            return value

        return tf.py_func(note, [x], x.dtype)

    failures: list[BaseException] = []
    graph = tf.get_default_graph()

    def work() -> None:  # in a thread of its own, as above
        torch.get_num_threads()
        limit()(5)
        try:
            with graph.as_default():
                run(watch)
            assert torch.get_num_threads() == 5
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failures, failures
    return seen


def threads_config(count: int, **options) -> tf.ConfigProto:
    return tf.ConfigProto(intra_op_parallelism_threads=count, **options)


needs_limit = pytest.mark.skipif(limit() is None, reason="torch's OpenMP runtime is not to be found here")


@needs_limit
@pytest.mark.parametrize(("asked", "expected"), [(0, 5), (1, 1), (3, 3), (7, 7)])
def test_a_session_has_the_threads_that_its_configuration_asks_for(asked, expected):
    def run(watch):
        x = tf.placeholder(tf.float32, [None])
        y = watch(x)
        with tf.Session(config=threads_config(asked)) as session:
            session.run(y, {x: [1.0]})
            session.run(y, {x: [1.0, 2.0]})
            session.run(y, {x: [1.0]}, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE))
            session.make_callable(y, [x])([2.0])
            handle = session.partial_run_setup([y], [x])
            session.partial_run(handle, y, {x: [1.0]})

    *seen, in_partial_run = threads_of_steps(run)
    assert seen == [expected] * 4
    if asked:
        assert in_partial_run == expected


@needs_limit
def test_queue_runners_have_the_threads_of_their_session():
    def run(watch):
        queue = tf.FIFOQueue(3, [tf.float32], [[]])
        fill = queue.enqueue([watch(tf.constant(1.0))])
        runner = tf.train.QueueRunner(queue, [fill])
        coordinator = tf.train.Coordinator()
        with tf.Session(config=threads_config(3)) as session:
            started = runner.create_threads(session, coordinator, start=True)
            assert session.run(queue.dequeue()) == 1.0
            coordinator.request_stop()
            coordinator.join(started)

    seen = threads_of_steps(run)
    assert seen and set(seen) == {3}


@needs_limit
def test_queue_runners_leave_the_team_to_others(monkeypatch):
    monkeypatch.setattr(process, "_is_tuned", True)

    def run(watch):
        queue = tf.FIFOQueue(3, [tf.float32], [[]])
        noise = watch(tf.random_uniform([300, 300]))
        noise.set_shape([300, 300])
        runner = tf.train.QueueRunner(queue, [queue.enqueue([tf.reduce_sum(noise)])])
        coordinator = tf.train.Coordinator()
        with tf.Session() as session:
            started = runner.create_threads(session, coordinator, start=True)
            session.run(queue.dequeue())
            coordinator.request_stop()
            coordinator.join(started)

    seen = threads_of_steps(run)
    assert seen and set(seen) == {1}


@needs_limit
@pytest.mark.parametrize(("asked", "expected"), [(0, [5, 1, 5]), (3, [3, 3, 3])])
def test_a_thread_beside_the_one_that_has_the_team_runs_alone(monkeypatch, asked, expected):
    monkeypatch.setattr(process, "_is_tuned", True)
    monkeypatch.setattr(team_cores, "_first", None)

    def run(watch):
        x = tf.placeholder(tf.float32, [100, 300])
        y = watch(tf.matmul(x, tf.zeros([300, 300])))
        y.set_shape([100, 300])
        with tf.Session(config=threads_config(asked)) as session:

            def step():
                session.run(y, {x: np.zeros((100, 300), np.float32)})

            step()
            other = threading.Thread(target=step)
            other.start()
            other.join()
            step()

    assert threads_of_steps(run) == expected


@needs_limit
@pytest.mark.parametrize(("asked", "expected"), [(0, 2), (1, 1), (3, 1), (6, 3)])
def test_devices_share_the_threads(asked, expected):
    def run(watch):
        with tf.device("/cpu:0"):
            a = watch(tf.constant(1.0))
        with tf.device("/cpu:1"):
            b = watch(tf.constant(2.0))
        with tf.Session(config=threads_config(asked, device_count={"CPU": 2})) as session:
            assert session.run([a, b]) == [1.0, 2.0]

    assert threads_of_steps(run) == [expected] * 2


@needs_limit
def test_small_steps_keep_to_one_thread_whatever_the_configuration_says():
    def run(watch):
        x = tf.placeholder(tf.float32, [100, 300])
        product = tf.matmul(x, tf.zeros([300, 10]))
        y = watch(product)
        y.set_shape([100, 10])
        with tf.Session(config=threads_config(4)) as session:
            session.run(y, {x: np.zeros((100, 300), np.float32)})

    assert threads_of_steps(run) == [1]


@pytest.mark.parametrize(
    ("rows", "least", "most"), [(2, 50, 100), (1000, 1, 8), (100_000, 0, 0), (None, 0, 0)]
)
def test_how_much_more_a_step_may_do_on_one_thread(rows, least, most, set_profile):
    set_profile(team_alone=1_500_000, team_together=6_000_000)
    x = tf.placeholder(tf.float32, [rows, 20])
    assert least <= growth_on_one_thread(prune([tf.matmul(x, tf.zeros([20, 10]))], [], [x])) <= most


def test_small_steps_of_ever_new_shapes_run_on_one_thread(monkeypatch):
    """Those of a wide plan, too, which does not know its sizes; as large ones would not."""
    from flowstone.client import runners

    x = tf.placeholder(tf.float32, [None, 784])
    y = tf.matmul(x, tf.ones([784, 10]))
    counts = []
    limited = runners._limited

    def noted(limit, before, count, function, arguments):
        counts.append(count)
        return limited(limit, before, count, function, arguments)

    monkeypatch.setattr(runners, "_limited", noted)
    with tf.Session() as s:
        for rows in (20, 30, 17, 41, 3):
            counts.clear()
            assert s.run(y, {x: np.ones([rows, 784], "f")}).tolist() == [[784.0] * 10] * rows
            assert counts == [1], rows
        counts.clear()
        s.run(y, {x: np.ones([20_000, 784], "f")})
        assert 1 not in counts
