"""Shapes from the feeds, in loops and their gradients: what is known, and that the steps stay right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import ops
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.framework.tensors.node import static_value
from flowstone.framework.types.shape import Dims
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.rewriting.simplification.shape_refinement import refine_shapes

RNG = np.random.default_rng(5)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def refined(fetches: list[Any], feed: dict[Any, Any]) -> Subgraph:
    """The pruned graph with the shapes that follow from the feeds'."""
    subgraph = prune(fetches, [], list(feed), [np.shape(value) for value in feed.values()])
    refine_shapes(subgraph)
    return subgraph


def dims_of(subgraph: Subgraph, op_type: str) -> list[Dims]:
    return [node.outputs[0].dims for node in subgraph.nodes if node.type == op_type]


def same_for_other_shapes(fetches: Any, feeds: list[dict[Any, Any]]) -> None:
    """Plans for the fed shapes give what the general plan, which a session makes last, gives."""
    with tf.Session() as session:
        special = [session.run(fetches, feed) for feed in feeds]
    with tf.Session() as session:
        for n in range(11, 16):
            session.run(
                fetches,
                {
                    x: values(*(n if i == 0 else d for i, d in enumerate(np.shape(v))))
                    if np.asarray(v).dtype == np.float32
                    else v
                    for x, v in feeds[0].items()
                },
            )
        for feed, expected in zip(feeds, special):
            for got, wanted in zip(session.run(fetches, feed), expected):
                np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_values_that_were_asked_for_before_the_shapes_were_known() -> None:
    """Reads of variables that a step also changes are put first, which asks what a gradient's shapes are."""
    x = tf.placeholder(tf.float32, [None, 3])
    count = tf.Variable(0.0)
    loss = tf.reduce_mean(tf.square(tf.nn.relu(x * tf.Variable(tf.ones([3])))))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    counted = tf.assign_add(count, loss) / count
    subgraph = prune([counted, loss], [train], [x], [(4, 3)])
    refine_shapes(subgraph)
    shapes = [static_value(node.outputs[0]) for node in subgraph.nodes if node.type == "Shape"]
    assert shapes and all(isinstance(each, np.ndarray) for each in shapes)


def recurrence(x: Any, steps: int = 3) -> Any:
    """A state of the shape of `x`, of which nothing is known when the graph is built."""
    w = tf.constant(values(4, 4))

    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.tanh(tf.matmul(h, w)) * x

    start = tf.zeros(tf.stack([tf.shape(x)[0], 4]))
    shapes = [tf.TensorShape([]), tf.TensorShape([None, 4])]
    return tf.while_loop(lambda i, _: i < steps, body, [0, start + 1], shape_invariants=shapes)[1]


def test_a_loop_keeps_the_shape_it_enters_with() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    y = recurrence(x)
    assert dims_of(prune([y], [], [x]), "Tanh") == [(None, 4)]
    subgraph = refined([y], {x: values(5, 4)})
    assert dims_of(subgraph, "Tanh") == dims_of(subgraph, "MatMul") == [(5, 4)]
    assert (5, 4) in dims_of(subgraph, "Merge")
    assert dims_of(subgraph, "Exit")[-1] == (5, 4)


def test_a_gradient_computes_no_shapes() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    gradient = tf.gradients(recurrence(x), x)
    feed = {x: values(5, 4)}
    subgraph = refined(gradient, feed)
    assert all(dims is None or None not in dims for dims in dims_of(subgraph, "StackPopV2"))
    shapes = ops(str(run_passes(refined(gradient, feed), EVERY)).splitlines())
    assert not {"Shape", "BroadcastGradientArgs", "Reshape", "Sum"}.intersection(shapes)
    before = ops(str(run_passes(prune(gradient, [], [x]), EVERY)).splitlines())
    assert {"Shape", "BroadcastGradientArgs", "Reshape", "Sum"}.issubset(before)
    assert shapes.count("StackPopV2") < before.count("StackPopV2")
    same_for_other_shapes([recurrence(x), *gradient], [feed, {x: values(2, 4)}])


def test_what_grows_is_not_believed() -> None:
    x = tf.placeholder(tf.float32, [None, 3])

    def body(i: Any, rows: Any, last: Any) -> Any:
        return i + 1, tf.concat([rows, last], 0), last * 2

    shapes = [tf.TensorShape([]), tf.TensorShape([None, 3]), tf.TensorShape([None, 3])]
    _, rows, last = tf.while_loop(lambda i, *_: i < 3, body, [0, x, x], shape_invariants=shapes)
    subgraph = refined([rows, last], {x: values(2, 3)})
    assert [node.outputs[0].dims for node in subgraph.nodes if node.type == "Merge"] == [
        (),
        (None, 3),
        (2, 3),
    ]
    assert [x.dims for x in subgraph.fetches] == [(None, 3), (2, 3)]
    with tf.Session() as session:
        assert session.run(rows, {x: values(2, 3)}).shape == (8, 3)


def test_a_shape_that_alternates() -> None:
    x = tf.placeholder(tf.float32, [None, None])
    shapes = [tf.TensorShape([]), tf.TensorShape([None, None])]
    _, y = tf.while_loop(
        lambda i, _: i < 3, lambda i, h: (i + 1, tf.transpose(h)), [0, x], shape_invariants=shapes
    )
    assert refined([y], {x: values(2, 3)}).fetches[0].dims == (None, None)
    assert refined([y], {x: values(3, 3)}).fetches[0].dims == (3, 3)
    with tf.Session() as session:
        assert session.run(y, {x: values(2, 3)}).shape == (3, 2)


def test_a_rank_that_changes() -> None:
    x = tf.placeholder(tf.float32)
    shapes = [tf.TensorShape([]), tf.TensorShape(None)]
    _, y = tf.while_loop(
        lambda i, _: i < 2, lambda i, h: (i + 1, tf.expand_dims(h, 0)), [0, x], shape_invariants=shapes
    )
    assert refined([y], {x: values(2)}).fetches[0].dims is None
    with tf.Session() as session:
        assert session.run(y, {x: values(2)}).shape == (1, 1, 2)


def test_loops_in_loops() -> None:
    x = tf.placeholder(tf.float32, [None, 4])

    def outer(i: Any, h: Any) -> Any:
        return i + 1, recurrence(h, 2) + h

    shapes = [tf.TensorShape([]), tf.TensorShape([None, 4])]
    _, y = tf.while_loop(lambda i, _: i < 2, outer, [0, x], shape_invariants=shapes)
    feed = {x: values(3, 4)}
    assert dims_of(refined([y], feed), "Tanh") == [(3, 4)]
    same_for_other_shapes([y, *tf.gradients(y, x)], [feed])


def test_arrays_hand_out_what_was_written() -> None:
    x = tf.placeholder(tf.float32, [None, None, 4])
    array = tf.TensorArray(tf.float32, tf.shape(x)[0]).unstack(x)
    written = tf.TensorArray(tf.float32, tf.shape(x)[0])

    def body(i: Any, out: Any) -> Any:
        return i + 1, out.write(i, tf.tanh(array.read(i)))

    y = tf.while_loop(lambda i, _: i < tf.shape(x)[0], body, [0, written])[1].stack()
    feed = {x: values(3, 2, 4)}
    subgraph = refined([y, *tf.gradients(y, x)], feed)
    assert dims_of(subgraph, "Tanh") == [(2, 4)]
    assert dims_of(subgraph, "TensorArrayReadV3") == [(2, 4), (2, 4)]
    assert [dims and dims[1:] for dims in dims_of(subgraph, "TensorArrayGatherV3")] == [(2, 4), (2, 4)]
    same_for_other_shapes([y, *tf.gradients(y, x)], [feed])


def test_elements_of_several_shapes() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    array = tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, x).write(1, x[:1])
    assert refined([array.read(0)], {x: values(3, 4)}).fetches[0].dims == (None, 4)


def test_contradictions_are_left_to_the_step() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.placeholder(tf.float32, [None, 4])
    total = tf.while_loop(lambda i, _: i < 2, lambda i, h: (i + 1, h + y), [0, x],
                          shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 4])])[1]  # fmt: skip
    assert refined([total], {x: values(3, 4), y: values(2, 4)}).fetches[0].dims == (None, 4)
    assert refined([total], {x: values(1, 4), y: values(2, 4)}).fetches[0].dims == (None, 4)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(total, {x: values(3, 4), y: values(2, 4)})


def reduced(x: Any, is_short: Any) -> Any:
    """The last state of a recurrence over steps; of one step, that step itself."""
    w = tf.constant(values(4, 4))
    steps = tf.transpose(x, [1, 0, 2])

    def many() -> Any:
        shapes = [tf.TensorShape([]), tf.TensorShape([None, 4])]
        more = lambda i, _: i < tf.shape(x)[1]  # noqa: E731
        body = lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w)) + steps[i])  # noqa: E731
        return tf.while_loop(more, body, [1, steps[0]], shape_invariants=shapes)[1]

    return tf.cond(is_short, lambda: tf.squeeze(x, [1]), many)


@pytest.mark.parametrize("n", [1, 3])
def test_the_branch_that_shapes_exclude_may_contradict_them(n: int) -> None:
    x = tf.placeholder(tf.float32, [None, None, 4])
    y = tf.exp(reduced(x, tf.equal(tf.shape(x)[1], 1)))
    gradient = tf.gradients(y, x)
    feed = {x: values(2, n, 4)}
    subgraph = refined([y, *gradient], feed)
    assert subgraph.fetches[0].dims == (2, 4) and dims_of(subgraph, "Exp") == [(2, 4)]
    assert "BroadcastGradientArgs" not in ops(str(run_passes(subgraph, EVERY)).splitlines())
    same_for_other_shapes([y, *gradient], [feed, {x: values(2, 4 - n, 4)}])


def test_a_loop_in_a_branch_has_a_gradient_without_shapes() -> None:
    x, is_short = tf.placeholder(tf.float32, [None, None, 4]), tf.placeholder(tf.bool, [])
    y = tf.cond(is_short, lambda: x[:, 0], lambda: reduced(x, tf.constant(False)))
    gradient = tf.gradients(y, x)
    feed = {x: values(2, 3, 4), is_short: False}
    pops = dims_of(refined(gradient, feed), "StackPopV2")
    assert pops and all(dims is not None and None not in dims for dims in pops)
    same_for_other_shapes([y, *gradient], [feed, {**feed, is_short: True}])
