"""`tf.contrib.distribute`: strategies of one replica do what TensorFlow 1.15.5's do with one device."""

import json

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import ReduceOp
from flowstone.framework.names.refusals import NotInGraphModeError

distribute = tf.contrib.distribute


@pytest.fixture(params=["one", "mirrored", "base"])
def strategy(request):
    with tf.Graph().as_default():
        if request.param == "one":
            yield distribute.OneDeviceStrategy("/cpu:0")
        elif request.param == "mirrored":
            yield distribute.MirroredStrategy(["/cpu:0"])
        else:
            yield distribute.DistributionStrategy(distribute.OneDeviceStrategy("/cpu:0").extended)


def test_code_finds_its_context(strategy):
    assert not distribute.has_strategy() and not distribute.has_distribution_strategy()
    assert distribute.get_replica_context().num_replicas_in_sync == 1
    with strategy.scope():
        assert distribute.get_replica_context() is None
        assert distribute.in_cross_replica_context() and distribute.has_strategy()
        assert distribute.get_strategy() is distribute.get_cross_replica_context() is strategy
        assert distribute.get_distribution_strategy() is strategy
        with strategy.scope():
            assert distribute.get_strategy() is strategy
        with pytest.raises(RuntimeError), distribute.OneDeviceStrategy("/cpu:0").scope():
            pass
    assert distribute.get_strategy() is not strategy
    assert distribute.get_loss_reduction().name == "SUM"


def test_variables_of_a_scope_are_resource_variables_on_its_device(strategy):
    with strategy.scope(), tf.name_scope("s"):
        variable, got = tf.Variable(1.0, name="v"), tf.get_variable("w", [2])
    assert [(each.name, "CPU:0" in each.device.upper()) for each in (variable, got)] == [
        ("s/v:0", True),
        ("w:0", True),
    ]
    assert variable.handle.dtype == got.handle.dtype == tf.resource
    assert not hasattr(tf.Variable(1.0), "handle") or tf.Variable(1.0).op.type == "VariableV2"
    with strategy.colocate_vars_with(variable):
        assert tf.Variable(2.0).device == variable.device


def test_a_function_runs_as_a_replica(strategy):
    seen = []

    def replica(x, scale):
        context = distribute.get_replica_context()
        distribute.require_replica_context(context)
        seen.append((context.replica_id_in_sync_group, context.strategy, list(context.devices)))
        assert distribute.get_cross_replica_context() is None
        merged = context.merge_call(
            lambda cross, y: (cross, distribute.in_cross_replica_context(), y + 1.0), (x,)
        )
        assert merged[:2] == (strategy, True)
        return scale * context.all_reduce("sum", x) + merged[2]

    result = strategy.experimental_run_v2(replica, (tf.constant(3.0),), {"scale": 2.0})
    assert seen == [(0, strategy, list(strategy.extended.worker_devices))]
    assert strategy.num_replicas_in_sync == 1
    assert strategy.unwrap(result) == strategy.experimental_local_results(result) == (result,)
    assert strategy.reduce("sum", result) is result
    with tf.Session() as session:
        assert session.run(result) == 10.0
        vector = tf.constant([1.0, 3.0])
        assert session.run([strategy.reduce(way, vector, axis=0) for way in ("SUM", "MEAN")]) == [4.0, 2.0]
        session.run(strategy.group(tf.no_op(), name="all"))
    assert strategy.group(result) is result
    with pytest.raises(ValueError):
        strategy.reduce("max", result)
    with pytest.raises(RuntimeError):
        distribute.require_replica_context(distribute.ReplicaContext(strategy, 0))


def test_inputs(strategy):
    iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(6).batch(2))
    result = strategy.experimental_run(lambda x: x + 1, iterator)
    counted = strategy.make_input_fn_iterator(
        lambda context: tf.data.Dataset.range(3 * context.num_replicas_in_sync)
    )
    given = strategy.make_input_fn_iterator(lambda _: lambda: tf.constant(7))
    arrays = strategy.experimental_make_numpy_dataset(np.arange(4))
    dataset = tf.data.Dataset.range(2)
    assert strategy.experimental_distribute_dataset(dataset) is dataset
    assert strategy.experimental_distribute_datasets_from_function(lambda _: dataset) is dataset
    with tf.Session(config=strategy.update_config_proto(tf.ConfigProto())) as session:
        session.run([iterator.initialize(), counted.initialize(), given.initialize()])
        assert session.run(result).tolist() == [1, 2]
        assert session.run(result).tolist() == [3, 4]
        assert session.run([counted.get_next(), given.get_next()]) == [0, 7]
        assert session.run(arrays.make_one_shot_iterator().get_next()) == 0
    assert strategy.configure(tf.ConfigProto()) is None


def test_what_libraries_ask(strategy):
    extended = strategy.extended
    assert extended.worker_devices == extended.parameter_devices
    assert [each[-5:].upper() for each in extended.worker_devices] == ["CPU:0"]
    with strategy.scope():
        variable = tf.get_variable("v", initializer=1.0)
        assert extended.reduce_to("mean", variable, variable) is variable
        assert extended.batch_reduce_to("sum", [(variable, variable)]) == [variable]
        assert extended.broadcast_to(variable, None) is variable
        changed = extended.update(variable, lambda v, by: v.assign_add(by), (2.0,))
        with tf.Session() as session:
            session.run(variable.initializer)
            assert session.run(extended.read_var(variable)) == 1.0
            session.run(changed)
            assert session.run(variable) == 3.0


def test_outside_of_a_scope_libraries_ask_the_same():
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(1.0)
        session.run(variable.initializer)

        def update(strategy, value):
            return strategy.extended.update(variable, lambda v, by: v.assign_add(by), args=(value,))

        session.run(distribute.get_replica_context().merge_call(update, args=(2.0,)))
        extended = distribute.get_strategy().extended
        doubled = extended.call_for_each_replica(lambda x: x * 2.0, (variable,))
        assert session.run(doubled) == 6.0 and not distribute.has_strategy()
        assert (extended.worker_devices, extended.variable_created_in_scope(variable)) == ((), True)


@pytest.mark.parametrize("iterations", [1, 3])
def test_a_monitor_runs_steps_of_training(strategy, iterations):
    with strategy.scope(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=1.0)
        step = distribute.StandardSingleLossStep(
            lambda: tf.data.Dataset.from_tensors(tf.constant(2.0)).repeat(6),
            lambda context, x: variable * x if context.strategy is strategy else None,
            tf.train.GradientDescentOptimizer(0.5),
            strategy,
            iterations,
        )
        assert step.distribution is strategy
        session.run(variable.initializer)
        monitor = distribute.Monitor(step, session)
        monitor.run_steps(1)
        assert session.run(variable) == 1.0 - iterations
        monitor.run_steps()
        assert session.run(variable) == -5.0
        with pytest.raises(ValueError):
            distribute.Monitor(step)


def test_steps_begin_with_their_inputs(strategy):
    assert distribute.Step(strategy).initialize() == []
    step = distribute.StandardInputStep(lambda: tf.data.Dataset.range(2), strategy)
    assert step.initialize().type == "MakeIterator"


def test_values_of_devices_are_reduced():
    with tf.Graph().as_default(), tf.Session() as session:
        values = [tf.constant(1.0), tf.constant(5.0)]
        for ops in (distribute.CrossDeviceOps(), distribute.AllReduceCrossDeviceOps("hierarchical_copy", 2)):
            found = [ops.reduce("SUM", values, "/cpu:0"), *ops.batch_reduce("MEAN", [(values, values[0])])]
            assert session.run([*found, ops.broadcast(values[0], "/cpu:0")]) == [6.0, 3.0, 1.0]
            with pytest.raises(ValueError):
                ops.reduce("MAX", values, "/cpu:0")
    with distribute.UpdateContext("/cpu:0") as context:
        assert context.device == "/cpu:0"
        assert distribute.get_replica_context() is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: distribute.ParameterServerStrategy(num_gpus_per_worker=2),
        lambda: distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=2),
        lambda: distribute.TPUStrategy(),
        lambda: distribute.MultiWorkerAllReduce([], 1),
        lambda: distribute.initialize_tpu_system(),
    ],
)
def test_what_there_is_not_is_refused(make):
    with pytest.raises(NotInGraphModeError, match="use tf"):
        make()
    assert distribute.TPUStrategy.steps_per_run is not None


def test_an_estimator_takes_a_strategy_of_one_replica(tmp_path):
    strategy = distribute.OneDeviceStrategy("/cpu:0")
    config = tf.estimator.RunConfig(train_distribute=strategy, model_dir=str(tmp_path))
    assert config.train_distribute is strategy
    with pytest.raises(ValueError):
        tf.estimator.RunConfig(train_distribute=object())
    config = tf.estimator.RunConfig(experimental_distribute=distribute.DistributeConfig(strategy))
    assert config.train_distribute is strategy
    with pytest.raises(ValueError, match="can be set"):
        tf.estimator.RunConfig(
            train_distribute=strategy, experimental_distribute=distribute.DistributeConfig(strategy)
        )
    assert distribute.DistributeConfig(strategy).eval_distribute is None
    assert distribute.DistributeConfig().remote_cluster is None


def test_a_server_of_the_environments_cluster(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match="TF_CONFIG"):
        distribute.run_standard_tensorflow_server()
    config = {"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    server = distribute.run_standard_tensorflow_server()
    assert server.target.startswith("grpc://")


CLUSTER = {"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]}


def test_variables_are_on_parameter_servers_and_the_rest_on_the_worker():
    strategy = distribute.ParameterServerStrategy()
    config = tf.ConfigProto(device_filters=["/job:worker"])
    strategy.configure(config, CLUSTER, "worker", 1)
    assert list(config.device_filters) == ["/job:ps", "/job:worker/task:1"]

    def model():
        v, w = tf.get_variable("v", [2]), tf.get_variable("w", [2])
        return v, w, v * w

    with tf.Graph().as_default(), strategy.scope():
        v, w, y = strategy.experimental_run_v2(model)
        assert distribute.get_loss_reduction() == ReduceOp.SUM
    assert [each.device for each in (v, w, y)] == [
        "/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:1/device:CPU:0",
    ]  # fmt: skip
    assert strategy.num_replicas_in_sync == 1
    extended = strategy.extended
    assert extended.parameter_devices == ("/job:ps/task:0", "/job:ps/task:1")
    assert not extended.should_checkpoint and not extended.experimental_should_init
    strategy.configure(None, CLUSTER, "worker", 0)
    assert strategy.extended.should_checkpoint and strategy.extended.experimental_should_init
    strategy.configure(None, {**CLUSTER, "chief": ["e:1"]}, "worker", 0)
    assert not strategy.extended.should_checkpoint


def test_losses_are_scaled_within_an_estimators_training_alone():
    strategy = distribute.OneDeviceStrategy("/cpu:0")
    with tf.Graph().as_default(), strategy.scope():
        tf.losses.mean_squared_error([1.0], [2.0])
        assert distribute.get_loss_reduction() == ReduceOp.SUM
        with strategy.scaling_losses():
            assert distribute.get_loss_reduction() == ReduceOp.MEAN
            tf.losses.mean_squared_error([1.0], [2.0], reduction=tf.losses.Reduction.SUM)
            assert distribute.get_loss_reduction() == ReduceOp.SUM


@pytest.mark.parametrize(
    ("task", "is_chief", "number", "workers", "servers"),
    [(("worker", 0), True, 0, 2, 2), (("worker", 1), False, 1, 2, 2), (("ps", 1), False, 3, 2, 2)],
)
def test_the_first_worker_of_a_strategy_is_the_chief(monkeypatch, task, is_chief, number, workers, servers):
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": CLUSTER, "task": {"type": task[0], "index": task[1]}})
    )
    config = tf.estimator.RunConfig(train_distribute=distribute.ParameterServerStrategy())
    assert (config.is_chief, config.global_id_in_cluster) == (is_chief, number)
    assert (config.num_worker_replicas, config.num_ps_replicas) == (workers, servers)
    assert config.master == f"grpc://{CLUSTER[task[0]][task[1]]}"
    with pytest.raises(ValueError, match='must have one "chief" node'):
        tf.estimator.RunConfig()
