"""Training, evaluating, predicting and exporting a model function; texts and files are those of 1.15.5."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.process.logging import get_logger

X = np.random.RandomState(0).randn(40, 2).astype(np.float32)
Y = X @ np.array([1.0, 2.0], np.float32)


def linear(features: Any, labels: Any, mode: str, params: Any) -> Any:
    w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
    y = tf.matmul(features["x"], w)[:, 0]
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"p": tf.estimator.export.PredictOutput({"y": y})}
        return tf.estimator.EstimatorSpec(mode, predictions={"y": y, "z": -y}, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, y)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"mae": tf.metrics.mean_absolute_error(labels, y)}
        return tf.estimator.EstimatorSpec(mode, y, loss, eval_metric_ops=metrics)
    optimizer = tf.train.GradientDescentOptimizer(params["lr"])
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def batches(num_epochs: int | None = None) -> Any:
    return tf.estimator.inputs.numpy_input_fn({"x": X}, Y, batch_size=4, num_epochs=num_epochs, shuffle=False)


def dataset() -> Any:
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(8)


def make(folder: Path, **config: Any) -> Any:
    settings = {"save_checkpoints_steps": 10, "save_summary_steps": 5, "log_step_count_steps": 10, **config}
    return tf.estimator.Estimator(linear, str(folder), tf.estimator.RunConfig(**settings), {"lr": 0.1})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: Any) -> Any:
    return make(tmp_path_factory.mktemp("model")).train(batches(), steps=25)


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    logger, handler = get_logger(), Keep()
    level = tf.logging.get_verbosity()
    tf.logging.set_verbosity(tf.logging.INFO)
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)
    tf.logging.set_verbosity(level)


def events_of(folder: str) -> list[Any]:
    paths = tf.gfile.Glob(f"{folder}/*tfevents*")
    return [event for path in paths for event in tf.train.summary_iterator(path)]


def test_training_writes_checkpoints_and_summaries(trained: Any) -> None:
    steps = sorted(int(name.split("-")[1][:-6]) for name in tf.gfile.ListDirectory(trained.model_dir)
                   if name.endswith(".index"))  # fmt: skip
    assert steps == [0, 10, 20, 25]
    assert tf.gfile.Exists(f"{trained.model_dir}/graph.pbtxt")
    summaries = {}
    for event in events_of(trained.model_dir):
        for value in event.summary.value:
            summaries.setdefault(value.tag, []).append(event.step)
    queue = "enqueue_input/queue/enqueue_input/fifo_queuefraction_over_0_of_1000_full"
    assert summaries == {
        queue: [1, 6, 11, 16, 21],
        "loss": [1, 6, 11, 16, 21],
        "global_step/sec": [11, 21],
    }


def test_variables_are_read_from_the_checkpoint(trained: Any) -> None:
    assert trained.latest_checkpoint().endswith("model.ckpt-25")
    assert trained.get_variable_names() == ["global_step", "w"]
    np.testing.assert_allclose(trained.get_variable_value("w"), [[1.0], [2.0]], atol=0.02)
    assert trained.params == {"lr": 0.1}


def test_evaluation_gives_loss_metrics_and_step(trained: Any) -> None:
    results = trained.evaluate(batches(1))
    assert set(results) == {"loss", "mae", "global_step"}
    assert results["global_step"] == 25
    # TensorFlow 1.15.5: loss = 9.793086e-05, mae = 0.007603015
    np.testing.assert_allclose([results["loss"], results["mae"]], [9.793086e-05, 0.007603015], rtol=1e-4)
    tags = [[value.tag for value in event.summary.value] for event in events_of(trained.eval_dir())]
    assert [found for found in tags if found] == [["loss", "mae"], ["checkpoint_path"]]


def test_evaluation_of_a_dataset_for_some_steps(trained: Any, messages: list[str]) -> None:
    results = trained.evaluate(dataset, steps=3, name="some")
    np.testing.assert_allclose(results["mae"], 0.00887198, rtol=1e-4)  # TensorFlow 1.15.5's
    assert [text for text in messages if text.startswith("Evaluation")] == [
        "Evaluation [1/3]", "Evaluation [2/3]", "Evaluation [3/3]",
    ]  # fmt: skip
    saved = next(text for text in messages if text.startswith("Saving dict"))
    assert saved.startswith("Saving dict for global step 25: global_step = 25, loss = 0.00012594")
    assert tf.gfile.Exists(trained.eval_dir("some"))


def test_predictions_come_one_by_one_or_in_batches(trained: Any) -> None:
    first = next(trained.predict(batches(1)))
    np.testing.assert_allclose(first["y"], 2.5590615, rtol=1e-5)
    assert len(list(trained.predict(batches(1), predict_keys=["z"]))) == 40
    found = list(trained.predict(dataset, predict_keys="z", yield_single_examples=False))
    assert [sorted(each) for each in found] == [["z"]] * 5
    with pytest.raises(ValueError, match="Expected to run at least one output"):
        next(trained.predict(dataset, predict_keys=["nothing"]))


def test_exports_are_loaded_by_their_signature(trained: Any, tmp_path: Path) -> None:
    with tf.Graph().as_default():
        receiver = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.zeros([3, 2])})
    note = tmp_path / "note.txt"
    note.write_text("hello")
    path = trained.export_savedmodel(
        str(tmp_path / "out"), receiver, {"notes/a.txt": str(note)}, as_text=True
    )
    folder = Path(path.decode())
    assert folder.name.isdigit() and (folder / "saved_model.pbtxt").exists()
    assert (folder / "assets.extra/notes/a.txt").read_text() == "hello"
    with tf.Session(graph=tf.Graph()) as session:
        meta = tf.saved_model.loader.load(session, ["serve"], str(folder))
        signature = meta.signature_def["serving_default"]
        feed = {signature.inputs["x"].name: [[1.0, 1.0]]}
        value = session.run(signature.outputs["y"].name, feed)
    np.testing.assert_allclose(value, [3.0], atol=0.02)
    assert sorted(meta.signature_def) == ["p", "serving_default"]


def test_all_modes_are_exported_with_their_tags(trained: Any, tmp_path: Path) -> None:
    with tf.Graph().as_default():
        features, labels = {"x": tf.zeros([3, 2], name="x")}, tf.zeros([3], name="y")
        build = tf.estimator.export.build_raw_serving_input_receiver_fn(features)
        supervised = tf.estimator.experimental.build_raw_supervised_input_receiver_fn(features, labels)
    path = trained.experimental_export_all_saved_models(
        str(tmp_path), {"train": supervised, "eval": supervised, "infer": build}
    )
    for tag, outputs in (("train", ["loss"]), ("eval", ["loss", "metrics/mae/update_op", "metrics/mae/value",
                                                        "predictions"])):  # fmt: skip
        with tf.Session(graph=tf.Graph()) as session:
            meta = tf.saved_model.loader.load(session, [tag], path.decode())
        signature = meta.signature_def[tag]
        assert sorted(signature.inputs) == ["label", "x"] and sorted(signature.outputs) == outputs
    with pytest.raises(ValueError, match="must be defined"):
        trained.export_saved_model(str(tmp_path), None)


def test_training_goes_on_from_the_checkpoint(tmp_path: Path, messages: list[str]) -> None:
    estimator = make(tmp_path)
    estimator.train(dataset)  # five batches
    assert estimator.get_variable_value("global_step") == 5
    estimator.train(dataset, max_steps=5)
    assert messages[-1] == "Skipping training since max_steps has already saved."
    estimator.train(batches(), max_steps=7)
    assert estimator.get_variable_value("global_step") == 7
    assert [text for text in messages if "loss = " in text][1].endswith(", step = 6")


def test_the_hooks_are_called_in_order(tmp_path: Path) -> None:
    called: list[str] = []

    def hook(name: str) -> Any:
        class Hook(tf.train.SessionRunHook):
            def after_create_session(self, session: Any, coord: Any) -> None:
                called.append(name)

        return Hook()

    class Listener(tf.train.CheckpointSaverListener):
        def after_save(self, session: Any, global_step_value: int) -> None:
            called.append(f"saved {global_step_value}")

    def model(features: Any, labels: Any, mode: str, params: Any) -> Any:
        spec = linear(features, labels, mode, params)
        return spec._replace(
            training_hooks=[hook("training")], training_chief_hooks=[hook("chief")],
            evaluation_hooks=[hook("evaluation")], prediction_hooks=[hook("prediction")],
        )  # fmt: skip

    estimator = tf.estimator.Estimator(model, tmp_path, params={"lr": 0.1})
    estimator.train(dataset, hooks=[hook("mine")], steps=1, saving_listeners=[Listener()])
    assert called == ["saved 0", "chief", "mine", "training", "saved 1"]
    estimator.evaluate(dataset, steps=1, hooks=[hook("mine")])
    next(estimator.predict(dataset, hooks=[hook("mine")]))
    assert called[5:] == ["mine", "evaluation", "mine", "prediction"]


def test_the_seed_is_that_of_the_configuration(tmp_path: Path) -> None:
    def model(features: Any, mode: str) -> Any:
        return tf.estimator.EstimatorSpec(mode, predictions=tf.random_uniform([1]) + features)

    found = []
    for _ in range(2):
        config = tf.estimator.RunConfig(str(tmp_path), tf_random_seed=7)
        estimator = tf.estimator.Estimator(model, config=config)
        found.append(next(estimator.predict(lambda: tf.constant([0.0]))))
    assert found[0] == found[1]


def test_a_model_begins_with_another_ones_variables(trained: Any, tmp_path: Path) -> None:
    estimator = tf.estimator.Estimator(
        linear, tmp_path, params={"lr": 0.0}, warm_start_from=trained.model_dir
    )
    assert estimator.train(dataset, steps=1).get_variable_value("global_step") == 1
    np.testing.assert_array_equal(estimator.get_variable_value("w"), trained.get_variable_value("w"))
    settings = tf.estimator.WarmStartSettings(trained.latest_checkpoint(), vars_to_warm_start="w")
    other = tf.estimator.Estimator(linear, tmp_path / "other", params={"lr": 0.0}, warm_start_from=settings)
    np.testing.assert_allclose(other.evaluate(dataset)["mae"], trained.evaluate(dataset)["mae"])
    with pytest.raises(ValueError, match="MUST be set"):
        tf.estimator.WarmStartSettings(None)
    with pytest.raises(ValueError, match="string or a WarmStartSettings"):
        tf.estimator.Estimator(linear, params={}, warm_start_from=3)


def test_the_public_model_fn_builds_the_model(trained: Any) -> None:
    with tf.Graph().as_default():
        spec = trained.model_fn({"x": tf.zeros([1, 2])}, None, "infer", trained.config)
    assert set(spec.predictions) == {"y", "z"}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda e: e.train(dataset, steps=0), ValueError, "Must specify steps > 0, given: 0"),
        (lambda e: e.train(dataset, max_steps=0), ValueError, "Must specify max_steps > 0, given: 0"),
        (lambda e: e.train(dataset, steps=1, max_steps=1), ValueError, "Can not provide both"),
        (lambda e: e.train(3, steps=1), TypeError, "unsupported callable"),
        (lambda e: e.train(dataset, steps=1, hooks=[3]), TypeError, "must be a SessionRunHook, given: 3"),
        (lambda e: e.train(dataset, saving_listeners=[3]), TypeError, "list of CheckpointSaverListener"),
        (lambda e: e.train(lambda: (1, 2, 3), steps=1), ValueError, "as a len 2 tuple"),
        (lambda e: e.evaluate(dataset, steps=0), ValueError, "Must specify steps > 0, given: 0"),
        (lambda e: e.get_variable_names(), ValueError, "Could not find trained model in model_dir"),
        (lambda e: e.export_savedmodel("/x", lambda: None), ValueError, "Couldn't find trained model at"),
        (lambda e: tf.estimator.Estimator(None), ValueError, "model_fn must be provided"),
        (lambda e: tf.estimator.Estimator(3), TypeError, "unsupported callable"),
        (lambda e: tf.estimator.Estimator(lambda x: x), ValueError, "must include features argument"),
        (lambda e: tf.estimator.Estimator(lambda features, a: a), ValueError, r"not expected args: \['a'\]"),
        (
            lambda e: tf.estimator.Estimator(lambda features: 1, params={}),
            ValueError,
            "does not include params",
        ),
        (lambda e: tf.estimator.Estimator(linear, config=3), ValueError, "instance of `RunConfig`"),
        (
            lambda e: tf.estimator.Estimator(linear, "/a", tf.estimator.RunConfig("/b")),
            ValueError,
            "different values. In constructor: '/a', in `RunConfig`: '/b'",
        ),
        (
            lambda e: tf.estimator.Estimator(lambda features, mode: 3).train(dataset),
            ValueError,
            "model_fn does not take labels",
        ),
        (
            lambda e: tf.estimator.Estimator(lambda features, labels: 3).train(dataset),
            ValueError,
            "model_fn should return an EstimatorSpec",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        call(make(tmp_path))


def test_metrics_of_taken_names_are_refused(tmp_path: Path) -> None:
    def model(features: Any, mode: str) -> Any:
        loss = tf.reduce_sum(features)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"loss": tf.metrics.mean(loss)})

    with pytest.raises(ValueError, match='Metric with name "loss" is not allowed'):
        tf.estimator.Estimator(model, tmp_path).evaluate(lambda: tf.ones([1]), steps=1)


def test_predictions_of_other_lengths_are_refused(tmp_path: Path) -> None:
    def model(features: Any, mode: str) -> Any:
        return tf.estimator.EstimatorSpec(mode, {"a": features, "b": tf.ones([2])})

    with pytest.raises(ValueError, match="b has different batch length than others"):
        next(tf.estimator.Estimator(model, tmp_path).predict(lambda: tf.ones([1])))


def test_a_subclass_keeps_the_methods() -> None:
    class Mine(tf.estimator.Estimator):
        def train(self, *arguments: Any) -> Any:
            return arguments

    with pytest.raises(ValueError, match="cannot override members of Estimator"):
        Mine(linear, params={})


def test_a_model_without_folder_gets_one(messages: list[str]) -> None:
    estimator = tf.estimator.Estimator(linear, params={})
    assert f"Using temporary folder as model directory: {estimator.model_dir}" in messages
    assert tf.gfile.IsDirectory(estimator.model_dir)
    assert estimator.config.session_config.allow_soft_placement
