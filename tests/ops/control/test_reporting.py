"""Values as text, Print and the numeric check of a whole graph."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.control.reporting import summary

pytestmark = pytest.mark.usefixtures("graph")


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [  # the oracle's words
        (np.float32([1, 2, 3, 4, 5]), 3, "1 2 3..."),
        (np.int32([[1, 2, 3], [4, 5, 6]]), 2, "[1 2...]..."),
        (np.arange(12.0).reshape(2, 2, 3), 7, "[[0 1 2][3 4 5]][[6...]]..."),
        (np.arange(12.0).reshape(2, 2, 3), 3, "[[0 1 2]]..."),
        (np.float32([[1, 2], [3, 4]]), 4, "[1 2][3 4]"),
        (np.ones((2, 2, 3)), -1, "[[1 1 1][1 1 1]][[1 1 1][1 1 1]]"),
        (np.float32([]), 3, ""),
        (np.bool_([True, False]), 3, "1 0"),
        (np.int8(3), 3, "3"),
        (np.float32(1) / np.float32(3), 3, "0.333333343"),
        (np.float64(1) / 3, 3, "0.33333333333333331"),
        (np.float32(123456789.0), 3, "123456792"),
        (np.float32(1234567.0), 3, "1234567"),
        (np.float32(1e6), 3, "1e+06"),
        (np.float32(1e-10), 3, "1e-10"),
        (np.float32("nan"), 3, "nan"),
        (np.float32("-inf"), 3, "-inf"),
        (np.float16(0.1), 3, "0.0999755859"),
        (np.float32(-0.0), 3, "-0"),
        (np.array([b"a", b"b", b"c"], object), 2, "a b..."),
        (np.complex64(1 + 2j), 3, "?"),
    ],
)
def test_summaries(value, limit, text):
    assert summary(value, limit) == text


def test_print_is_the_identity_and_counts(capfd):
    x = tf.placeholder(tf.float32, [2])
    y = tf.Print(x, [x, tf.constant([7, 8, 9, 10])], message="values: ", first_n=2, summarize=2)
    assert y.name == "Print:0"
    session = tf.Session()
    for _ in range(3):
        np.testing.assert_array_equal(session.run(y, {x: [1, 2]}), [1, 2])
    assert capfd.readouterr().err == "values: [1 2][7 8...]\n" * 2
    (dx,) = tf.gradients(y * 3.0, x)
    np.testing.assert_array_equal(session.run(dx, {x: [1, 2]}), [3, 3])


def test_print_prints_only_where_it_is_needed(capfd):
    x = tf.placeholder(tf.float32, [])
    tf.Print(x, [x])
    tf.Session().run(x * 2.0, {x: 1.0})
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_strings_go_to_a_stream(capfd, stream):
    tf.Session().run(F.PrintV2(tf.constant("héllo"), output_stream=stream, end="!"))
    assert getattr(capfd.readouterr(), stream[3:]) == "héllo!"


def test_strings_are_appended_to_a_file(tmp_path):
    path = tmp_path / "words"
    op = F.PrintV2(tf.constant("a"), output_stream=f"file://{path}")
    for _ in range(2):
        tf.Session().run(op)
    assert path.read_text() == "a\na\n"


def test_numeric_checks_of_a_whole_graph(graph):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.log(x, name="y")
    tf.cast(y, tf.int32)
    check = tf.add_check_numerics_ops()
    kinds = [op.type for op in graph.get_operations()].count("CheckNumerics")
    assert kinds == 2 and check.type == "NoOp"
    session = tf.Session()
    session.run(check, {x: [1, 2]})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"y:0 : Tensor had Inf|y:0 : Tensor had NaN"):
        session.run(check, {x: [1, 0]})


def test_numeric_checks_do_not_reach_into_conditionals():
    x = tf.placeholder(tf.float32, [2])
    tf.cond(tf.placeholder(tf.bool, []), lambda: x * 2.0, lambda: x)
    with pytest.raises(ValueError, match="not compatible with TensorFlow control flow"):
        tf.add_check_numerics_ops()
