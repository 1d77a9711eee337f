"""Strategies of several replicas on CPU devices do what TensorFlow 1.15.5's do, by values and by names."""

from __future__ import annotations

import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.distribute.strategy_programs import check, programs

import flowstone as tf
from flowstone.compat.module_paths import register
from flowstone.contrib.distribute import core
from flowstone.framework.names.alias_modules import alias_module

register()

PROGRAMS = programs("programs")
DEVICES = ["/cpu:0", "/cpu:1"]
CONFIG = tf.ConfigProto(device_count={"CPU": 2})
Aggregation, Synchronization = tf.VariableAggregation, tf.VariableSynchronization


@pytest.fixture
def strategy() -> Iterator[Any]:
    made = core.MirroredStrategy(DEVICES)
    with tf.Graph().as_default(), made.scope():
        yield made


def number() -> Any:
    """The replica's number and 3."""
    return tf.cast(core.get_replica_context().replica_id_in_sync_group, tf.float32) + 3.0


def values(strategy: Any, fetched: Any, *before: Any) -> list[Any]:
    """The replicas' values, after these steps in a new session."""
    with tf.Session(config=CONFIG) as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for step in before:
            session.run(step)
        return [session.run(each) for each in strategy.experimental_local_results(fetched)]


# ---- against TensorFlow


@pytest.fixture
def internals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules of TensorFlow's that programs import."""
    name = "tensorflow.python.training.moving_averages"
    for end in range(1, name.count(".") + 2):
        part = ".".join(name.split(".")[:end])
        monkeypatch.setitem(sys.modules, part, alias_module(part) if end > 1 else types.ModuleType(part))


@pytest.mark.usefixtures("internals")
@pytest.mark.parametrize("program", PROGRAMS.PROGRAMS, ids=lambda program: program.__name__)
def test_programs_give_what_tensorflow_gives(program: Any, tmp_path: Path) -> None:
    check(PROGRAMS, program, "values.json", tmp_path)


# ---- replicas


def test_each_replica_has_its_device_and_name_scope(strategy: Any) -> None:
    def replica(x: Any) -> Any:
        context = core.get_replica_context()
        assert context.strategy is strategy and context.num_replicas_in_sync == 2
        return context.devices, tf.add(x, 1.0, name="sum")

    devices, total = strategy.experimental_run_v2(replica, (tf.constant(1.0),))
    assert list(strategy.unwrap(devices[0])) == list(strategy.extended.worker_devices)
    assert [each.name for each in strategy.unwrap(total)] == ["sum:0", "replica_1/sum:0"]
    assert [each.device for each in strategy.unwrap(total)] == list(strategy.extended.worker_devices)
    with pytest.raises(TypeError, match="PerReplica"), tf.Session() as session:
        session.run(total)


def test_structures_of_the_replicas_become_one(strategy: Any) -> None:
    found = strategy.experimental_run_v2(lambda: {"x": number(), "rest": (1, [number()], "a")})
    assert found["rest"][0] == 1 and found["rest"][2] == "a"
    assert values(strategy, found["rest"][1][0]) == values(strategy, found["x"]) == [3.0, 4.0]


def test_merge_call_runs_once_with_the_values_of_all(strategy: Any) -> None:
    calls = []

    def merge(given: Any, x: Any, factor: int) -> Any:
        calls.append((given, factor, core.in_cross_replica_context()))
        return given.reduce("SUM", x) * factor, x

    def replica() -> Any:
        return core.get_replica_context().merge_call(merge, (number(),), {"factor": 2})

    total, own = strategy.experimental_run_v2(replica)
    assert calls == [(strategy, 2, True)]
    assert values(strategy, total) == [14.0] and values(strategy, own) == [3.0, 4.0]


def test_replicas_must_merge_equally_often(strategy: Any) -> None:
    def replica() -> Any:
        context = core.get_replica_context()
        if tf.get_static_value(context.replica_id_in_sync_group):
            context.merge_call(lambda strategy: None)

    def first_alone() -> Any:
        context = core.get_replica_context()
        if not tf.get_static_value(context.replica_id_in_sync_group):
            context.merge_call(lambda strategy: None)

    for function in (replica, first_alone):
        with pytest.raises(RuntimeError, match="different number"):
            strategy.experimental_run_v2(function)


@pytest.mark.parametrize("guilty", [0, 1])
def test_an_error_of_a_replica_is_raised_with_its_line(strategy: Any, guilty: int) -> None:
    def replica() -> Any:
        context = core.get_replica_context()
        context.all_reduce("SUM", number())
        if tf.get_static_value(context.replica_id_in_sync_group) == guilty:
            raise KeyError("of the user")  # this line
        context.all_reduce("SUM", number())

    with pytest.raises(KeyError, match="of the user") as caught:
        strategy.experimental_run_v2(replica)
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert lines[-1] == 'raise KeyError("of the user")  # this line'
    assert values(strategy, strategy.experimental_run_v2(number)) == [3.0, 4.0]


def test_an_error_in_a_step_names_the_line_of_the_replicas_function(strategy: Any) -> None:
    def replica() -> Any:
        return tf.gather([1.0, 2.0], tf.cast(number(), tf.int32) - 2)  # this line

    found = strategy.experimental_run_v2(replica)
    raised = pytest.raises(tf.errors.InvalidArgumentError, match=r"test_mirrored_strategy\.py")
    with tf.Session(config=CONFIG) as session, raised:
        session.run(strategy.unwrap(found)[1])


def test_a_replica_runs_no_replicas(strategy: Any) -> None:
    with pytest.raises(RuntimeError, match="cross-replica context"):
        strategy.experimental_run_v2(lambda: strategy.experimental_run_v2(lambda: 1))


def test_argument_scopes_of_replicas_do_not_mix(strategy: Any) -> None:
    @tf.contrib.framework.add_arg_scope
    def scaled(x: Any, by: float = 1.0) -> Any:
        return x * by

    def replica() -> Any:
        with tf.contrib.framework.arg_scope([scaled], by=2.0):
            core.get_replica_context().merge_call(lambda strategy: None)
            inner = scaled(number())
        return inner, scaled(number())

    inner, outer = strategy.experimental_run_v2(replica)
    assert values(strategy, inner) == [6.0, 8.0] and values(strategy, outer) == [3.0, 4.0]


# ---- reductions


def test_values_are_reduced(strategy: Any) -> None:
    found = strategy.experimental_run_v2(lambda: tf.range(number()))
    with tf.Session(config=CONFIG) as session:
        total, mean = (strategy.reduce(way, found, axis=0) for way in ("SUM", "MEAN"))
        assert session.run(total) == 9.0
        assert session.run(mean) == pytest.approx(9 / 7)
    one = strategy.experimental_run_v2(number)
    assert values(strategy, strategy.reduce("MEAN", one)) == [3.5]
    assert strategy.reduce("MEAN", 2.0) == 2.0 and strategy.reduce("SUM", 0) == 0
    with pytest.raises(ValueError, match="cannot be reduced"):
        strategy.reduce("SUM", 2.0)


@pytest.mark.parametrize("way", ["SUM", "MEAN"])
def test_all_reduce_and_its_gradient(strategy: Any, way: str) -> None:
    def replica() -> Any:
        x = number()
        y = core.get_replica_context().all_reduce(way, {"y": x * x})["y"]
        return y, tf.gradients(y * x, x)[0]

    y, gradient = strategy.experimental_run_v2(replica)
    share = 1.0 if way == "SUM" else 0.5
    assert values(strategy, y) == [25.0 * share] * 2
    # y + 2 x (the sum or mean of the replicas' x, the gradients with respect to y)
    assert values(strategy, gradient) == [25 * share + 2 * x * 7 * share for x in (3.0, 4.0)]


def test_the_strategys_own_reduction_is_used() -> None:
    calls = []

    class Counted(core.CrossDeviceOps):
        def reduce_implementation(self, reduce_op: Any, per_replica_value: Any, destinations: Any) -> Any:
            calls.append(reduce_op)
            return super().reduce_implementation(reduce_op, per_replica_value, destinations)

    sums = core.ReductionToOneDevice(accumulation_fn=lambda each: tf.add_n(each) * 10.0)
    for ops, expected in ((Counted(), 7.0), (sums, 70.0), (core.HierarchicalCopyAllReduce(), 7.0)):
        strategy = core.MirroredStrategy(DEVICES, ops)
        with tf.Graph().as_default(), strategy.scope():
            total = strategy.reduce("SUM", strategy.experimental_run_v2(number))
            assert values(strategy, total) == [expected]
    assert calls == [core.ReduceOp.SUM]


# ---- variables


def test_a_variable_has_one_name_and_a_component_on_each_device(strategy: Any) -> None:
    def replica() -> Any:
        with tf.variable_scope("scope"):
            return tf.get_variable("v", [2]), tf.Variable(1.0, name="w"), tf.layers.dense(tf.ones([1, 2]), 2)

    v, w, _ = strategy.experimental_run_v2(replica)
    assert [each.name for each in tf.global_variables()] == [
        "scope/v:0", "scope/w:0", "scope/dense/kernel:0", "scope/dense/bias:0",
    ]  # fmt: skip
    assert tf.trainable_variables()[:2] == [v, w] == tf.global_variables()[:2]
    names = [each.name for each in strategy.experimental_local_results(v)]
    assert names == ["scope/v:0", "scope/v/replica_1:0"]
    assert [each.device for each in v.values] == list(strategy.extended.worker_devices)
    first, second = values(strategy, v)
    np.testing.assert_array_equal(first, second)
    with pytest.raises(ValueError, match="`handle` is not available"):
        tf.gradients(v * 1.0, [v])
    with pytest.raises(ValueError, match="`NONE` variable synchronization"):
        tf.get_variable("none", [], synchronization=Synchronization.NONE)


def test_replicas_make_the_same_variables(strategy: Any) -> None:
    def replica() -> Any:
        if tf.get_static_value(core.get_replica_context().replica_id_in_sync_group):
            tf.Variable(1.0, name="second")

    with pytest.raises(ValueError, match="replica 0 did not make"):
        strategy.experimental_run_v2(replica)


UPDATES = {"assign": lambda v, x: v.assign(x), "assign_add": tf.assign_add, "assign_sub": tf.assign_sub}


@pytest.mark.parametrize(
    ("aggregation", "update", "expected"),
    [
        (Aggregation.SUM, "assign", 7.0),
        (Aggregation.SUM, "assign_add", 8.0),
        (Aggregation.MEAN, "assign_sub", -2.5),
        (Aggregation.ONLY_FIRST_REPLICA, "assign_add", 4.0),
    ],
)
def test_replicas_update_a_mirrored_variable_together(
    strategy: Any, aggregation: Any, update: str, expected: float
) -> None:
    v = tf.get_variable("v", initializer=1.0, aggregation=aggregation)
    found = strategy.experimental_run_v2(lambda: UPDATES[update](v, number()))
    assert values(strategy, v, strategy.group(found)) == [expected] * 2
    after = strategy.experimental_run_v2(lambda: tf.identity(UPDATES[update](v, number())))
    assert values(strategy, after)[0] == expected


def test_without_aggregation_replicas_do_not_update_a_mirrored_variable(strategy: Any) -> None:
    v = tf.get_variable("v", initializer=1.0)
    with pytest.raises(ValueError, match="You must specify an aggregation method"):
        strategy.experimental_run_v2(lambda: v.assign(number()))
    assert values(strategy, v, v.assign(5.0)) == [5.0] * 2
    assert values(strategy, v, v.assign_add(2.0, read_value=False)) == [3.0] * 2


@pytest.mark.parametrize(
    ("aggregation", "read", "assigned"),
    [(Aggregation.SUM, 9.0, 4.0), (Aggregation.MEAN, 4.5, 8.0), (Aggregation.ONLY_FIRST_REPLICA, 4.0, 8.0)],
)
def test_a_variable_synchronised_on_read(
    strategy: Any, aggregation: Any, read: float, assigned: float
) -> None:
    v = tf.get_variable(
        "v", initializer=1.0, aggregation=aggregation, synchronization=Synchronization.ON_READ
    )
    assert not v.trainable and tf.trainable_variables() == []
    step = strategy.group(strategy.experimental_run_v2(lambda: v.assign_add(number())))
    assert values(strategy, v, step) == [4.0, 5.0]
    assert values(strategy, tf.identity(v), step) == [read]
    assert values(strategy, v, v.assign(8.0)) == [assigned] * 2


def test_checkpoints_have_one_value_and_restore_all_components(strategy: Any, tmp_path: Path) -> None:
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    total = tf.get_variable(
        "total", initializer=1.0, aggregation=Aggregation.SUM, synchronization=Synchronization.ON_READ
    )
    saver = tf.train.Saver()
    with tf.Session(config=CONFIG) as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"))
        assert dict(tf.train.list_variables(path)) == {"v": [2], "total": []}
        assert tf.train.load_variable(path, "total") == 2.0
        v.load([5.0, 6.0], session)
        assert session.run(v.values[1]).tolist() == [5.0, 6.0]
        saver.restore(session, path)
        assert [session.run(each).tolist() for each in v.values] == [[1.0, 2.0]] * 2
        assert [session.run(each) for each in total.values] == [1.0, 1.0]


def test_checkpoints_of_objects_restore_all_components(strategy: Any, tmp_path: Path) -> None:
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    checkpoint = tf.train.Checkpoint(v=v)
    with tf.Session(config=CONFIG) as session:
        session.run(tf.global_variables_initializer())
        path = checkpoint.save(str(tmp_path / "model"), session=session)
        v.load([9.0, 9.0], session)
        checkpoint.restore(path).run_restore_ops(session)
        assert [session.run(each).tolist() for each in v.values] == [[1.0, 2.0]] * 2
        assert session.run(tf.report_uninitialized_variables()).size == 0


def test_loops_and_branches_of_replicas(strategy: Any) -> None:
    def replica() -> Any:
        number = core.get_replica_context().replica_id_in_sync_group
        w = tf.get_variable("w", initializer=2.0)
        _, y = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * w), [0, 1.0])
        z = tf.cond(tf.equal(number, 0), lambda: y * w, lambda: y + w)
        return z, tf.train.GradientDescentOptimizer(0.01).minimize(z)

    z, train = strategy.experimental_run_v2(replica)
    assert values(strategy, z) == [16.0, 10.0]
    w = tf.global_variables()[0]
    # The gradients of w⁴ and of w³ + w.
    assert values(strategy, w, strategy.group(train)) == pytest.approx([2.0 - 0.01 * (32 + 13)] * 2)


def test_updates_run_on_each_device(strategy: Any) -> None:
    v = tf.get_variable("v", initializer=1.0)
    extended = strategy.extended
    given = strategy.experimental_run_v2(number)
    step = extended.update(v, lambda part, x: part.assign_add(x), (given,))
    assert values(strategy, v, step) == [4.0, 5.0]
    parts = extended.update(v, lambda part: part.device, group=False)
    assert list(parts) == list(extended.worker_devices)
    devices = extended.non_slot_devices([v])
    made = extended.update_non_slot(devices, lambda x: x + 1.0, (given,), group=False)
    assert [float(values(strategy, each)[0]) for each in made] == [4.0, 5.0]
    assert extended.value_container(v.values[1]) is v and extended.variable_created_in_scope(v)


def test_moving_averages_of_variables(strategy: Any) -> None:
    def replica() -> Any:
        w = tf.get_variable("w", initializer=1.0)
        average = tf.train.ExponentialMovingAverage(0.5)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(w * number())
        with tf.control_dependencies([train]):
            return average.apply([w])

    step = strategy.group(strategy.experimental_run_v2(replica))
    assert [each.name for each in tf.global_variables()] == ["w:0", "w/ExponentialMovingAverage:0"]
    # w falls by 0.1 (3 + 4); the average is halfway between.
    assert values(strategy, tf.global_variables()[1], step) == pytest.approx([0.65] * 2)


def test_summaries_are_of_the_first_replica(strategy: Any) -> None:
    strategy.experimental_run_v2(lambda: tf.summary.scalar("x", number()))
    assert [each.op.name for each in tf.get_collection("summaries")] == ["x"]


# ---- inputs


@pytest.mark.parametrize(
    ("size", "batch", "expected"),
    [
        (8, 4, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
        (10, 4, [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8], [9]]]),
        (5, 4, [[[0, 1], [2, 3]], [[4], []]]),
        (6, 3, [[[0, 1], [2]], [[3, 4], [5]]]),
    ],
)
def test_a_global_batch_is_split(strategy: Any, size: int, batch: int, expected: Any) -> None:
    dataset = tf.data.Dataset.range(size).batch(batch)
    distributed = strategy.experimental_distribute_dataset(dataset)
    for iterator in (strategy.make_dataset_iterator(dataset), distributed.make_initializable_iterator()):
        element, found = strategy.unwrap(iterator.get_next()), []
        with tf.Session(config=CONFIG) as session:
            session.run(iterator.initialize())
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    found.append([each.tolist() for each in session.run(element)])
        assert found == expected


def test_structures_of_a_batch_are_split(strategy: Any) -> None:
    sparse = tf.SparseTensor([[0, 0], [1, 2], [3, 1]], [1, 2, 3], [4, 3])
    given = {"x": tf.ones([4, 2]), "rest": (tf.range(4), sparse)}
    iterator = strategy.make_dataset_iterator(tf.data.Dataset.from_tensors(given))
    element = iterator.get_next()
    dense = strategy.experimental_run_v2(
        lambda e: (e["x"], e["rest"][0], tf.sparse.to_dense(e["rest"][1])), (element,)
    )
    with tf.Session(config=CONFIG) as session:
        session.run(iterator.initialize())
        x, rest, second = session.run([strategy.unwrap(each) for each in dense])
    assert [each.shape for each in x] == [(2, 2)] * 2 and [each.tolist() for each in rest] == [[0, 1], [2, 3]]
    assert second[0].tolist() == [[1, 0, 0], [0, 0, 2]] and second[1].tolist() == [[0, 0, 0], [0, 3, 0]]
    with pytest.raises(ValueError, match="batch it"):
        strategy.make_dataset_iterator(tf.data.Dataset.range(3))


def test_batches_of_an_input_function_are_the_replicas(strategy: Any) -> None:
    def inputs(context: Any) -> Any:
        assert (context.num_input_pipelines, context.input_pipeline_id) == (1, 0)
        assert context.get_per_replica_batch_size(8) == 4
        with pytest.raises(ValueError, match="not divisible"):
            context.get_per_replica_batch_size(3)
        return tf.data.Dataset.range(8).batch(2)

    iterator = strategy.make_input_fn_iterator(inputs)
    given = strategy.make_input_fn_iterator(lambda context: number_of_calls)
    by_function = strategy.experimental_distribute_datasets_from_function(inputs).make_one_shot_iterator()
    with tf.Session(config=CONFIG) as session:
        session.run(iterator.initialize())
        element = strategy.unwrap(iterator.get_next())
        assert [each.tolist() for each in session.run(element)] == [[0, 1], [2, 3]]
        assert [each.tolist() for each in session.run(element)] == [[4, 5], [6, 7]]
        assert session.run(strategy.unwrap(given.get_next())) == (7, 7)
        assert session.run(strategy.unwrap(by_function.get_next()))[1].tolist() == [2, 3]


def number_of_calls() -> Any:
    return tf.constant(7)


# ---- optimisers


def test_gradients_are_applied_in_replicas_alone(strategy: Any) -> None:
    v = tf.get_variable("v", initializer=1.0)
    with pytest.raises(ValueError, match="outside the replica context"):
        tf.train.GradientDescentOptimizer(0.1).minimize(v * 2.0)


def test_clipped_gradients_of_an_estimators_mean_loss(strategy: Any) -> None:
    """What a replica sees are gradients of its part of the mean, which TensorFlow scales before clipping."""

    def replica() -> Any:
        v = tf.get_variable("v", initializer=1.0)
        tf.losses.absolute_difference([0.0], [1.0])
        optimizer = tf.train.GradientDescentOptimizer(1.0)
        ((gradient, _),) = optimizer.compute_gradients(v * number(), [v])
        return gradient, optimizer.apply_gradients([(tf.minimum(gradient, 1.75), v)])

    with strategy.scaling_losses():
        gradient, train = strategy.experimental_run_v2(replica)
    assert values(strategy, gradient) == [1.5, 2.0]
    assert values(strategy, tf.global_variables()[0], strategy.group(train)) == [1.0 - 3.25] * 2


def test_libraries_find_the_classes() -> None:
    module = alias_module("tensorflow.python.distribute.mirrored_strategy")
    assert module is not None and module.MirroredStrategy is core.MirroredStrategy
