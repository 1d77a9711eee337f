"""What layers share: aliases of outputs, sizes, conditions. The answers are 1.15.5's."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.contrib.layers import utils

pytestmark = pytest.mark.usefixtures("graph")

layers = tf.contrib.layers


class TestOutputs:
    def test_layers_collect_their_outputs_by_scope(self) -> None:
        x = tf.ones([2, 6, 5, 3])
        with tf.variable_scope("outer"):
            y = layers.conv2d(x, 4, 3, outputs_collections="e")
            z = layers.max_pool2d(y, 2, outputs_collections="e")
            f = layers.flatten(z, outputs_collections="e")
            layers.fully_connected(f, 3, scope="a/b", outputs_collections="e")
            layers.batch_norm(y, updates_collections=None, outputs_collections="e")
            layers.dense_to_sparse([[1, 0]], outputs_collections="e")
        found = utils.convert_collection_to_dict("e")
        assert list(found) == [
            f"outer/{name}"
            for name in ("Conv", "MaxPool2D", "Flatten", "a/b", "BatchNorm", "dense_to_sparse")
        ]
        assert found["outer/Conv"] is y
        assert utils.get_tensor_aliases(y) == ["outer/Conv"]

    def test_aliases(self) -> None:
        x, y = tf.ones([2], name="x"), tf.ones([2], name="y")
        assert utils.collect_named_outputs("q", "first", x) is x
        utils.append_tensor_alias(x, "second/")
        assert utils.collect_named_outputs(None, "third", x) is x
        assert utils.gather_tensors_aliases([x, y]) == ["first", "second", "y"]
        assert list(utils.convert_collection_to_dict("q", clear_collection=True)) == ["first", "second"]
        assert tf.get_collection("q") == []

    def test_collections_of_variables(self) -> None:
        assert utils.get_variable_collections({"w": ["a"]}, "w") == ["a"]
        assert utils.get_variable_collections({"w": ["a"]}, "x") is None
        assert utils.get_variable_collections(["a"], "x") == ["a"]


class TestSizes:
    def test_dimensions(self) -> None:
        shape = tf.TensorShape([2, 6, 5, 3])
        assert utils.last_dimension(shape) == utils.channel_dimension(shape, "NHWC") == 3
        assert utils.channel_dimension(shape, "NCHW") == 6

    @pytest.mark.parametrize(
        ("sizes", "min_rank", "message"),
        [([2, None], 1, "must be known"), ([2, 3], 6, "at least 6 not: 2"), (None, 1, "dims of shape")],
    )
    def test_dimensions_refused(self, sizes: Any, min_rank: int, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            utils.last_dimension(tf.TensorShape(sizes), min_rank)

    def test_tuples(self) -> None:
        assert utils.n_positive_integers(2, 3) == (3, 3)
        assert utils.n_positive_integers(3, [1, 2, 3]) == (1, 2, 3)
        assert utils.two_element_tuple(3) == (3, 3)
        assert utils.two_element_tuple([1, 2]) == utils.two_element_tuple(tf.TensorShape([1, 2])) == (1, 2)

    @pytest.mark.parametrize(("n", "value"), [(2, 0), (2, [1, 2, 3]), (2, [1, 0])])
    def test_no_positive_integers(self, n: int, value: Any) -> None:
        with pytest.raises(ValueError, match="positive integer"):
            utils.n_positive_integers(n, value)

    @pytest.mark.parametrize("value", ["aa", [1, 2, 3]])
    def test_no_two(self, value: Any) -> None:
        with pytest.raises(ValueError, match="2 elements"):
            utils.two_element_tuple(value)


class TestConditions:
    def test_known(self) -> None:
        assert utils.smart_cond(True, lambda: 1, lambda: 2) == 1
        assert utils.smart_cond(tf.constant(False), lambda: 1, lambda: 2) == 2
        assert utils.static_cond(1, lambda: 1, lambda: 2) == 1
        assert utils.constant_value(tf.constant(True))
        assert utils.constant_value(tf.placeholder(tf.bool)) is None

    def test_unknown(self) -> None:
        told = tf.placeholder(tf.bool, [])
        result = utils.smart_cond(told, lambda: tf.constant(1), lambda: tf.constant(2))
        with tf.Session() as session:
            assert session.run(result, {told: False}) == 2
