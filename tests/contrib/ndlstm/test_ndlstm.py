"""`tf.contrib.ndlstm`: names, variables and values of TensorFlow 1.4.1, and errors."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.contrib.ndlstm.lstm_programs import answers

import flowstone as tf
from flowstone.contrib.ndlstm import lstm1d, lstm2d, misc

GOLDEN = Path(__file__).parents[2] / "golden" / "contrib" / "ndlstm.json"


@pytest.fixture(scope="module")
def found():
    return answers(tf, lstm1d, lstm2d, misc)


@pytest.mark.parametrize("case", json.loads(GOLDEN.read_text()).items(), ids=lambda case: case[0])
def test_program(case, found):
    name, (tensor_name, variables, shape, values) = case
    assert found[name][:3] == [tensor_name, variables, shape]
    np.testing.assert_allclose(found[name][3], values, atol=2e-4)


def test_labels_as_planes_and_masks():
    ndlstm = tf.contrib.ndlstm
    with tf.Graph().as_default(), tf.Session() as session:
        planes = ndlstm.one_hot_planes(tf.constant([1, 2]), 3)
        mask = ndlstm.one_hot_mask(tf.constant([[[0], [1]], [[2], [1]]]), 3)
        assert session.run(planes).tolist() == [[[[0, 1, 0]]], [[[0, 0, 1]]]]
        assert session.run(mask).tolist() == [[[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 1, 0]]]
        with pytest.raises(ValueError):
            ndlstm.one_hot_mask(tf.zeros([2, 2, 2], tf.int32), 3)
        with pytest.raises(ValueError):
            ndlstm.one_hot_planes(tf.zeros([2, 1], tf.int32), 3)


def test_shapes_are_known():
    with tf.Graph().as_default(), pytest.raises(ValueError):
        tf.contrib.ndlstm.ndlstm_base(tf.placeholder(tf.float32, [None, 2, 3]), 4)
    with tf.Graph().as_default(), pytest.raises(ValueError):
        tf.contrib.ndlstm.separable_lstm(tf.zeros([2, 2, 3]), 4)
