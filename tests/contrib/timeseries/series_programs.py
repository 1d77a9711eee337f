"""Programs of time series, for flowstone and TensorFlow 1.15: each gives numbers by name."""

from __future__ import annotations

import functools
import importlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

LENGTH = 40


def module(tf: Any, name: str) -> Any:
    """The module `tensorflow.contrib.timeseries.python.timeseries.NAME`."""
    if tf.__name__ == "flowstone":
        return functools.reduce(getattr, f"python.timeseries.{name}".split("."), tf.contrib.timeseries)
    return importlib.import_module(f"tensorflow.contrib.timeseries.python.timeseries.{name}")


def series(features: int = 1, length: int = LENGTH) -> dict[str, np.ndarray]:
    """Waves and a slope, each feature its own."""
    times = np.arange(length)
    columns = [np.sin(times / (2.0 + k)) * (1 + k) + 0.05 * times + k for k in range(features)]
    return {"times": times, "values": np.stack(columns, axis=1).astype(np.float32)}


def known(length: int) -> np.ndarray:
    """What is known beside the values."""
    return (np.arange(length) % 3 == 0).astype(np.float32)


def weights(name: str, shape: list[int]) -> np.ndarray:
    """Small numbers that differ by place and by the variable's name."""
    size = int(np.prod(shape))
    first = sum(map(ord, name)) % 17
    return (0.1 * np.cos(1.7 * np.arange(size) + first)).reshape(shape)


def weight_hook(tf: Any) -> Any:
    """A hook that sets all trained variables."""

    class SetWeights(tf.train.SessionRunHook):  # type: ignore[misc]
        def after_create_session(self, session: Any, coord: Any) -> None:
            for variable in tf.trainable_variables():
                value = weights(variable.op.name, variable.shape.as_list())
                session.run(variable.initializer, {variable.initializer.inputs[1]: value})

    return SetWeights()


def windows(tf: Any, data: dict[str, np.ndarray], size: int, starts: tuple[int, ...]) -> Any:
    """An input function of one batch of these windows, over and over."""

    def input_fn() -> Any:
        return {
            name: tf.constant(np.stack([value[start : start + size] for start in starts]))
            for name, value in data.items()
        }, None

    return input_fn


def numbers(found: Any) -> Any:
    """Lists in place of arrays."""
    if isinstance(found, dict):
        return {name: numbers(value) for name, value in sorted(found.items())}
    if isinstance(found, (list, tuple)):
        return [numbers(value) for value in found]
    if isinstance(found, bytes):
        return found.decode()
    value = np.asarray(found)
    if value.dtype.kind == "S" or value.dtype == object:
        return [numbers(each) for each in value.tolist()]
    return np.round(value.astype(np.float64), 6).tolist() if value.dtype.kind == "f" else value.tolist()


def batches(tf: Any, input_fn: Any, count: int) -> list[Any]:
    """The first batches of an input function."""
    with tf.Graph().as_default():
        features = input_fn()[0]
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            found = [session.run(features) for _ in range(count)]
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=20)
    return [numbers(each) for each in found]


def csv_file(folder: str) -> str:
    """A file of two columns of values and one that is known."""
    path = Path(folder) / "series.csv"
    rows = [f"{t},{t * 0.5},{t * t},{int(t % 3 == 0)}" for t in range(12)]
    path.write_text("\n".join(["time,a,b,c", *rows]) + "\n", encoding="utf-8")
    return str(path)


def read_whole(tf: Any) -> Any:
    """The whole of some arrays, again and again."""
    ts = tf.contrib.timeseries
    data = {**series(2, 12), "known": known(12)}
    return batches(tf, ts.WholeDatasetInputFn(ts.NumpyReader(data, 7)), 2)


def read_csv(tf: Any) -> Any:
    """The whole of a CSV file."""
    ts = tf.contrib.timeseries
    with tempfile.TemporaryDirectory() as folder:
        columns = ("times", "values", "values", "known")
        reader = ts.CSVReader(csv_file(folder), columns, skip_header_lines=1)
        typed = ts.CSVReader(
            csv_file(folder), columns, (tf.int64, tf.float64, tf.float64, tf.string), skip_header_lines=1
        )
        return {
            "whole": batches(tf, ts.WholeDatasetInputFn(reader), 1),
            "typed": batches(tf, ts.WholeDatasetInputFn(typed), 1),
        }


def statistics(tf: Any) -> Any:
    """Input statistics after each of some batches."""
    data = series(2)
    found = []
    with tf.Graph().as_default():
        times = tf.placeholder(tf.int64, [None, 6])
        values = tf.placeholder(tf.float32, [None, 6, 2])
        generator = module(tf, "math_utils").InputStatisticsFromMiniBatch(2, tf.float32, 4)
        made = generator.initialize_graph({"times": times, "values": values})
        names = [variable.op.name for variable in tf.global_variables()]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for starts in ((20, 8), (3, 30), (9, 1)):
                rows = [slice(start, start + 6) for start in starts]
                feeds = {
                    times: np.stack([data["times"][row] * 2 + 5 for row in rows]),
                    values: np.stack([data["values"][row] for row in rows]),
                }
                statistics, stored = session.run([made, tf.global_variables()], feeds)[0], None
                stored = dict(zip(names, session.run(tf.global_variables())))
                found.append([numbers(statistics), numbers(stored)])
    return found


def _use(tf: Any, make: Any, data: dict[str, np.ndarray], size: int, later: Any = None, **more: Any) -> Any:
    """Trains three steps, evaluates and predicts what comes after."""
    ts = tf.contrib.timeseries
    with tempfile.TemporaryDirectory() as folder:
        config = tf.estimator.RunConfig(folder, tf_random_seed=5, save_summary_steps=1000)
        estimator = make(config)
        input_fn = windows(tf, data, size, (0, 7, 2 * LENGTH // 5))
        estimator.train(input_fn, hooks=[weight_hook(tf)], steps=3)
        names = [name for name in estimator.get_variable_names() if "/Ada" not in name]
        trained = {name: estimator.get_variable_value(name) for name in names}
        evaluation = estimator.evaluate(ts.WholeDatasetInputFn(ts.NumpyReader(data)), steps=1)
        predictions = {}
        if "start_tuple" in evaluation:
            input_fn = ts.predict_continuation_input_fn(evaluation, steps=7, exogenous_features=later)
            predictions = next(iter(estimator.predict(input_fn)))
        exported = more["export"](tf, estimator, data, later) if "export" in more else {}
        return {
            "variables": numbers(trained),
            "evaluation": numbers(evaluation),
            "predictions": numbers(predictions),
            "exported": exported,
        }


def served(tf: Any, estimator: Any, data: dict[str, np.ndarray], later: Any) -> Any:
    """The answers of the exported model: filtering in two parts, and a prediction."""
    utils = tf.contrib.timeseries.saved_model_utils
    half = LENGTH // 2
    parts = [{name: value[rows] for name, value in data.items()} for rows in (slice(half), slice(half, None))]
    with tempfile.TemporaryDirectory() as folder:
        path = estimator.export_saved_model(folder, estimator.build_raw_serving_input_receiver_fn())
        with tf.Graph().as_default(), tf.Session() as session:
            signatures = tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], path)
            first = utils.cold_start_filter(signatures, session, parts[0])
            second = utils.filter_continuation(first, signatures, session, parts[1])
            answer = utils.predict_continuation(
                second,
                signatures,
                session,
                steps=5,
                exogenous_features=later and {name: value[:, :5] for name, value in later.items()},
            )
            inputs = {key: sorted(each.inputs) for key, each in signatures.signature_def.items()}
    return {"filtered": numbers(second), "answer": numbers(answer), "inputs": inputs}


def flat(tf: Any) -> Any:
    """An autoregressive model of two features with hidden layers, exported."""
    make = functools.partial(
        tf.contrib.timeseries.ARRegressor, 7, 6, 3, 2, hidden_layer_sizes=[4, 3], num_time_buckets=4
    )
    return _use(tf, lambda config: make(config=config), series(2), 9, export=served)


def squared(tf: Any) -> Any:
    """The squared loss, an output window longer than the input's, two periods."""
    make = functools.partial(
        tf.contrib.timeseries.ARRegressor, (5, 11), 2, 5, 1, loss="squared_loss", num_time_buckets=3
    )
    return _use(tf, lambda config: make(config=config), series(1), 7)


def no_input_window(tf: Any) -> Any:
    """A model that only sees where a time is within its period."""
    make = functools.partial(tf.contrib.timeseries.ARRegressor, 8, 0, 4, 1)
    return _use(tf, lambda config: make(config=config), series(1), 4)


def exogenous(tf: Any) -> Any:
    """What is known beside the values, one of it a string; exported."""
    fc = tf.feature_column
    kinds = fc.categorical_column_with_vocabulary_list("kind", ["x", "y"])
    columns = [fc.numeric_column("known"), fc.indicator_column(kinds)]
    data = {**series(1, 39), "known": known(39), "kind": np.array(["x", "y", "z"] * 13)}
    later = {"known": known(7)[None], "kind": np.array([["x", "y", "z", "x", "y", "z", "x"]])}
    make = functools.partial(
        tf.contrib.timeseries.ARRegressor, None, 4, 2, 1, exogenous_feature_columns=columns
    )
    return _use(tf, lambda config: make(config=config), data, 6, later)


def anomalies(tf: Any, kind: str) -> Any:
    """A mixture with anomalies."""
    make = functools.partial(
        tf.contrib.timeseries.ARRegressor,
        6,
        5,
        2,
        1,
        anomaly_prior_probability=0.1,
        anomaly_distribution=kind,
    )
    return _use(tf, lambda config: make(config=config), series(1), 7)


def served_at_once(tf: Any, estimator: Any, data: dict[str, np.ndarray], later: Any) -> Any:
    """The answer of an exported one-shot prediction to serialized examples."""
    make = tf.train.Feature
    example = tf.train.Example(features=tf.train.Features(feature={
        "times": make(int64_list=tf.train.Int64List(value=range(20))),
        "values": make(float_list=tf.train.FloatList(value=data["values"][:14].ravel())),
    })).SerializeToString()  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        receiver = estimator.build_one_shot_parsing_serving_input_receiver_fn(14, 6)
        path = estimator.export_saved_model(folder, receiver)
        with tf.Graph().as_default(), tf.Session() as session:
            loaded = tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], path)
            signature = loaded.signature_def["serving_default"]
            fetches = {name: each.name for name, each in signature.outputs.items()}
            answer = session.run(fetches, {signature.inputs["examples"].name: [example, example]})
    return {"answer": numbers(answer), "inputs": sorted(signature.inputs)}


def lstm(tf: Any) -> Any:
    """Two LSTMs, and a one-shot prediction."""
    make = functools.partial(
        module(tf, "estimators").LSTMAutoRegressor, 7, 6, 3, num_units=4, num_timesteps=3
    )
    return _use(tf, lambda config: make(config=config), series(1), 9, export=served_at_once)


def own_model(tf: Any, unrolled: int | None) -> Any:
    """A recurrent model of one's own, with chained states; it takes what is known beside the values."""

    class Recurrent(module(tf, "model").SequentialTimeSeriesModel):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(
                train_output_names=["mean"],
                predict_output_names=["mean"],
                num_features=2,
                normalize_features=True,
                exogenous_feature_columns=[tf.feature_column.numeric_column("known")],
                exogenous_update_condition=lambda times, features: features["known"][:, 0] > 0.5,
                static_unrolling_window_size_threshold=unrolled,
            )

        def initialize_graph(self, input_statistics: Any = None) -> None:
            super().initialize_graph(input_statistics=input_statistics)
            with tf.variable_scope("", use_resource=True):
                self.mix = tf.get_variable("mix", [7, 5])
                self.out = tf.get_variable("out", [5, 2])

        def get_start_state(self) -> Any:
            return tf.zeros([], tf.int64), {"hidden": tf.zeros([5]), "seen": tf.ones([2])}

        def _filtering_step(
            self, current_times: Any, current_values: Any, state: Any, predictions: Any
        ) -> Any:
            error = tf.reduce_mean((predictions["mean"] - current_values) ** 2, axis=-1)
            _, parts = state
            new = (current_times, {"hidden": parts["hidden"], "seen": current_values})
            return new, {"loss": error, "mean": predictions["mean"]}

        def _prediction_step(self, current_times: Any, state: Any) -> Any:
            _, parts = state
            hidden = tf.tanh(tf.matmul(tf.concat([parts["seen"], parts["hidden"]], axis=1), self.mix))
            mean = tf.matmul(hidden, self.out)
            return (current_times, {"hidden": hidden, "seen": mean}), {"mean": mean}

        def _imputation_step(self, current_times: Any, state: Any) -> Any:
            return state

        def _exogenous_input_step(
            self, current_times: Any, current_exogenous_regressors: Any, state: Any
        ) -> Any:
            times, parts = state
            return times, {**parts, "hidden": parts["hidden"] + current_exogenous_regressors}

        def _scale_back_predictions(self, predictions: Any) -> Any:
            return {"mean": self._scale_back_data(predictions["mean"])}

    def make(config: Any) -> Any:
        manager = module(tf, "state_management").ChainingStateManager(state_saving_interval=8)
        return tf.contrib.timeseries.TimeSeriesRegressor(
            Recurrent(), manager, tf.train.AdamOptimizer(0.05), config=config
        )

    later = {"known": known(7)[None, :, None]}
    return _use(tf, make, {**series(2), "known": known(LENGTH)[:, None]}, 8, later, export=served)


PROGRAMS: dict[str, Any] = {
    "anomalies cauchy": functools.partial(anomalies, kind="cauchy"),
    "anomalies gaussian": functools.partial(anomalies, kind="gaussian"),
    "exogenous": exogenous,
    "flat": flat,
    "lstm": lstm,
    "no input window": no_input_window,
    "own model": functools.partial(own_model, unrolled=None),
    "own model unrolled": functools.partial(own_model, unrolled=8),
    "read csv": read_csv,
    "read whole": read_whole,
    "squared": squared,
    "statistics": statistics,
}
