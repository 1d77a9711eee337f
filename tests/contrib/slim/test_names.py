"""How programs import slim."""

from __future__ import annotations

import subprocess
import sys

import pytest

from flowstone.contrib import framework, layers, slim

FORMS = """
from flowstone.compat import tensorflow_name as compat
compat.install()
import tensorflow as tf
import tensorflow.contrib.slim as slim
import tensorflow.contrib.slim.nets
from tensorflow.contrib.slim.nets import resnet_v1
from tensorflow.contrib.slim.python.slim import learning
from tensorflow.contrib.slim.python.slim.data import tfexample_decoder
from tensorflow.contrib.slim.python.slim.nets import inception, resnet_utils
from tensorflow.contrib.slim.python.slim.nets.inception_v3 import inception_v3_base
from tensorflow.contrib.training.python.training import evaluation, hparam, hparam_pb2
assert slim is tf.contrib.slim
assert tf.contrib.slim.nets.resnet_v1 is resnet_v1
assert tfexample_decoder.TFExampleDecoder is slim.tfexample_decoder.TFExampleDecoder
assert inception.inception_v3_base is inception_v3_base
assert learning.train is slim.learning.train
assert evaluation.evaluate_once is tf.contrib.training.evaluate_once
assert hparam.HParams is tf.contrib.training.HParams
assert hparam_pb2.HParamDef.__name__ == "HParamDef"
assert tf.contrib.training.bucket is tf.contrib.training.python.training.bucket_ops.bucket
assert callable(learning._wait_for_step) and callable(resnet_utils.subsample)
"""


def test_forms_of_imports() -> None:
    subprocess.run([sys.executable, "-c", FORMS], check=True)


@pytest.mark.parametrize("name", ["conv2d", "batch_norm", "repeat", "stack", "l2_regularizer", "flatten"])
def test_layers(name: str) -> None:
    assert getattr(slim, name) is getattr(layers, name)


@pytest.mark.parametrize(
    "name", ["arg_scope", "get_model_variables", "assign_from_checkpoint_fn", "variable"]
)
def test_variables_and_scopes(name: str) -> None:
    assert getattr(slim, name) is getattr(framework, name)


def test_modules_of_layers() -> None:
    assert slim.initializers.xavier_initializer is layers.xavier_initializer
    assert slim.regularizers.l2_regularizer is layers.l2_regularizer
    assert callable(slim.utils.collect_named_outputs)


def test_its_own_modules_come_first() -> None:
    """`tf.contrib.layers` has modules of these names, too."""
    assert layers.__name__ == "flowstone.contrib.layers"
    assert callable(slim.summaries.add_scalar_summary)
    assert slim.python.slim.queues.QueueRunners is slim.queues.QueueRunners
    assert slim.python.slim.data.tfexample_decoder.Image is slim.tfexample_decoder.Image


def test_no_such_name() -> None:
    assert {"learning", "nets", "conv2d", "arg_scope", "losses"} <= set(dir(slim))
    with pytest.raises(AttributeError, match=r"slim\.nonsense"):
        _ = slim.nonsense
