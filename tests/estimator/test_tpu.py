"""TPUEstimator on this machine; the checks are TensorFlow 1.15.5's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.names.refusals import NotInGraphModeError

tpu = tf.estimator.tpu


def model(features: Any, labels: Any, mode: str, params: Any) -> Any:
    assert params["use_tpu"] is False and params["a"] == 1
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    predictions = features["x"] * w
    if mode == "infer":
        return tpu.TPUEstimatorSpec(mode, {"p": predictions})
    loss = tf.reduce_mean(tf.square(predictions - labels))
    counter = tf.get_variable("counter", [], tf.int32, tf.zeros_initializer(), trainable=False)
    optimizer = tf.train.GradientDescentOptimizer(0.1)

    def host(loss: Any) -> Any:
        return [tf.assign_add(counter, 1), tf.reduce_sum(loss)]

    return tpu.TPUEstimatorSpec(
        mode,
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_global_step()),
        eval_metrics=(lambda y, p: {"m": tf.metrics.mean_absolute_error(y, p)}, [labels, predictions]),
        host_call=(host, {"loss": loss}),
        scaffold_fn=tf.train.Scaffold,
    )


def batches(params: Any) -> Any:
    assert sorted(params) == ["a", "batch_size"]
    data = ({"x": [1.0, 2.0, 3.0, 4.0]}, [1.0, 2.0, 3.0, 4.0])
    return tf.data.Dataset.from_tensor_slices(data).repeat(8).batch(params["batch_size"], drop_remainder=True)


def test_it_trains_evaluates_and_predicts(tmp_path: Path) -> None:
    config = tpu.RunConfig(tpu_config=tpu.TPUConfig(iterations_per_loop=5), save_summary_steps=3)
    estimator = tpu.TPUEstimator(
        model, str(tmp_path), config, {"a": 1}, train_batch_size=2, eval_batch_size=4, predict_batch_size=1
    )
    estimator.train(batches, steps=3)
    results = estimator.evaluate(batches, steps=2)
    # TensorFlow 1.15.5: loss 1.0546875, m 0.9375, p 1.375
    assert results == pytest.approx({"loss": 1.0546875, "m": 0.9375, "global_step": 3})
    assert next(estimator.predict(batches)) == pytest.approx({"p": 1.375})
    assert estimator.get_variable_value("counter") == 3 and estimator.params == {"a": 1}


def test_the_hosts_call_runs_in_each_step_and_writes_summaries(tmp_path: Path) -> None:
    called = []

    def with_host(features: Any, labels: Any, mode: str, params: Any) -> Any:
        def host(number: Any) -> Any:
            writer = tf.contrib.summary.create_file_writer(str(tmp_path / mode))
            with writer.as_default(), tf.contrib.summary.always_record_summaries():
                tf.contrib.summary.scalar("number", number[0], step=3)
                counted = tf.py_func(lambda _: called.append(mode), [number], [], stateful=True)
                return [*tf.contrib.summary.all_summary_ops(), counted]

        return model(features, labels, mode, params)._replace(host_call=(host, [tf.constant([2.5])]))

    sizes = {"train_batch_size": 2, "eval_batch_size": 4, "predict_batch_size": 1}
    estimator = tpu.TPUEstimator(with_host, str(tmp_path / "model"), tpu.RunConfig(), {"a": 1}, **sizes)
    estimator.train(batches, steps=3)
    estimator.evaluate(batches, steps=2)
    next(estimator.predict(batches))
    assert called == ["train"] * 3 + ["eval"] * 2 + ["infer"]
    (path,) = (tmp_path / "train").glob("events.*")
    events = [event for event in tf.train.summary_iterator(str(path)) if event.HasField("summary")]
    assert [(event.step, event.summary.value[0].simple_value) for event in events] == [(3, 2.5)] * 3


def test_the_configuration() -> None:
    config = tpu.RunConfig(master="a", model_dir="/m")
    assert (config.master, config.evaluation_master, config.cluster, config.model_dir) == (
        "a",
        "a",
        None,
        "/m",
    )
    assert config.tpu_config.iterations_per_loop == 2
    changed = config.replace(tpu_config=tpu.TPUConfig("30s"), save_summary_steps=7)
    assert changed.tpu_config.iterations_per_loop == "30s" and changed.save_summary_steps == 7
    kinds = tpu.InputPipelineConfig
    assert tpu.TPUConfig().per_host_input_for_training == kinds.PER_HOST_V1
    assert tpu.TPUConfig(per_host_input_for_training=False).per_host_input_for_training == kinds.PER_SHARD_V1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tpu.TPUConfig(0), "iterations_per_loop"),
        (lambda: tpu.TPUConfig(num_shards=0), "num_shards must be positive, got 0"),
        (lambda: tpu.TPUConfig(num_cores_per_replica=3), "num_cores_per_replica must be"),
        (lambda: tpu.RunConfig(cluster=object()), "models run on this machine"),
        (
            lambda: tpu.TPUEstimator(model, None, tf.estimator.RunConfig()),
            "`config` must be provided with type",
        ),
        (lambda: tpu.TPUEstimator(model, None, tpu.RunConfig(), {"batch_size": 3}), "are reserved keys"),
        (lambda: tpu.TPUEstimator(model, None, tpu.RunConfig()), "`train_batch_size` cannot be `None`"),
        (lambda: tpu.TPUEstimatorSpec("eval", eval_metrics=3), "eval_metrics should be tuple or list"),
        (lambda: tpu.TPUEstimatorSpec("train", loss=tf.constant(1.0)), "Missing train_op"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_embeddings_of_a_tpu_are_refused() -> None:
    with pytest.raises(NotInGraphModeError, match="embedding_column"):
        tpu.experimental.EmbeddingConfigSpec()
