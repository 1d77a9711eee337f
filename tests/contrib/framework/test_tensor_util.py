"""Checks of tensors, names of scopes, known conditions, Python functions. The answers are 1.15.5's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

framework = tf.contrib.framework


class TestShapes:
    def test_known(self) -> None:
        x = tf.constant([1.0, 2.0], name="x")
        assert framework.with_shape([2], x) is x
        with pytest.raises(ValueError, match=r"tensor x:0, expected \[3\], got \(2,\)"):
            framework.with_shape([3], x)
        with pytest.raises(ValueError, match="Invalid dtype float64"):
            framework.with_shape([1.5], x)

    @pytest.mark.parametrize("sizes", [[1, 2], [2, 1], [2]])
    def test_checked_in_the_step(self, sizes: list[int]) -> None:
        x = tf.placeholder(tf.float32, name="x")
        checked = framework.with_shape([1, 2], x)
        assert (checked.op.name, checked.shape.as_list()) == ("x/Identity", [1, 2])
        wanted = framework.with_shape(tf.placeholder_with_default([1, 2], [2]), x)
        with tf.Session() as session:
            feed = {x: np.zeros(sizes)}
            for each in (checked, wanted):
                if sizes == [1, 2]:
                    assert session.run(each, feed).shape == (1, 2)
                else:
                    with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong shape for x:0"):
                        session.run(each, feed)

    def test_the_same_as_another(self) -> None:
        x = tf.placeholder(tf.float32)
        checked = framework.with_same_shape(tf.zeros([1]), x)
        with tf.Session() as session:
            assert session.run(checked, {x: [3.0]}).tolist() == [3.0]
            with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong shape"):
                session.run(checked, {x: [1.0, 2.0]})

    def test_sparse(self) -> None:
        sparse = tf.SparseTensor([[0, 0]], [1.0], [2, 3])
        with tf.Session() as session:
            assert session.run(framework.with_shape([2, 3], sparse)).dense_shape.tolist() == [2, 3]

    def test_scalars(self) -> None:
        assert framework.assert_scalar_int(3).dtype == tf.int32
        with pytest.raises(ValueError, match="Expected integer type"):
            framework.assert_scalar_int(tf.constant(1.0))
        with pytest.raises(ValueError, match="Expected scalar shape"):
            framework.assert_scalar_int(tf.constant([1]))

    def test_squeezed(self) -> None:
        predictions, labels = framework.remove_squeezable_dimensions(tf.zeros([2, 1]), tf.ones([2]))
        assert predictions.shape.as_list() == labels.shape.as_list() == [2]
        x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        both = framework.remove_squeezable_dimensions(x, y)
        with tf.Session() as session:
            found = session.run(both, {x: np.zeros([2]), y: np.zeros([2, 1])})
            assert [each.shape for each in found] == [(2,), (2,)]

    def test_sums(self) -> None:
        total = framework.reduce_sum_n([tf.constant([1.0, 2.0]), tf.constant(3.0)])
        assert total.op.name == "reduce_sum_n"
        with tf.Session() as session:
            assert session.run(total) == 6.0
        with pytest.raises(ValueError, match="No tensors"):
            framework.reduce_sum_n([])


class TestGraphs:
    def test_names(self) -> None:
        assert framework.get_name_scope() == ""
        with tf.name_scope("q"):
            assert framework.get_name_scope() == "q"
        assert [framework.prepend_name_scope(name, "s") for name in ("a:0", "^a", "loc:@a")] == [
            "s/a:0",
            "^s/a",
            "loc:@s/a",
        ]
        assert framework.strip_name_scope("^s/a", "s") == "^a"
        assert framework.strip_name_scope("t/a", "s") == "t/a"

    def test_the_graph_of_tensors(self, graph: tf.Graph) -> None:
        x = tf.placeholder(tf.float32, name="x")
        assert framework.get_placeholders(graph) == [x]
        with tf.Graph().as_default() as other:
            assert framework.get_graph_from_inputs([x]) is graph
            assert framework.get_graph_from_inputs([1]) is other
            with pytest.raises(ValueError, match="not from the passed-in graph"):
                framework.get_graph_from_inputs([x], other)


class TestConditions:
    def test_known(self) -> None:
        assert framework.smart_cond(True, lambda: 1, lambda: 2) == 1
        assert framework.smart_constant_value(tf.constant(True)) is True
        with pytest.raises(TypeError, match="must be a Tensor"):
            framework.smart_constant_value(2)
        with pytest.raises(TypeError, match="true_fn"):
            framework.smart_cond(True, None, lambda: 2)

    def test_cases(self) -> None:
        told = tf.placeholder(tf.bool, [])
        one, two, three = (lambda: tf.constant(1)), (lambda: tf.constant(2)), (lambda: tf.constant(3))
        assert framework.smart_case([(True, one), (told, two)]).op.name == "smart_case/Const"
        chosen = framework.smart_case([(False, one), (told, two)], three)
        with tf.Session() as session:
            assert [session.run(chosen, {told: value}) for value in (True, False)] == [2, 3]
        assert framework.smart_cond(told, one, two).op.type == "Merge"


class TestPyFunc:
    def test_structures(self) -> None:
        found = framework.py_func(
            lambda a, b: {"r": a + b, "q": [a * 2, b]},
            args=(tf.constant(2),),
            kwargs={"b": tf.constant(5)},
            output_types={"r": tf.int32, "q": [tf.int32, tf.int32]},
            output_shapes={"r": [], "q": [[], []]},
        )
        assert found["r"].shape.as_list() == []
        with tf.Session() as session:
            assert session.run(found) == {"r": 7, "q": [4, 5]}

    @pytest.mark.parametrize(
        "arguments",
        [{"func": 3}, {"func": len, "args": 3}, {"func": len, "kwargs": 3}, {"func": len}],
    )
    def test_refused(self, arguments: dict[str, Any]) -> None:
        with pytest.raises(TypeError):
            framework.py_func(**arguments)
