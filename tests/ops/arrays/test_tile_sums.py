"""The sum of tiles, which only old graphs have."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf


def imported(value: object, multiples: object, producer: int = 2) -> tf.Tensor:
    """A TileGrad node in the default graph, from a GraphDef of that version."""
    old = tf.GraphDef()
    old.versions.producer = producer
    for name, array in (("x", np.asarray(value)), ("m", np.asarray(multiples, np.int32))):
        node = old.node.add(name=name, op="Const")
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
        node.attr["dtype"].type = tf.as_dtype(array.dtype).as_datatype_enum
    node = old.node.add(name="sum", op="TileGrad", input=["x", "m"])
    node.attr["T"].type = tf.as_dtype(np.asarray(value).dtype).as_datatype_enum
    return tf.import_graph_def(old, return_elements=["sum:0"])[0]


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "int32", "complex64"])
@pytest.mark.parametrize("sizes, multiples", [((2, 3), (3, 2)), ((4,), (1,)), ((), ()), ((0, 2), (2, 3))])
def test_sums(kind: str, sizes: tuple, multiples: tuple) -> None:
    tiled = np.tile(np.ones(sizes), multiples) * np.arange(np.prod(sizes) * np.prod(multiples)).reshape(
        np.multiply(sizes, multiples).astype(int)
    )
    split = [part for n, count in zip(sizes, multiples) for part in (count, n)]
    expected = tiled.reshape(split).sum(tuple(range(0, len(split), 2)))
    with tf.Graph().as_default(), tf.Session() as session:
        node = imported(tiled.astype(kind), multiples)
        assert node.shape.as_list() == list(sizes)
        found = session.run(node)
    assert found.dtype == kind
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("multiples", [(3,), (0,), (1, 1)])
def test_bad_multiples(multiples: tuple) -> None:
    wrong = pytest.raises(tf.errors.InvalidArgumentError, match="multiples")
    with tf.Graph().as_default(), tf.Session() as session, wrong:
        session.run(imported(np.ones(4), multiples))


def test_newer_graphs_lack_it() -> None:
    with tf.Graph().as_default(), pytest.raises(tf.errors.UnimplementedError, match="TileGrad"):
        imported(np.ones(4), (2,), producer=24)
