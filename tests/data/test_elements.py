"""Specs of datasets' elements; the texts are TensorFlow 1.15.5's."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

D, E = tf.data.Dataset, tf.data.experimental


def test_specs_are_nested_as_elements_are() -> None:
    with tf.Graph().as_default():
        dataset = D.from_tensor_slices({"x": np.zeros((4, 3), "f"), "y": (np.arange(4), ["a"] * 4)}).batch(2)
        expected = (
            "{'x': TensorSpec(shape=(?, 3), dtype=tf.float32, name=None), 'y': (TensorSpec(shape=(?,), "
            "dtype=tf.int64, name=None), TensorSpec(shape=(?,), dtype=tf.string, name=None))}"
        )
        assert str(dataset.element_spec) == expected
        assert dataset.make_one_shot_iterator().element_spec == dataset.element_spec
        assert E.get_structure(dataset) == dataset.element_spec
        window = D.range(3).window(2).element_spec
        inner = "TensorSpec(shape=(), dtype=tf.int64, name=None)"
        assert str(window) == f"DatasetSpec({inner}, TensorShape([]))"
        sparse = D.from_tensors(tf.SparseTensor([[0, 0]], [1.0], [2, 2])).element_spec
        assert str(sparse) == "SparseTensorSpec(TensorShape([Dimension(2), Dimension(2)]), tf.float32)"
        assert (
            str(E.TensorStructure(tf.float32, [2])) == "TensorSpec(shape=(2,), dtype=tf.float32, name=None)"
        )


def test_structures_are_those_of_datasets() -> None:
    with pytest.raises(TypeError, match="must be a Dataset or Iterator object"):
        E.get_structure(3)


def test_older_functions_are_functions() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        mapped = D.range(5).map_with_legacy_function(lambda x: (x, x + 1), num_parallel_calls=2)
        kept = mapped.filter_with_legacy_function(lambda x, y: x > 2)
        assert session.run(kept.make_one_shot_iterator().get_next()) == (3, 4)
