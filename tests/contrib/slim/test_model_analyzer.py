"""Sizes of models; the text is TensorFlow 1.15.5's."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.contrib.slim import model_analyzer


def test_variables(capsys: pytest.CaptureFixture[str]) -> None:
    a = tf.get_variable("a", [3, 4])
    b = tf.get_variable("b", [5], dtype=tf.int64, trainable=False)
    assert model_analyzer.analyze_vars([a, b], print_info=True) == (17, 88)
    assert capsys.readouterr().out == (
        "---------\nVariables: name (type shape) [size]\n---------\n"
        "a:0 (float32_ref 3x4) [12, bytes: 48]\n"
        "b:0 (int64_ref 5) [5, bytes: 40]\n"
        "Total size of variables: 17\nTotal bytes of variables: 88\n"
    )


def test_operations(capsys: pytest.CaptureFixture[str]) -> None:
    tf.zeros([2], name="c")
    tf.placeholder(tf.float32, [None, 3], name="ph")
    assert model_analyzer.analyze_ops(tf.get_default_graph(), print_info=True) == 2
    assert capsys.readouterr().out == (
        "---------\nOperations: name -> (type shapes) [size]\n---------\n"
        "c \t-> (float32 2) [2]\nph \t-> (float32 ?x3) [0]\n"
    )


def test_a_description() -> None:
    assert model_analyzer.tensor_description(tf.zeros([])) == "(float32 )"
    assert model_analyzer.tensor_description(tf.zeros([2, 3], tf.int32)) == "(int32 2x3)"
