"""Feeders, input functions and readers of tf.contrib.learn.io give what TensorFlow's give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.learn import learn_inputs

import flowstone as tf
from flowstone.contrib.learn.learn_io import data_feeder, generator_io

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "contrib_learn" / "inputs.json").read_text())
IO = tf.contrib.learn.io


@pytest.fixture(scope="module")
def feeder_answers() -> Any:
    return json.loads(json.dumps(learn_inputs.feeder_answers(tf, data_feeder)))


@pytest.mark.parametrize("name", sorted(GOLDEN["feeders"]))
def test_feeders_feed_what_tensorflows_feed(name: str, feeder_answers: Any) -> None:
    assert feeder_answers[name] == GOLDEN["feeders"][name]


def test_no_feeder_is_without_an_answer(feeder_answers: Any) -> None:
    assert set(feeder_answers) == set(GOLDEN["feeders"])


@pytest.fixture(scope="module")
def batches() -> Any:
    return json.loads(json.dumps(learn_inputs.input_answers(tf)))


@pytest.mark.parametrize("name", sorted(GOLDEN["batches"]))
def test_batches_are_those_of_tensorflow(name: str, batches: Any) -> None:
    assert batches[name] == GOLDEN["batches"][name]


# ---- beyond what TensorFlow takes, and errors


def feeds(feeder: Any) -> list[Any]:
    with tf.Graph().as_default():
        feeder.input_builder()
        feed, found = feeder.get_feed_dict_fn(), []
        for _ in range(9):
            try:
                found.append({name: np.asarray(value).tolist() for name, value in feed().items()})
            except StopIteration:
                break
        return found


def test_lists_are_fed_and_so_are_iterators_of_lists_and_texts() -> None:
    from_lists = feeds(data_feeder.DataFeeder([[1, 2], [3, 4]], [0, 1], None, 2, False, epochs=1))
    assert from_lists == [{"input:0": [[1, 2], [3, 4]], "output:0": [0, 1]}]
    texts = data_feeder.StreamingDataFeeder(iter(["a", "bb"]), iter(["x", "yyy"]), None, 2)
    assert feeds(texts) == [{"input:0": [["a"], ["bb"]], "output:0": ["x", "yyy"]}]


def test_other_numbers_of_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="x and y have other numbers of examples: 5 and 4"):
        data_feeder.DataFeeder(learn_inputs.X, np.arange(4), None)


def test_iterators_come_in_pairs_and_are_not_empty() -> None:
    with pytest.raises(ValueError, match="Both x and y should be iterators"):
        data_feeder.setup_train_data_feeder(iter([[1.0]]), np.arange(4), None)
    with pytest.raises(ValueError, match="yields nothing"):
        data_feeder.setup_train_data_feeder(iter([]), None, None)


def test_predictions_take_batches() -> None:
    sizes = [len(batch) for batch in data_feeder.setup_predict_data_feeder(learn_inputs.X, 2)]
    assert sizes == [2, 2, 1]
    assert data_feeder.setup_predict_data_feeder(np.arange(3.0))[0].shape == (3, 1)  # type: ignore[index]
    from_iterator = list(data_feeder.setup_predict_data_feeder(iter(learn_inputs.X), 4))
    assert [batch.shape for batch in from_iterator] == [(4, 2), (1, 2)]


def test_arrays_of_another_type() -> None:
    assert data_feeder.check_array([[1, 2]], np.float32).dtype == np.float32
    assert data_feeder.setup_processor_data_feeder(learn_inputs.X) is learn_inputs.X


@pytest.mark.parametrize(
    ("x", "key", "error", "message"),
    [
        (3, None, TypeError, "x must be generator function; got int"),
        (lambda: 3, None, TypeError, r"x\(\) must be generator; got int"),
        (learn_inputs._rows, None, TypeError, r"x\(\) must yield dict; got ndarray"),
        (learn_inputs._even, 3, TypeError, "target_key must be str or Container of str; got int"),
        (learn_inputs._even, "zz", KeyError, "target_key not in yielded dict"),
    ],
)
def test_generators_that_are_none(x: Any, key: Any, error: type[Exception], message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(error, match=message):
        IO.generator_input_fn(x, key, shuffle=False)()


def test_padding_and_shuffling_exclude_each_other() -> None:
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="padding and shuffling"):
        IO.generator_input_fn(learn_inputs._padded, pad_value=0)()


def test_a_generator_that_changes_its_names_ends_the_session() -> None:
    def changing() -> Any:
        yield {"h": np.array(1)}
        yield {"g": np.array(2)}

    with pytest.raises(KeyError, match="key mismatch"):
        learn_inputs.batches(tf, IO.generator_input_fn(changing, batch_size=2, shuffle=False))


@pytest.mark.parametrize(
    ("kind", "data"),
    [("array", np.arange(3)), ("dict", {"a": np.arange(3), "b": np.arange(3) * 2}), ("generator", None)],
)
def test_data_of_any_kind_is_enqueued(kind: str, data: Any) -> None:
    given = (lambda: ({"h": np.array(i)} for i in range(3))) if kind == "generator" else data
    names, found = learn_inputs.batches(
        tf, lambda: generator_io.enqueue_data(given, 10, num_epochs=1, enqueue_size=3).dequeue(), 3
    )
    numbers = [row if kind == "generator" else row[-1] for row in found]
    assert numbers == ([0, 2, 4] if kind == "dict" else [0, 1, 2]), names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "Invalid batch_size 0, with queue_capacity 10000"),
        ({"queue_capacity": 2}, "Invalid batch_size 3, with queue_capacity 2"),
        ({"num_threads": 0}, "Invalid num_threads 0"),
        ({"read_batch_size": 0}, "Invalid read_batch_size 0"),
        ({"num_epochs": 0}, "Invalid num_epochs 0"),
        ({"file_pattern": []}, "No files given"),
        ({"file_pattern": "nothing*"}, r"No files match nothing\*"),
    ],
)
def test_readers_refuse_what_cannot_be_read(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"file_pattern": ["a"], "batch_size": 3, "reader": tf.TextLineReader}
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        IO.read_batch_examples(**{**given, **arguments})


def test_examples_come_in_random_order(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("".join(f"{i}\n" for i in range(200)))
    _, found = learn_inputs.batches(
        tf,
        lambda: IO.read_batch_examples(str(tmp_path / "lines"), 100, tf.TextLineReader, num_epochs=1, seed=1),
        2,
    )
    assert sorted(int(each) for batch in found for each in batch) == list(range(200))
    assert found[0] != [str(i) for i in range(100)]


def test_the_places_of_a_list() -> None:
    ops = IO.graph_io.input_pipeline_ops
    with tf.Graph().as_default(), tf.Session() as session:
        taken = ops.seek_next(["a", "b", "c"], num_epochs=2)
        drawn = None
        with tf.variable_scope("other"):
            drawn = ops.seek_next([str(i) for i in range(20)], shuffle=True, seed=3)
        session.run(tf.global_variables_initializer())
        assert [session.run(taken) for _ in range(6)] == [b"a", b"b", b"c"] * 2
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(taken)
        order = [int(session.run(drawn)) for _ in range(20)]
        assert sorted(order) == list(range(20)) != order
        with pytest.raises(TypeError, match="ObtainNext"):
            ops.obtain_next([1, 2], tf.Variable(-1, dtype=tf.int64))
