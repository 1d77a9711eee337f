"""The public functions of strings build what TensorFlow 1.15 builds, and give what it gives."""

from __future__ import annotations

import json
import pathlib

import pytest

import flowstone as tf
import string_programs
from flowstone.ops.strings.hash_buckets import fingerprint

GOLDEN = json.loads((pathlib.Path(__file__).parents[2] / "golden" / "strings" / "programs.json").read_text())


@pytest.mark.parametrize("name", sorted({**string_programs.NAMED, **string_programs.VALUES}))
def test_programs(name: str) -> None:
    program = {**string_programs.NAMED, **string_programs.VALUES}[name]
    found, expected = string_programs.evaluate(tf, program), GOLDEN["programs"][name]
    assert found["values"] == expected["values"]
    if "nodes" in expected:
        assert found["nodes"] == expected["nodes"]
    for shape, known in zip(found["shapes"], expected["shapes"], strict=True):
        if known is not None:
            assert shape is not None and all(mine in (None, size) for mine, size in zip(shape, known))


@pytest.mark.parametrize("name", sorted(string_programs.MISTAKES))
def test_mistakes(name: str) -> None:
    assert string_programs.mistake(tf, string_programs.MISTAKES[name]) == GOLDEN["mistakes"][name]


def test_several_strings_have_ragged_parts() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        text = tf.constant([["a\u00e4"], ["b"]])
        fetches = [
            *tf.strings.unicode_split_with_offsets(["ab", "c"], "UTF-8"),
            tf.strings.bytes_split(["ab", ""]),
        ]
        chars, offsets, parts = session.run(fetches)
        points = session.run(tf.strings.unicode_decode(text, "UTF-8"))
    assert [chars.to_list(), offsets.to_list()] == [[[b"a", b"b"], [b"c"]], [[0, 1], [0]]]
    assert [parts.to_list(), points.to_list()] == [[[b"a", b"b"], []], [[[97, 228]], [[98]]]]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="result_type must be"):
        tf.strings.split(["a"], result_type="list")


def test_a_fingerprint_is_the_same_in_all_types_of_equal_bytes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        words, numbers = fingerprint(["\1\0\0\0", "\2\0\0\0"]), tf.fingerprint([[1], [2]])
        assert words.shape.as_list() == numbers.shape.as_list() == [2, 8]
        first, second = session.run([words, numbers])
    assert first.tolist() == second.tolist() and first[0].tolist() != first[1].tolist()


def test_joined_strings_have_the_shape_that_one_tells() -> None:
    known, unknown = tf.placeholder(tf.string, [3, None]), tf.placeholder(tf.string)
    assert tf.strings.join([known, unknown]).shape.as_list() == [3, None]
    assert tf.strings.join([unknown, "a"]).shape.ndims is None
    assert tf.strings.join(["a", "b"]).shape.as_list() == []


@pytest.mark.parametrize("skip_empty", [False, True])
def test_few_strings_are_split_as_many_are(skip_empty: bool) -> None:
    """Each has its own way; empty strings, and parts at both ends."""
    texts = ["a b", "", " c  d ", "e", " "] * 60
    with tf.Graph().as_default(), tf.Session() as session:
        strings = tf.placeholder(tf.string, [None])
        found = tf.string_split(strings, skip_empty=skip_empty)
        few, many = session.run(found, {strings: texts[:5]}), session.run(found, {strings: texts})
    size = len(few.values)
    assert many.values[:size].tolist() == few.values.tolist() and len(many.values) == 60 * size
    assert many.indices[:size].tolist() == few.indices.tolist()
    assert (many.dense_shape.tolist(), few.dense_shape.tolist()) == (
        [300, *few.dense_shape[1:]],
        [5, *many.dense_shape[1:]],
    )


def test_strings_of_any_rank_are_split() -> None:
    """As in TensorFlow 1.15: a matrix's parts have two ragged dimensions, one string's are a vector."""
    with tf.Graph().as_default(), tf.Session() as session:
        rows = [["a b", "c"], ["d e f", ""]]
        sparse, ragged = session.run(
            [tf.strings.split(rows), tf.strings.split(rows, result_type="RaggedTensor")]
        )
        one = session.run(
            [tf.strings.split("a b", result_type="RaggedTensor"), tf.strings.split("a b").values]
        )
    assert sparse.dense_shape.tolist() == [2, 2, 3] and sparse.values.tolist() == list(b"a b c d e f".split())
    assert sparse.indices.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 1], [1, 0, 2]]
    assert ragged.to_list() == [[[b"a", b"b"], [b"c"]], [[b"d", b"e", b"f"], []]]
    assert [each.tolist() for each in one] == [[b"a", b"b"]] * 2


def test_ngrams_of_ragged_strings() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        rows = tf.ragged.constant([["a", "b", "c"], [], ["d"]])
        deep = tf.ragged.constant([[["a", "b", "c"], []], [["d"]]])
        found = session.run(
            [
                tf.strings.ngrams(rows, [1, 2]),
                tf.strings.ngrams(rows, 2, pad_values=("<", ">"), preserve_short_sequences=True),
                tf.strings.ngrams(deep, 2),
            ]
        )
    assert found[0].to_list() == [[b"a", b"b", b"c", b"a b", b"b c"], [], [b"d"]]
    assert found[1].to_list() == [[b"< a", b"a b", b"b c", b"c >"], [b"< >"], [b"< d", b"d >"]]
    assert found[2].to_list() == [[[b"a b", b"b c"], []], [[]]]


def test_texts_are_gathered_along_an_axis_of_the_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        axis = tf.placeholder(tf.int32, [])
        found = tf.gather([["a", "b"], ["c", "d"]], [1, 0, 1], axis=axis)
        assert session.run(found, {axis: -1}).tolist() == [[b"b", b"a", b"b"], [b"d", b"c", b"d"]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="axis"):
            session.run(found, {axis: 2})


def test_the_shape_of_a_part_follows_from_either_place() -> None:
    with tf.Graph().as_default():
        for known in (0, 1):
            places = [tf.placeholder(tf.int32, [] if i == known else None) for i in range(2)]
            assert tf.strings.substr(["abc", "de"], *places).shape.as_list() == [2]
