"""Machine code and columns give the same outputs, and the same errors, of messages of every kind."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.ops.parsing.damage import damaged

import flowstone as tf
from flowstone.framework import errors, flags
from flowstone.framework.types import dtypes
from flowstone.ops.parsing.feature_outputs import Features, Remembered, batch_outputs, single_outputs
from flowstone.ops.parsing.feature_tensors import Rows, Wanted


def wanted(key: str, dtype: Any, dims: Any, default: Any = ()) -> Wanted:
    return Wanted(key, dtype, dims, np.array(default, dtype.as_numpy_dtype))


FEATURES = Features(
    [(b"x", dtypes.float32), (b"words", dtypes.string), (b"none", dtypes.int64)],
    [
        wanted("x", dtypes.float32, (2, 1)),
        wanted("y", dtypes.int64, (), 7),
        wanted("name", dtypes.string, (), b"nobody"),
        wanted("words", dtypes.string, (None,), b"pad"),
        wanted("pairs", dtypes.int64, (None, 2)),
        wanted("empty", dtypes.float32, (0,)),
    ],
    [(b"pairs", dtypes.int64, dtypes.int32), (b"words", dtypes.string, dtypes.int64)],
)


def message(draw: random.Random) -> bytes:
    example = tf.train.Example()
    feature = example.features.feature
    feature["x"].float_list.value.extend([draw.random(), draw.random()])
    feature["empty"].float_list.SetInParent()
    if draw.random() < 0.7:
        feature["y"].int64_list.value.append(draw.choice([-1, 3, 2**40]))
    if draw.random() < 0.7:
        feature["name"].bytes_list.value.append(b"n" * draw.randrange(3))
    if draw.random() < 0.8:
        feature["words"].bytes_list.value.extend([b"w%d" % i for i in range(draw.randrange(4))])
    if draw.random() < 0.8:
        feature["pairs"].int64_list.value.extend(range(2 * draw.randrange(3)))
    if draw.random() < 0.5:
        feature["unused"].int64_list.value.extend([1, -2, 3])
    return example.SerializeToString()


def both(parse: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """What it gives by machine code, and without: outputs, or an error's class and text."""
    results = []
    for native in (2, 0):
        monkeypatch.setattr(flags, "NATIVE", native)
        try:
            results.append([np.asarray(each) for each in parse()])
        except errors.OpError as error:
            results.append((type(error), str(error)))
    return results[0], results[1]


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert found == expected
        return
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert a.tolist() == b.tolist()


@pytest.mark.parametrize("count", [0, 1, 2, 33, 1024])
def test_batches(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(count)
    messages = np.array([message(draw) for _ in range(count)], object)
    found, expected = both(lambda: batch_outputs(messages, FEATURES, Rows()), monkeypatch)
    assert not isinstance(found, tuple)
    assert_same(found, expected)


def test_machine_code_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    messages = np.array([message(random.Random(i)) for i in range(9)], object)
    assert FEATURES.walk(messages) is not None
    assert FEATURES.walk(np.array([messages[0], b"\xff"], object)) is None
    assert FEATURES.walk(messages[::2]) is None  # not contiguous, as machine code needs them
    assert Features([(b"\xff", dtypes.string)], []).walk(messages) is None


@pytest.mark.parametrize("seed", range(12))
def test_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = np.array(message(random.Random(seed)), object)
    assert_same(*both(lambda: single_outputs(one, FEATURES), monkeypatch))


def test_damaged_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes are changed, cut off and put in: the same outputs, or the same error."""
    draw = random.Random(7)
    errors_seen = 0
    for _ in range(600):
        messages = [message(draw) for _ in range(3)]
        messages[1] = damaged(messages[1], draw)
        array = np.array(messages, object)
        found, expected = both(lambda array=array: batch_outputs(array, FEATURES, Rows()), monkeypatch)
        assert_same(found, expected)
        errors_seen += isinstance(expected, tuple)
        one = np.array(messages[1], object)
        assert_same(*both(lambda one=one: single_outputs(one, FEATURES, [b"it"]), monkeypatch))
    assert 100 < errors_seen < 600


@pytest.mark.parametrize(
    "change",
    [
        {"x": [1.0]},
        {"x": [1.0, 2.0, 3.0]},
        {"x": None},
        {"x": [1]},
        {"y": [1, 2]},
        {"y": [1.5]},
        {"pairs": [1, 2, 3]},
        {"words": [1]},
        {"empty": [1.0]},
        {"empty": None},
    ],
)
def test_features_of_other_numbers_and_kinds(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(0)
    messages = [message(draw) for _ in range(4)]
    example = tf.train.Example.FromString(messages[2])
    for key, values in change.items():
        example.features.feature.pop(key, None)
        if values is not None:
            kind = "float_list" if isinstance(values[0], float) else "int64_list"
            getattr(example.features.feature[key], kind).value.extend(values)
    messages[2] = example.SerializeToString()
    array = np.array(messages, object)
    found, expected = both(
        lambda: batch_outputs(array, FEATURES, Rows([b"a", b"b", b"c", b"d"])), monkeypatch
    )
    assert isinstance(expected, tuple) and found == expected
    one = np.array(messages[2], object)
    assert_same(*both(lambda: single_outputs(one, FEATURES), monkeypatch))


def test_two_types_of_one_feature() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="two types"):
        Features([(b"a", dtypes.int64)], [wanted("a", dtypes.float32, ())])


def test_inputs_are_remembered_by_identity() -> None:
    made: list[Any] = []

    def make(*inputs: Any) -> int:
        made.append(inputs)
        return len(made)

    remembered = Remembered(make)
    a, b = [1], [1]
    assert [remembered((a, a)), remembered((a, a)), remembered((a, b)), remembered((a, b))] == [1, 1, 2, 2]
    none = Remembered(make)
    assert none(()) == none(()) == 3


def test_defaults_of_a_step_are_those_of_that_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        defaults = {"t": tf.placeholder(tf.string, []), "y": tf.placeholder(tf.int64, [])}
        found = tf.parse_example(
            [b"", b""], {key: tf.FixedLenFeature([], each.dtype, each) for key, each in defaults.items()}
        )
        for number, text in ((1, b"a"), (2, b"b"), (2, b"c")):
            values = session.run(found, {defaults["y"]: number, defaults["t"]: text})
            assert values["y"].tolist() == [number] * 2 and values["t"].tolist() == [text] * 2


def test_a_default_that_is_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(tf.constant([3], tf.int64))
        found = tf.parse_example([b""], {"y": tf.FixedLenFeature([1], tf.int64, variable)})["y"]
        session.run(variable.initializer)
        change = tf.assign_add(variable, [1])
        for expected in (3, 4, 5):
            assert session.run(found).tolist() == [[expected]]
            session.run(change)
