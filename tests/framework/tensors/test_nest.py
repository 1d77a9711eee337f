"""Nested structures with composite values as leaves, or their tensors in place of them."""

from __future__ import annotations

import collections

import pytest

import flowstone as tf
from flowstone.framework.tensors import nest

pytestmark = pytest.mark.usefixtures("graph")


def sparse(dtype: tf.DType = tf.float32) -> tf.SparseTensor:
    return tf.SparseTensor([[0]], tf.constant([1], dtype), [2])


def test_the_tensors_of_composite_values_are_leaves_if_asked_for() -> None:
    structure = {"a": sparse(), "b": [3]}
    assert len(tf.nest.flatten(structure)) == 2
    leaves = tf.nest.flatten(structure, expand_composites=True)
    assert [*map(tf.is_tensor, leaves)] == [True, True, True, False]
    packed = tf.nest.pack_sequence_as(structure, leaves, expand_composites=True)
    assert isinstance(packed["a"], tf.SparseTensor) and packed["b"] == [3]


def test_a_function_of_the_tensors_of_composite_values() -> None:
    doubled = tf.nest.map_structure(lambda x: x + x, [sparse(), 4], expand_composites=True)
    assert isinstance(doubled[0], tf.SparseTensor) and doubled[1] == 8
    with tf.Session() as session:
        assert session.run(doubled[0].values) == [2]


def test_composite_values_of_other_types_are_other_structures() -> None:
    tf.nest.assert_same_structure([sparse()], [sparse(tf.float64)])
    tf.nest.assert_same_structure([sparse()], [sparse()], expand_composites=True)
    with pytest.raises(TypeError, match="not alike"):
        tf.nest.assert_same_structure([sparse()], [sparse(tf.float64)], expand_composites=True)


def test_namedtuples_of_one_name_and_the_same_fields_are_of_one_type() -> None:
    first, again = (collections.namedtuple("Step", ["action", "state"])(1, ()) for _ in range(2))
    nest.assert_same_structure(first, again)
    assert nest.map_structure(lambda x, y: x + y, first, again) == (2, ())
    others = [("Other", ["action", "state"]), ("Step", ["a", "b"])]
    for other in [collections.namedtuple(*each) for each in others]:
        with pytest.raises(TypeError, match="same sequence type"):
            nest.assert_same_structure(first, other(1, ()))


def test_a_default_dictionary_keeps_its_factory() -> None:
    structure = collections.defaultdict(list, {"b": 3, "a": [1, 2]})
    mapped = nest.map_structure(lambda x: x + 1, structure)
    assert mapped == {"b": 4, "a": [2, 3]} and mapped["c"] == [] and list(mapped) == ["b", "a", "c"]
