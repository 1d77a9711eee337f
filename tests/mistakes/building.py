"""Mistakes that fail while the graph is built; a test makes them here, the golden generator in TensorFlow.

`BUILDING` maps a name to a function of the package `tf`, and to words that the message holds here and there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import f

Building = tuple[Callable[[Any], Any], str]


def _twice(tf: Any, shape: Any = (2,), dtype: Any = None, **keywords: Any) -> Any:
    tf.get_variable("v", [2])
    return tf.get_variable("v", shape, dtype, **keywords)


def _reused(tf: Any, shape: Any, dtype: Any = None) -> Any:
    tf.get_variable("v", [2])
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        return tf.get_variable("v", shape, dtype)


def _reused_missing(tf: Any) -> Any:
    with tf.variable_scope("a", reuse=True):
        return tf.get_variable("v", [2])


def _other_graphs(tf: Any) -> Any:
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    return other + tf.constant(2.0)


def _finalized(tf: Any) -> Any:
    tf.get_default_graph().finalize()
    return tf.constant(1)


BUILDING_SHAPES: dict[str, Building] = {
    "matmul, inner sizes": (
        lambda tf: tf.matmul(tf.zeros([2, 3]), tf.zeros([4, 2])),
        "Dimensions equal 3 4 MatMul",
    ),
    "matmul, vectors": (lambda tf: tf.matmul(tf.zeros([3]), tf.zeros([3])), "rank 2 rank 1 MatMul"),
    "matmul, batches": (lambda tf: tf.matmul(tf.zeros([2, 2, 3]), tf.zeros([3, 3, 2])), "2 3 BatchMatMul"),
    "add": (lambda tf: tf.zeros([2, 3]) + tf.zeros([4, 3]), "Dimensions equal 2 4"),
    "add_n": (lambda tf: tf.add_n([tf.zeros([2]), tf.zeros([3])]), "2 3 AddN"),
    "add_n of nothing": (lambda tf: tf.add_n([]), "at least one"),
    "concat": (lambda tf: tf.concat([tf.zeros([2, 3]), tf.zeros([2, 4])], 0), "3 4 ConcatV2"),
    "concat, ranks": (lambda tf: tf.concat([tf.zeros([2, 3]), tf.zeros([2])], 0), "rank 2 1 ConcatV2"),
    "concat, axis": (lambda tf: tf.concat([tf.zeros([2]), tf.zeros([2])], 1), "1 rank"),
    "stack": (lambda tf: tf.stack([tf.zeros([2]), tf.zeros([3])]), "Shapes equal 2 3"),
    "stack, axis": (lambda tf: tf.stack([tf.zeros([2]), tf.zeros([2])], axis=3), "axis 3 [-2, 2)"),
    "unstack, axis": (lambda tf: tf.unstack(tf.zeros([2]), axis=3), "axis 3 [-1, 1)"),
    "unstack, unknown size": (lambda tf: tf.unstack(tf.placeholder(tf.float32, [None])), "Cannot infer num"),
    "split, uneven": (lambda tf: tf.split(tf.zeros([5, 2]), 2), "evenly 2 5"),
    "split, sizes": (lambda tf: tf.split(tf.zeros([5, 2]), [2, 2]), "5 [2,2]"),
    "conv2d, channels": (
        lambda tf: tf.nn.conv2d(
            tf.zeros([1, 5, 5, 3]), tf.zeros([3, 3, 2, 4]), strides=[1, 1, 1, 1], padding="SAME"
        ),
        "depth 3 2 Conv2D",
    ),
    "conv2d, rank": (
        lambda tf: tf.nn.conv2d(
            tf.zeros([5, 5, 3]), tf.zeros([3, 3, 3, 4]), strides=[1, 1, 1, 1], padding="SAME"
        ),
        "rank 4 3",
    ),
    "conv2d, larger window": (
        lambda tf: tf.nn.conv2d(
            tf.zeros([1, 2, 2, 3]), tf.zeros([3, 3, 3, 4]), strides=[1, 1, 1, 1], padding="VALID"
        ),
        "Negative dimension size 3 2",
    ),
    "max_pool, larger window": (
        lambda tf: tf.nn.max_pool(tf.zeros([1, 2, 2, 3]), [1, 3, 3, 1], [1, 1, 1, 1], "VALID"),
        "Negative dimension size 3 2",
    ),
    "bias_add": (lambda tf: tf.nn.bias_add(tf.zeros([2, 3]), tf.zeros([4])), "3 4 BiasAdd"),
    "reshape, elements": (lambda tf: tf.reshape(tf.zeros([2, 3]), [4, 2]), "Cannot reshape 6 elements 8"),
    "reshape, indivisible": (lambda tf: tf.reshape(tf.zeros([2, 3]), [4, -1]), "divisible 4 6"),
    "reshape to a number": (lambda tf: tf.reshape(tf.zeros([2, 3]), 6), "rank 1 Reshape"),
    "tile by a number": (lambda tf: tf.tile(tf.zeros([3]), 2), "rank 1 Tile"),
    "fill of a number": (lambda tf: tf.fill(3, 0.0), "rank 1 Fill"),
    "fill with a vector": (lambda tf: tf.fill([2], tf.constant([0.1])), "rank 0 Fill"),
    "gather by a vector": (lambda tf: tf.gather(f(3, 2), [0], axis=tf.placeholder(tf.int32, [1])), "rank 0"),
    "concat by a vector": (
        lambda tf: tf.concat([f(2, 3), f(2, 3)], tf.placeholder(tf.int32, [1])),
        "rank 0 ConcatV2",
    ),
    "multinomial of a vector": (
        lambda tf: tf.multinomial(f(2, 3), tf.placeholder(tf.int32, [1])),
        "rank 0 Multinomial",
    ),
    "batches of a vector": (
        lambda tf: tf.data.make_initializable_iterator(
            tf.data.Dataset.range(5).batch(np.array([2], np.int64))
        ),
        "rank 0",
    ),
    "scatter_nd into nothing": (
        lambda tf: tf.scatter_nd(tf.placeholder(tf.int32), f(1, 2), [0, 2]),
        "Indices and updates specified for empty",
    ),
    "slice from a number": (lambda tf: tf.slice(tf.zeros([3]), 0, [1]), "rank 1 Slice"),
    "strided_slice from a number": (
        lambda tf: tf.strided_slice(tf.zeros([3]), 0, [1], [1]),
        "rank 1 StridedSlice",
    ),
    "one_hot, vector of depths": (lambda tf: tf.one_hot([1], tf.constant([3])), "rank"),
    "top_k, vector of counts": (lambda tf: tf.nn.top_k(tf.zeros([3]), [1]), "rank TopKV2"),
    "unique along no axis": (lambda tf: tf.raw_ops.UniqueV2(x=tf.zeros([3, 3]), axis=[9]), ""),
    "transpose, length": (lambda tf: tf.transpose(tf.zeros([2, 3]), [0, 1, 2]), "3 2"),
    "transpose, axis": (lambda tf: tf.transpose(tf.zeros([2, 3]), [0, 2]), "perm 2 rank"),
    "squeeze": (lambda tf: tf.squeeze(tf.zeros([2, 3]), [1]), "Can not squeeze dim[1] 1 3"),
    "expand_dims, axis": (lambda tf: tf.expand_dims(tf.zeros([2]), 4), "4 [-2,"),
    "tile, multiples": (lambda tf: tf.tile(tf.zeros([2, 3]), [2]), "2 1 Tile"),
    "pad, rank": (lambda tf: tf.pad(tf.zeros([2, 3]), [[1, 1]]), "1 2 Pad"),
    "index, beyond": (lambda tf: tf.zeros([3])[5], "slice index 5 0 bounds"),
    "index, too many": (lambda tf: tf.zeros([3])[0, 0], "Index out of range"),
    "index, zero stride": (lambda tf: tf.zeros([3])[::0], "strides[0] non-zero"),
    "gather, axis": (lambda tf: tf.gather(tf.zeros([3]), [0], axis=2), "rank"),
    "reduce_sum, axis": (lambda tf: tf.reduce_sum(tf.zeros([2, 3]), axis=2), "reduction dimension 2 2"),
    "argmax, axis": (lambda tf: tf.argmax(tf.zeros([2, 3]), axis=5), "Dimension 5 [-2, 2)"),
    "broadcast_to": (lambda tf: tf.broadcast_to(tf.zeros([3]), [4]), "3 4 BroadcastTo"),
    "einsum, sizes": (lambda tf: tf.einsum("ij,jk->ik", tf.zeros([2, 3]), tf.zeros([4, 2])), "3 4"),
    "where, sizes": (lambda tf: tf.where([True, False], tf.zeros([2]), tf.zeros([3])), "2 3"),
    "softmax cross entropy": (
        lambda tf: tf.nn.softmax_cross_entropy_with_logits_v2(
            labels=tf.zeros([2, 3]), logits=tf.zeros([2, 4])
        ),
        "3 4",
    ),
    "sparse softmax cross entropy, ranks": (
        lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[[1], [2]], logits=tf.zeros([2, 4])),
        "rank equal 2 labels logits",
    ),
    "sigmoid cross entropy": (
        lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.zeros([2, 3]), logits=tf.zeros([2, 4])),
        "same shape (2, 4) (2, 3)",
    ),
    "assign": (lambda tf: tf.assign(tf.Variable(f(2)), f(3)), "2 3 Assign"),
    "set_shape": (lambda tf: tf.zeros([2]).set_shape([3]), "[2] [3] Dimension"),
    "ensure_shape": (lambda tf: tf.ensure_shape(tf.zeros([2]), [3]), "2 3 EnsureShape"),
    "fill, negative": (lambda tf: tf.fill([-1], 0.0), "Fill"),
    "constant, too many": (lambda tf: tf.constant([1, 2, 3], shape=[2]), "Too many elements 2 3"),
    "cond of a vector": (lambda tf: tf.cond([True, False], lambda: 1, lambda: 2), "rank 0 1"),
    "top_k": (lambda tf: tf.nn.top_k(tf.zeros([3]), k=4), ">= k = 4 3"),
}

BUILDING_TYPES: dict[str, Building] = {
    "add of types": (lambda tf: tf.constant(1) + tf.constant(1.0), "AddV2 float32 int32"),
    "add of text": (lambda tf: tf.constant(1) + "a", "int32 a"),
    "matmul of types": (
        lambda tf: tf.matmul(tf.zeros([2, 2]), tf.zeros([2, 2], tf.int32)),
        "MatMul int32 float32",
    ),
    "concat of types": (
        lambda tf: tf.concat([tf.constant([1]), tf.constant([1.0])], 0),
        "int32 float32 match",
    ),
    "sqrt of integers": (lambda tf: tf.sqrt(tf.constant(1)), "int32 allowed"),
    "logical_and of numbers": (
        lambda tf: tf.logical_and(tf.constant(1), tf.constant(2)),
        "LogicalAnd int32 bool",
    ),
    "gather by floats": (lambda tf: tf.gather(tf.zeros([3]), [0.5]), "indices float32 int32"),
    "labels of floats": (
        lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1.0, 2.0], logits=tf.zeros([2, 4])),
        "float32 int32 int64",
    ),
    "constant, wrong type": (lambda tf: tf.constant("a", tf.float32), "float"),
    "constant, fraction": (lambda tf: tf.constant(1.5, tf.int32), "int32 1.5 float"),
    "constant, None": (lambda tf: tf.constant(None), "None values not supported"),
    "constant, ragged": (lambda tf: tf.constant([[1, 2], [3]]), ""),
    "constant, mixed": (lambda tf: tf.constant([1, "a"]), "a"),
    "constant, object": (lambda tf: tf.constant(object()), "object"),
    "convert, other type": (lambda tf: tf.convert_to_tensor(tf.constant(1), tf.float32), "float32 int32"),
    "no such type": (lambda tf: tf.constant(1, "float31"), "float31"),
    "placeholder, no type": (lambda tf: tf.placeholder(None), "dtype"),
    "add None": (lambda tf: tf.add(None, 1.0), "None"),
    "truth of a tensor": (lambda tf: bool(tf.constant(True)), "bool"),
    "iteration over a tensor of unknown size": (lambda tf: list(tf.placeholder(tf.float32)), ""),
    "length of a tensor": (lambda tf: len(tf.constant([1, 2])), "len"),
    "index by a float": (lambda tf: tf.zeros([3])[1.5], "integers slices"),
    "index by text": (lambda tf: tf.zeros([3])["a"], "integers slices"),
    "assignment to an element": (lambda tf: tf.zeros([3]).__setitem__(0, 1), "__setitem__"),
    "cond, not callable": (lambda tf: tf.cond(tf.constant(True), 1, lambda: 2), "true_fn callable"),
    "cond, types": (lambda tf: tf.cond(tf.constant(True), lambda: 1, lambda: 2.0), "int32 float32 same type"),
    "cond, structures": (lambda tf: tf.cond(tf.constant(True), lambda: [1, 2], lambda: 2), "structure"),
    "cond, no result": (
        lambda tf: tf.cond(tf.constant(True), lambda: None, lambda: 2),
        "true_fn return value",
    ),
    "cond, Python bool": (lambda tf: tf.cond(True, lambda: 1, lambda: 2), "pred Python bool"),
    "case, no function": (lambda tf: tf.case([(tf.constant(True), 1)], default=lambda: 2), "callable"),
    "assign of another type": (lambda tf: tf.assign(tf.Variable(1.0), tf.constant(1)), "int32 float32"),
    "assign to a constant": (lambda tf: tf.assign(tf.constant(1.0), 2.0), ""),
    "random_uniform of integers without bound": (lambda tf: tf.random_uniform([2], dtype=tf.int32), "maxval"),
}

BUILDING_NAMES: dict[str, Building] = {
    "name with a space": (lambda tf: tf.constant(1, name="a b"), "a b valid"),
    "scope name": (lambda tf: tf.name_scope("?").__enter__(), "? valid"),
    "get_variable twice": (_twice, "v already exists reuse"),
    "get_variable, missing": (_reused_missing, "a/v does not exist"),
    "get_variable, other shape": (lambda tf: _reused(tf, [3]), "v (3,) (2,)"),
    "get_variable, other type": (lambda tf: _reused(tf, [2], tf.int32), "v int32 float32"),
    "get_variable, no shape": (lambda tf: tf.get_variable("v"), "v initializer shape"),
    "get_variable, unknown shape": (lambda tf: tf.get_variable("v", [None]), "v shape fully defined"),
    "get_variable, shape and value": (
        lambda tf: tf.get_variable("v", [2], initializer=tf.zeros([2])),
        "shape initializer constant",
    ),
    "get_variable, unknown initializer": (
        lambda tf: tf.get_variable("v", [2], initializer="nothing"),
        "initializer shape",
    ),
    "variable_scope, None": (lambda tf: tf.variable_scope(None).__enter__(), "name_or_scope"),
    "variable without value": (lambda tf: tf.Variable(), "initial_value"),
    "element of no graph": (lambda tf: tf.get_default_graph().get_tensor_by_name("missing:0"), "missing:0"),
    "tensor name without output": (
        lambda tf: tf.get_default_graph().get_tensor_by_name("missing"),
        "missing <op_name>:<output_index>",
    ),
    "operation of no graph": (
        lambda tf: tf.get_default_graph().get_operation_by_name("missing"),
        "missing graph",
    ),
    "another graph's": (_other_graphs, "graph"),
    "finalized": (_finalized, "finalized"),
    "device": (lambda tf: tf.device("/gpu:x").__enter__() or tf.constant(1), "x"),
    "conv2d, padding": (
        lambda tf: tf.nn.conv2d(
            tf.zeros([1, 5, 5, 3]), tf.zeros([3, 3, 3, 4]), strides=[1, 1, 1, 1], padding="NONE"
        ),
        "padding NONE SAME VALID",
    ),
    "conv2d, strides": (
        lambda tf: tf.nn.conv2d(
            tf.zeros([1, 5, 5, 3]), tf.zeros([3, 3, 3, 4]), strides=[1, 1, 1, 1, 1], padding="SAME"
        ),
        "stride",
    ),
    "conv2d, layout": (
        lambda tf: tf.nn.conv2d(
            tf.zeros([1, 5, 5, 3]),
            tf.zeros([3, 3, 3, 4]),
            strides=[1, 1, 1, 1],
            padding="SAME",
            data_format="CHNW",
        ),
        "data_format CHNW",
    ),
    "dropout, rate": (lambda tf: tf.nn.dropout(tf.zeros([3]), rate=1.5), "rate 1.5 [0, 1)"),
    "argmax, output type": (lambda tf: tf.argmax(tf.zeros([3]), output_type=tf.float32), "float"),
    "unknown keyword": (lambda tf: tf.add(1, 2, nome="x"), "unexpected keyword argument nome"),
    "too few arguments": (lambda tf: tf.matmul(tf.zeros([2, 2])), "missing"),
    "one_hot, types": (lambda tf: tf.one_hot([0], 2, on_value=1, off_value=0.0), "on_value off_value"),
    "py_func without function": (lambda tf: tf.py_func(3, [1], tf.float32), "callable"),
}

BUILDING_GRADIENTS: dict[str, Building] = {
    "gradients, counts": (lambda tf: tf.gradients(x := tf.constant(1.0), x, grad_ys=[1.0, 2.0]), "1 2"),
    "minimize without variables": (
        lambda tf: tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0)),
        "No variables optimize",
    ),
    "minimize, unconnected": (
        lambda tf: (
            tf.Variable(1.0) is None or tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0))
        ),
        "No gradients provided any variable",
    ),
    "minimize by a tensor": (
        lambda tf: tf.train.GradientDescentOptimizer(0.1).minimize(x := tf.constant(1.0), var_list=[x]),
        "",
    ),
    "apply_gradients of nothing": (
        lambda tf: tf.train.GradientDescentOptimizer(0.1).apply_gradients([]),
        "No variables provided",
    ),
    "apply_gradients, all None": (
        lambda tf: tf.train.GradientDescentOptimizer(0.1).apply_gradients([(None, tf.Variable(1.0))]),
        "No gradients provided any variable",
    ),
    "compute_gradients of integers": (
        lambda tf: tf.train.GradientDescentOptimizer(0.1).compute_gradients(tf.Variable(1)),
        "int32",
    ),
    "custom gradient, count": (
        lambda tf: tf.gradients(
            tf.custom_gradient(lambda x: (x * 2, lambda dy: (dy, dy)))(x := tf.constant(1.0)), x
        ),
        "gradients",
    ),
    "learning rate, boundaries": (
        lambda tf: tf.train.piecewise_constant(tf.constant(1), [1, 2], [0.1]),
        "boundaries 1 less",
    ),
    "learning rate, no step": (lambda tf: tf.train.exponential_decay(0.1, None, 10, 0.9), "None"),
}

BUILDING = {**BUILDING_SHAPES, **BUILDING_TYPES, **BUILDING_NAMES, **BUILDING_GRADIENTS}


def fail_building(tf: Any, name: str) -> Exception | None:
    """What building `BUILDING[name]` raises, in a graph of its own; None if nothing."""
    with tf.Graph().as_default():
        try:
            BUILDING[name][0](tf)
        except Exception as error:
            return error
    return None
