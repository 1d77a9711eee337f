"""The modules ``gen_…_ops`` in a program that imports TensorFlow: each has a function for every op."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import flowstone as tf
from flowstone.framework.declarations import generated_ops

PROGRAM = """
from flowstone.compat.tensorflow_name import install
install()
import tensorflow as tf
from tensorflow.python.ops import gen_array_ops, gen_nn_ops
from tensorflow.python.ops.gen_math_ops import mat_mul
x = gen_nn_ops._relu_grad([1.0, 2.0], [-1.0, 3.0], name="slope")
first, second = gen_array_ops._unpack([[1, 2], [3, 4]], 2, axis=1)
with tf.Session() as session:
    print(x.name, session.run(x).tolist(), session.run(second).tolist(), mat_mul([[2.0]], [[3.0]]).shape)
"""


def test_programs_import_them() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert result.stdout == "slope:0 [0.0, 2.0] [2, 4] (1, 1)\n", result.stderr


def test_a_name_that_is_no_op() -> None:
    with pytest.raises(AttributeError, match="no op has the function 'nonsense'"):
        generated_ops.nonsense  # noqa: B018
    assert {"mat_mul", "relu_grad"} <= set(dir(generated_ops))
    assert generated_ops.mat_mul is generated_ops._mat_mul


def test_required_attributes() -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match=r"unpack\(\): missing .* 'num'"):
        generated_ops.unpack([[1, 2]])


def test_an_ops_own_name_and_its_eager_function() -> None:
    assert generated_ops.MatMul is generated_ops.mat_mul
    assert list(inspect.signature(generated_ops.abs_eager_fallback).parameters) == ["x", "name", "ctx"]
    with pytest.raises(NotImplementedError, match="use abs, which adds a node to the graph"):
        generated_ops.abs_eager_fallback([1.0])
    for name in ("nonsense_eager_fallback", "Nonsense"):
        with pytest.raises(AttributeError, match="no op has the function"):
            getattr(generated_ops, name)
