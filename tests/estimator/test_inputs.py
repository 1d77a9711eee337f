"""Input functions over arrays and data frames; the values are TensorFlow 1.15.5's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

inputs = tf.estimator.inputs
X = {"a": np.arange(10), "b": np.ones([10, 2], np.float32)}


def batches(input_fn: Any, most: int = 9) -> list[Any]:
    found: list[Any] = []
    with tf.Graph().as_default():
        tensors = input_fn()
        with tf.train.MonitoredSession() as session:
            while not session.should_stop() and len(found) < most:
                found.append(session.run(tensors))
    return found


class Column:
    """What is used of a pandas Series."""

    def __init__(self, values: Any, index: Any = None) -> None:
        self.values = np.asarray(values)
        self.index = np.arange(len(self.values)) if index is None else index

    def copy(self) -> Column:
        return self

    def to_numpy(self) -> Any:
        return self.values


class Frame(Column):
    """What is used of a pandas DataFrame."""

    def __init__(self, **columns: Any) -> None:
        self.data = {name: Column(values) for name, values in columns.items()}
        self.columns = list(self.data)
        self.index = self.data[self.columns[0]].index

    def __getitem__(self, name: str) -> Column:
        return self.data[name]

    def __contains__(self, name: str) -> bool:
        return name in self.data


def test_batches_of_arrays_end_with_what_is_left() -> None:
    found = batches(inputs.numpy_input_fn(X, np.arange(10), 4, shuffle=False))
    assert [features["a"].tolist() for features, _ in found] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [labels.tolist() for _, labels in found] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert found[2][0]["b"].shape == (2, 2)


def test_epochs_follow_each_other() -> None:
    labels = {"y1": np.arange(10), "y2": np.arange(10)}
    found = batches(inputs.numpy_input_fn(X, labels, 4, num_epochs=2, shuffle=False))
    assert [each["y2"].tolist() for _, each in found][2:] == [[8, 9, 0, 1], [2, 3, 4, 5], [6, 7, 8, 9]]
    endless = batches(inputs.numpy_input_fn(np.arange(3), None, 2, num_epochs=None, shuffle=False), 4)
    assert [each.tolist() for each in endless] == [[0, 1], [2, 0], [1, 2], [0, 1]]


def test_shuffled_rows_are_all_there() -> None:
    found = batches(inputs.numpy_input_fn(X, None, 4, shuffle=True, queue_capacity=40))
    assert sorted(row for each in found for row in each["a"]) == list(range(10))
    with tf.Graph().as_default() as graph:
        inputs.numpy_input_fn(X, None, 4, shuffle=True, queue_capacity=40, num_threads=2)()
        name = "enqueue_input/queue/enqueue_input/random_shuffle_queuefraction_over_10_of_30_full"
        assert graph.get_operation_by_name(name).type == "ScalarSummary"
        assert len(graph.get_collection("queue_runners")[0].enqueue_ops) == 2


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: inputs.numpy_input_fn(X), ValueError, "shuffle must be provided"),
        (lambda: inputs.numpy_input_fn({}, shuffle=False)(), ValueError, "x cannot be an empty dict"),
        (
            lambda: inputs.numpy_input_fn([1], shuffle=False)(),
            TypeError,
            "x must be a dict or array; got list",
        ),
        (lambda: inputs.numpy_input_fn(X, np.arange(3), shuffle=False)(), ValueError, r"Shapes in y: \(3,\)"),
        (lambda: inputs.numpy_input_fn(X, {}, shuffle=False)(), ValueError, "y cannot be empty dict"),
        (
            lambda: inputs.numpy_input_fn(X, {"a": np.arange(10)}, shuffle=False)(),
            ValueError,
            "1 duplicate keys",
        ),
        (lambda: inputs.pandas_input_fn(Frame(u=[1])), ValueError, "shuffle must be provided"),
        (
            lambda: inputs.pandas_input_fn(Frame(u=[1]), Column([1]), shuffle=False, target_column="u"),
            ValueError,
            "Cannot use name u for target column",
        ),
        (
            lambda: inputs.pandas_input_fn(Frame(u=[1]), Column([1], [5]), shuffle=False),
            ValueError,
            "mismatched",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_batches_of_a_data_frame() -> None:
    frame = Frame(u=[1, 2, 3], v=np.array(["a", "b", "c"], object))
    found = batches(inputs.pandas_input_fn(frame, Column([1.0, 2.0, 3.0]), 2, shuffle=False))
    assert [each["v"].tolist() for each, _ in found] == [[b"a", b"b"], [b"c"]]
    assert [labels.tolist() for _, labels in found] == [[1.0, 2.0], [3.0]]
    several = batches(inputs.pandas_input_fn(frame, Frame(q=[1, 2, 3], r=[4, 5, 6]), 3, shuffle=False))
    assert several[0][1]["r"].tolist() == [4, 5, 6]
    assert batches(inputs.pandas_input_fn(frame, None, 3, shuffle=False))[0]["u"].tolist() == [1, 2, 3]
