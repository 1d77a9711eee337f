"""`train_and_evaluate` and its exporters; the order of evaluations is TensorFlow 1.15.5's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf

Train, Eval = tf.estimator.TrainSpec, tf.estimator.EvalSpec


def model(features: Any, mode: str) -> Any:
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    loss = tf.square(w - tf.reduce_mean(features["x"]))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf.train.get_global_step()) if mode == "train" else None
    return tf.estimator.EstimatorSpec(mode, features["x"] * w, loss, train_op)


def ones() -> Any:
    return tf.data.Dataset.from_tensors({"x": [1.0, 1.0]}).repeat()


def receiver() -> Any:
    x = tf.placeholder(tf.float32, [None])
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def make(folder: Path, **config: Any) -> Any:
    return tf.estimator.Estimator(
        model, folder, tf.estimator.RunConfig(**{"save_checkpoints_steps": 10, **config})
    )


class Record(tf.estimator.Exporter):
    """Keeps what it is called with."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    @property
    def name(self) -> str:
        return "record"

    def export(self, estimator: Any, export_path: Any, checkpoint_path: Any, eval_result: Any,
               is_the_final_export: bool) -> Any:  # fmt: skip
        self.calls.append((eval_result["global_step"], is_the_final_export, Path(export_path).name))
        return eval_result["global_step"]


def test_each_checkpoint_is_evaluated(tmp_path: Path) -> None:
    record = Record()
    final = tf.estimator.FinalExporter("final", receiver)
    latest = tf.estimator.LatestExporter("latest", receiver, exports_to_keep=1)
    spec = Eval(ones, steps=2, throttle_secs=0, exporters=[record, final, latest])
    results, exports = tf.estimator.train_and_evaluate(make(tmp_path), Train(ones, 25), spec)
    assert [call[:2] for call in record.calls] == [(10, False), (20, False), (25, True)]
    assert record.calls[0][2] == "record" and results["global_step"] == 25
    assert exports[0] == 25 and exports[1].decode().startswith(str(tmp_path / "export" / "final"))
    assert len(tf.gfile.ListDirectory(str(tmp_path / "export" / "latest"))) == 1


def test_evaluations_keep_their_distance(tmp_path: Path) -> None:
    record = Record()
    spec = Eval(ones, steps=1, throttle_secs=600, exporters=record)
    tf.estimator.train_and_evaluate(make(tmp_path), Train(ones, 25), spec)
    assert record.calls == [(25, True, "record")]


def test_the_best_model_is_exported(tmp_path: Path) -> None:
    folder = tmp_path / "best"
    estimator = make(tmp_path / "model").train(ones, steps=1)
    exporter = tf.estimator.BestExporter("best", receiver, exports_to_keep=1)
    given = [({"loss": 2.0}, True), ({"loss": 3.0}, False), ({"loss": 1.0}, True)]
    for result, exported in given:
        path = exporter.export(estimator, str(folder), estimator.latest_checkpoint(), result, False)
        assert (path is not None) == exported
    assert len(tf.gfile.ListDirectory(str(folder))) == 1
    estimator.evaluate(ones, steps=1)  # its loss, 0.64, is in the log of evaluations
    again = tf.estimator.BestExporter("best", receiver)
    arguments = (estimator, str(folder), estimator.latest_checkpoint())
    assert again.export(*arguments, {"loss": 0.7}, False) is None
    assert again.export(*arguments, {"loss": 0.6}, False) is not None
    with pytest.raises(ValueError, match="no loss is found"):
        again.export(*arguments, {"accuracy": 1.0}, False)


@pytest.mark.parametrize(
    ("make_one", "error", "message"),
    [
        (lambda: Train(3), TypeError, "`input_fn` must be callable, given: 3"),
        (lambda: Train(ones, 0), ValueError, "Must specify max_steps > 0"),
        (lambda: Train(ones, hooks=[3]), TypeError, "must be `SessionRunHook` instances"),
        (lambda: Eval(ones, 0), ValueError, "Must specify steps > 0"),
        (lambda: Eval(ones, name=3), TypeError, "`name` must be string"),
        (lambda: Eval(ones, exporters=3), TypeError, "`exporters` must be an Exporter"),
        (lambda: Eval(ones, exporters=[3]), TypeError, "`exporters` must be an Exporter"),
        (lambda: Eval(ones, exporters=[Record(), Record()]), ValueError, "must have unique names"),
        (
            lambda: Eval(ones, exporters=[tf.estimator.FinalExporter("", receiver)]),
            ValueError,
            "None` or empty",
        ),
        (lambda: Eval(ones, start_delay_secs=-1), ValueError, "start_delay_secs >= 0"),
        (lambda: Eval(ones, throttle_secs=-1), ValueError, "throttle_secs >= 0"),
        (
            lambda: tf.estimator.LatestExporter("a", receiver, exports_to_keep=0),
            ValueError,
            "positive number",
        ),
        (lambda: tf.estimator.BestExporter("a", receiver, exports_to_keep=0), ValueError, "positive number"),
        (lambda: tf.estimator.BestExporter("a", receiver, compare_fn=None), ValueError, "must not be None"),
        (
            lambda: tf.estimator.BestExporter(compare_fn=lambda a: a),
            ValueError,
            "must include best_eval_result",
        ),
        (
            lambda: tf.estimator.train_and_evaluate(3, Train(ones), Eval(ones)),
            TypeError,
            "`estimator` must have",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make_one: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make_one()
