"""Names of TensorFlow in the text of programs."""

from __future__ import annotations

import pytest

from flowstone.compat.program_names import Use, uses_of

PROGRAM = """
import numpy as np
import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib import layers as L, rnn
from tensorflow.python.ops import *

FLAGS = tf.app.flags.FLAGS
nn = tf.nn


def model(x, *rest):
    y = nn.relu(slim.conv2d(x, 3, [1, 1], scope="c"))
    y = L.flatten(y)
    tf.concat(*rest)
    np.zeros(3)
    return tf.layers.dense(y, units=4).shape.ndims
"""


def test_what_names_stand_for() -> None:
    uses = uses_of(PROGRAM)
    assert [use.line for use in uses] == sorted(use.line for use in uses)
    found = {use.name: use for use in uses}
    assert set(found) == {
        "tensorflow",
        "tensorflow.contrib",
        "tensorflow.contrib.slim",
        "tensorflow.contrib.layers",
        "tensorflow.contrib.rnn",
        "tensorflow.python.ops",
        "tensorflow.app.flags.FLAGS",
        "tensorflow.nn",
        "tensorflow.nn.relu",
        "tensorflow.contrib.slim.conv2d",
        "tensorflow.contrib.layers.flatten",
        "tensorflow.concat",
        "tensorflow.layers.dense",
    }
    assert found["tensorflow.contrib.slim"].is_import
    assert found["tensorflow.contrib.slim.conv2d"] == Use(
        "tensorflow.contrib.slim.conv2d", 13, positional=3, keywords=("scope",)
    )
    assert found["tensorflow.concat"].positional is None
    assert found["tensorflow.layers.dense"].keywords == ("units",)


def test_other_packages_are_not_looked_at() -> None:
    assert (
        uses_of("import tensorflow_probability as tfp\nimport os\ntfp.x()\nos.path\nfrom . import tensorflow")
        == []
    )


def test_python_2() -> None:
    with pytest.raises(SyntaxError):
        uses_of("print 'x'")
