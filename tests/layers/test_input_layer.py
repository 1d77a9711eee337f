"""Inputs as layers, the calls that layers remember, and maxout."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import flowstone as tf
from flowstone.layers.input_layer import InputLayer
from flowstone.layers.maxout import MaxOut, maxout

pytestmark = pytest.mark.usefixtures("graph")


def test_an_input_is_a_placeholder_of_batches() -> None:
    x = tf.layers.Input([3, None], dtype=tf.int64)
    assert (x.op.type, x.op.name, x.dtype) == ("Placeholder", "input_1", tf.int64)
    assert x.shape.as_list() == [None, 3, None]
    assert tf.layers.Input((2,), batch_size=5, name="x").shape.as_list() == [5, 2]
    assert isinstance(tf.layers.Input([4], sparse=True), tf.SparseTensor)


def test_an_input_may_be_a_tensor() -> None:
    x = tf.ones([2, 3])
    assert tf.layers.Input(tensor=x) is x
    layer = InputLayer(input_tensor=x)
    assert layer.output is x
    assert (layer.is_placeholder, layer.dtype) == (False, "float32")
    with pytest.raises(ValueError, match="either a `shape` or a `tensor`"):
        tf.layers.Input()


def test_layers_know_where_their_inputs_come_from() -> None:
    first, second = tf.layers.Dense(3), tf.layers.Dense(2)
    x = tf.layers.Input([4])
    y = first(x)
    second(y)
    second(y + 0.0)
    (node,) = first.inbound_nodes
    assert node.outbound_layer is first
    assert (node.input_tensors, node.output_tensors) == ([x], [y])
    assert node.input_shapes == (None, 4)
    assert isinstance(node.inbound_layers[0], InputLayer)
    assert first.outbound_nodes == second.inbound_nodes[:1]
    assert second.inbound_nodes[0].inbound_layers == [first]
    assert second.inbound_nodes[1].inbound_layers == []
    assert second.outbound_nodes == []


def test_calls_do_not_keep_graphs() -> None:
    def build() -> weakref.ref[tf.Graph]:
        with tf.Graph().as_default() as g:
            tf.layers.dense(tf.layers.dense(tf.ones([2, 3]), 4), 5)
            tf.layers.Input([4])
        return weakref.ref(g)

    found = build()
    gc.collect()
    assert found() is None


def test_maxout_takes_the_largest_of_groups() -> None:
    x = tf.placeholder_with_default(np.array([[1, 5, 2, 0, 7, 3]], "f"), [None, 6])
    y = maxout(x, 2)
    assert y.shape.as_list() == [None, 2]
    z = MaxOut(3, axis=0)(tf.constant([[1.0, 2.0], [3.0, 0.0], [4.0, 5.0]]))
    with tf.Session() as session:
        assert session.run(y).tolist() == [[5, 7]]
        assert session.run(z).tolist() == [[1, 2], [3, 0], [4, 5]]
    with pytest.raises(ValueError, match=r"number of features\(6\) is not a multiple of num_units\(4\)"):
        maxout(x, 4)
