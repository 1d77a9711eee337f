"""Model functions on one device: names and values are those of TensorFlow 1.15.5's `replicate_model_fn`."""

import pytest

import flowstone as tf
from flowstone.framework.names.refusals import NotInGraphModeError

contrib = tf.contrib.estimator


def _model_fn(features, labels, mode, params):
    variable = tf.get_variable("v", [], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(features * variable)
    optimizer = contrib.TowerOptimizer(lambda: tf.train.MomentumOptimizer(params["rate"], 0.9))
    step = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def test_a_model_function_on_one_device_is_itself():
    model_fn = contrib.replicate_model_fn(_model_fn, devices=["/cpu:0"])
    with tf.Graph().as_default(), tf.Session() as session:
        spec = model_fn(tf.ones([4]), None, "train", {"rate": 0.1})
        assert (spec.loss.op.name, spec.train_op.name) == ("Sum", "Momentum")
        assert spec.loss.device.upper().endswith("CPU:0")
        session.run(tf.global_variables_initializer())
        session.run(spec.train_op)
        assert session.run(["v:0", "global_step:0"]) == [pytest.approx(0.6), 1]
    estimator = tf.estimator.Estimator(contrib.replicate_model_fn(_model_fn), params={"rate": 0.5})
    estimator.train(lambda: (tf.ones([4]), tf.ones([4])), steps=2)
    assert estimator.get_variable_value("global_step") == 2


def test_an_optimiser_of_towers_is_the_optimiser():
    assert contrib.TowerOptimizer.COLLECTION_FOR_GRAPH_STATES == "replicate_model_fn_graph_states"
    with tf.Graph().as_default(), tf.Session() as session:
        own = tf.train.MomentumOptimizer(0.1, 0.9)
        optimizer = contrib.TowerOptimizer(own)
        assert isinstance(optimizer, tf.train.Optimizer) and optimizer.has_been_used()
        variable = tf.get_variable("v", initializer=3.0)
        step = optimizer.apply_gradients(optimizer.compute_gradients(variable * 2.0, [variable]))
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(variable) == pytest.approx(2.8)
        assert (optimizer.get_name(), optimizer.get_slot_names()) == ("Momentum", ["momentum"])
        assert optimizer.get_slot(variable, "momentum") is own.get_slot(variable, "momentum")
        assert optimizer.variables() == own.variables()


def test_several_devices_are_refused():
    with pytest.raises(NotInGraphModeError):
        contrib.replicate_model_fn(_model_fn, devices=["/gpu:0", "/gpu:1"])
