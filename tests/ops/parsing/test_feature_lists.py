"""Machine code and protobuf give the same lists of SequenceExamples, and the same errors."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.ops.parsing.damage import damaged

import flowstone as tf
from flowstone.framework import errors, flags
from flowstone.ops.parsing.feature_lists import FeatureLists
from flowstone.ops.parsing.feature_outputs import Features, batch_outputs
from flowstone.ops.parsing.feature_tensors import Rows
from flowstone.ops.parsing.features import parse_sequence_example
from flowstone.ops.parsing.layouts import BYTES, FLOATS, INTEGERS

KINDS = [(b"f", FLOATS), (b"i", INTEGERS), (b"b", BYTES), (b"absent", BYTES)]


def message(draw: random.Random) -> bytes:
    example = tf.train.SequenceExample()
    example.context.feature["c"].int64_list.value.extend([1, draw.randrange(9)])
    lists = example.feature_lists.feature_list
    for _ in range(draw.randrange(4)):
        lists["f"].feature.add().float_list.value.extend([draw.random()] * draw.randrange(3))
        lists["i"].feature.add().int64_list.value.extend([draw.choice([-1, 5, 2**40])] * draw.randrange(20))
        lists["b"].feature.add().bytes_list.value.extend([b"w" * draw.randrange(4)] * draw.randrange(3))
        lists["unused"].feature.add().int64_list.value.append(1)
    if draw.random() < 0.3:
        lists["f"].feature.add()  # of no kind
        lists["b"].SetInParent()
    return example.SerializeToString()


def parsed(messages: Any, is_optional: bool = True) -> Any:
    """All lists, flat, or an error's class and text, after the contexts as in the ops."""
    try:
        batch_outputs(messages, Features([], []), Rows())
        lists = FeatureLists(messages, KINDS)
        found = [lists.lists(key, kind, Rows(), is_optional) for key, kind in KINDS]
    except errors.OpError as error:
        return type(error), str(error)
    arrays = [array for steps, column in found for array in (steps, *column)]
    return [(each.dtype, each.tolist()) for each in arrays]


def both(monkeypatch: pytest.MonkeyPatch, function: Any) -> Any:
    """What it gives by machine code and by protobuf, which must be the same."""
    monkeypatch.setattr(flags, "NATIVE", 2)
    found = function()
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert found == function()
    return found


@pytest.mark.parametrize("count", [0, 1, 40])
def test_lists(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(count)
    messages = np.array([message(draw) for _ in range(count)], object)
    assert isinstance(both(monkeypatch, lambda: parsed(messages)), list)


def test_machine_code_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    messages = np.array([message(random.Random(i)) for i in range(5)], object)
    assert FeatureLists(messages, KINDS)._messages == []
    for kinds in ([*KINDS, (b"f", BYTES)], [(b"\xff", BYTES)], [(b"f", BYTES)]):
        assert len(FeatureLists(messages, kinds)._messages) == 5


def test_lists_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = np.array([message(random.Random(0)), b""], object)
    error, text = both(monkeypatch, lambda: parsed(messages, is_optional=False))
    assert error is errors.InvalidArgumentError and "is required but could not be found" in text


def test_the_last_list_of_a_key_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(5)
    messages = np.array([message(draw) + message(draw)], object)
    assert both(monkeypatch, lambda: parsed(messages))[0][1] == [3]


def test_damaged_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(11)
    errors_seen = 0
    for _ in range(600):
        messages = [message(draw) for _ in range(3)]
        messages[1] = damaged(messages[1], draw)
        array = np.array(messages, object)
        errors_seen += isinstance(both(monkeypatch, lambda array=array: parsed(array)), tuple)
    assert 50 < errors_seen < 600


CONTEXT = {"c": tf.FixedLenFeature([2], tf.int64)}
LISTS = {
    "b": tf.VarLenFeature(tf.string),
    "i": tf.VarLenFeature(tf.int64),
    "two": tf.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
}


def sequence(steps: int) -> bytes:
    example = tf.train.SequenceExample.FromString(message(random.Random(steps)))
    for i in range(steps):
        example.feature_lists.feature_list["two"].feature.add().float_list.value.extend([i, i + 0.5])
    return example.SerializeToString()


def test_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [sequence(n) for n in (2, 0, 3, 1)]

    def run() -> Any:
        with tf.Graph().as_default(), tf.Session() as session:
            one = tf.parse_single_sequence_example(messages[2], CONTEXT, LISTS)
            tensors = [
                x for part in (*one, *parse_sequence_example(messages, CONTEXT, LISTS)) for x in part.values()
            ]
            values = session.run(tensors)
        return [
            np.asarray(part).tolist()
            for each in values
            for part in (each if isinstance(each, tuple) else [each])
        ]

    found = both(monkeypatch, run)
    assert [[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]] in found and [2, 0, 3, 1] in found
