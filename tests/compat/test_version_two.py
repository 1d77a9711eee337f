"""`tensorflow.compat.v2` in graphs, with the signatures of TensorFlow 1.15.5 that its table lists."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import flowstone as tf1
from flowstone.compat import module_paths, version_two
from flowstone.compat.internals.util_tf_inspect import getfullargspec
from flowstone.compat.version_two import _signatures
from flowstone.compat.version_two.forms import GIVEN, OTHERS, REFUSED, RENAMED
from installed_programs import SOURCE

module_paths.register()
tf = version_two.namespace()


def found(name: str) -> object:
    """The object of a dotted name below compat.v2."""
    value: object = tf
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", sorted(_signatures()))
def test_ours_takes_the_arguments(name: str) -> None:
    """Each function of the table calls one of ours, which has the arguments that it is given."""
    function, signature = found(name), _signatures()[name]
    assert inspect.signature(function) == signature  # type: ignore[arg-type]
    assert getfullargspec(function).annotations == {}  # type: ignore[arg-type]
    module, _, leaf = OTHERS.get(name, name).rpartition(".")
    ours = getattr(importlib.import_module(f"flowstone.{module}".rstrip(".")), leaf)
    names = {RENAMED.get(name, {}).get(each, each) for each in signature.parameters} | GIVEN.get(
        name, {}
    ).keys()
    assert names <= set(inspect.signature(ours).parameters)


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_other_objects_are_there(name: str) -> None:
    if OTHERS[name].startswith("keras."):
        pytest.importorskip("keras")
    assert found(name) is not None


def test_values() -> None:
    x = np.array([[1.0, -2.0, 3.0], [4.0, 0.0, -1.0]], np.float32)
    with tf1.Graph().as_default(), tf1.Session() as session:
        table = [np.array([[i], [i + 10.0]], np.float32) for i in range(2)]  # two parts, by div: 0 1, 2 3
        results = {
            "where": (tf.where([[True], [False]], x, 0.0), np.where([[True], [False]], x, 0)),
            "argmax": (tf.argmax(x, 1, tf.int32), x.argmax(1)),
            "sum": (tf.reduce_sum(x, 1, True), x.sum(1, keepdims=True)),
            "transpose": (tf.transpose(x, [1, 0], False), x.T),
            "gather": (tf.gather(x, [1], None, 1), x[:, [1]]),
            "zeros_like": (tf.zeros_like(input=x), np.zeros_like(x)),
            "div": (tf.nn.embedding_lookup(table, [0, 1, 2, 3]), [[0], [10], [1], [11]]),
            "cond": (tf.cond(tf.constant(True), lambda: [tf.constant(1)], lambda: [tf.constant(2)])[0], 1),
            "loop": (tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)])[0], 3),
            "concat": (tf.concat([x, x], 0), np.concatenate([x, x])),
            "cross entropy": (
                tf.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], [[2.0, 2.0]]),
                [np.log(2)],
            ),
            "kept": (tf.nn.dropout(x, 0.0), x),
            "shape": (tf.shape(x, tf.int64), [2, 3]),
        }
        for name, (result, expected) in results.items():
            np.testing.assert_allclose(session.run(result), expected, rtol=1e-6, err_msg=name)
        assert tf.shape(x, tf.int64).dtype == tf.int64


def test_variables_are_resources() -> None:
    with tf1.Graph().as_default(), tf1.Session() as session:
        variable = tf.Variable([1.0, 2.0], trainable=False, name="v", dtype=tf.float64)
        assert isinstance(variable, tf.Variable) and not isinstance(tf.constant(1), tf.Variable)
        assert issubclass(type(variable), tf.Variable)
        assert (variable.op.type, variable.name, tf1.trainable_variables()) == ("VarHandleOp", "v:0", [])
        session.run(variable.initializer)
        assert session.run(variable).tolist() == [1.0, 2.0]
        drawn = session.run(tf.random_normal_initializer(seed=1)([1000]))
        assert 0.04 < drawn.std() < 0.06


def test_refusals() -> None:
    for name, instead in REFUSED.items():
        with pytest.raises(AttributeError, match=f"use {instead[:20]}"):
            found(name)
    with pytest.raises(AttributeError):
        found("nonsense")
    with pytest.raises(TypeError, match="keep_dims"):
        tf.reduce_sum([1.0], keep_dims=True)


def test_it_is_imported_as_tensorflows(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import tensorflow as tf1\nimport tensorflow.compat.v2 as tf\nfrom tensorflow.compat.v2 import nn\n"
        "import tensorflow.compat.v2.linalg as linalg\n"
        "assert tf is tf1.compat.v2 and tf.compat.v1 is tf1 and tf.nn is nn and tf.linalg is linalg\n"
        "assert 'reduce_sum' in dir(tf) and tf.math.reduce_sum is not tf1.math.reduce_sum\n"
    )
    command = [sys.executable, "-m", "flowstone", "run", str(program)]
    environment = {
        "PYTHONPATH": os.pathsep.join([SOURCE, *sys.path]),
        "PATH": "",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    subprocess.run(command, check=True, env=environment, timeout=120)
