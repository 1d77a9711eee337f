"""Deprecated ops: there in graphs of older versions, refused in newer ones with what to use instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F, registry

pytestmark = pytest.mark.usefixtures("graph")

ROWS = [[1.0, 5.0, 3.0, 5.0], [0.0, -1.0, -2.0, 7.0]]


def old_graph(version: int) -> Any:
    """A GraphDef of this version that has one deprecated op."""
    message = tf.GraphDef()
    message.versions.producer = version
    x = message.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = tf.float32.as_datatype_enum
    y = message.node.add(name="y", op="TopK", input=["x"])
    y.attr["T"].type = tf.float32.as_datatype_enum
    y.attr["k"].i = 2
    return message


def test_an_older_graph_has_them() -> None:
    x, values, indices = tf.import_graph_def(old_graph(6), return_elements=["x:0", "y:0", "y:1"], name="")
    with tf.Session() as session:
        got = session.run([values, indices], {x: ROWS})
    np.testing.assert_array_equal(got[0], [[5, 5], [7, 0]])
    np.testing.assert_array_equal(got[1], [[1, 3], [3, 0]])


def test_a_newer_graph_is_refused_and_nothing_of_it_stays(graph: tf.Graph) -> None:
    message = r"Node 'y': Op TopK is not available in GraphDef version 7. .* in version 7. Use TopKV2 instead"
    with pytest.raises(tf.errors.UnimplementedError, match=message):
        tf.import_graph_def(old_graph(7))
    assert graph.get_operations() == []
    assert graph.graph_def_versions.producer == 24


def test_a_graph_is_as_old_as_the_oldest_that_it_has_imported(graph: tf.Graph) -> None:
    tf.import_graph_def(old_graph(6), name="old")
    assert graph.as_graph_def().versions.producer == 6
    assert F.TopK(ROWS, k=1).values.shape.as_list() == [2, 1]
    newer = tf.GraphDef()
    newer.versions.producer = 20
    tf.import_graph_def(newer)
    assert graph.graph_def_versions.producer == 6


def test_new_graphs_refuse_them_where_they_are_built() -> None:
    with pytest.raises(NotImplementedError, match="Op TopK is not available in GraphDef version 24"):
        F.TopK(ROWS, k=1)


@pytest.mark.parametrize("name", sorted(name for name in registry if registry[name].deprecated))
def test_what_to_use_instead_is_there_and_not_deprecated(name: str) -> None:
    deprecated = registry[name].deprecated
    assert deprecated is not None
    version, instead = deprecated
    assert 0 < version <= 24
    if instead.isidentifier():
        assert registry[instead].deprecated is None
    else:
        owner: Any = tf
        for part in instead.removeprefix("tf.").removesuffix("()").split("."):
            owner = getattr(owner, part)
        assert callable(owner)
