"""Traits that say what an op does: kernels do what the declarations say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import flowstone.lowering.passes  # declares the ops of plans
from flowstone.framework.operation import F, OpDeclaration, registry

MORE: dict[str, dict[str, Any]] = {"Cast": {"DstT": tf.float64}}  # attributes that an op needs


def public(has: Callable[[OpDeclaration], bool]) -> list[str]:
    """The ops of which this is said, without those of plans alone."""
    return [name for name in registry if not name.startswith("_") and has(registry[name])]


def inputs(name: str, count: int = 2) -> list[np.ndarray]:
    values = [np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3) * (i + 1) for i in range(count)]
    return values[: len(registry[name].inputs)] if not registry[name].has_lists else values


def result(name: str, values: list[np.ndarray]) -> Any:
    arguments = [values] if registry[name].has_lists else values
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(getattr(F, name)(*arguments, **MORE.get(name, {})))


@pytest.mark.parametrize("name", public(lambda declaration: declaration.elementwise))
def test_elementwise_ops_commute_with_transposes(name: str) -> None:
    values = inputs(name)
    expected = np.transpose(result(name, values))
    np.testing.assert_allclose(result(name, [np.transpose(x).copy() for x in values]), expected, 1e-6)


@pytest.mark.parametrize("name", public(lambda declaration: declaration.adds))
def test_sums(name: str) -> None:
    values = inputs(name)
    np.testing.assert_allclose(result(name, values), sum(values), 1e-6)


@pytest.mark.parametrize("name", public(lambda declaration: declaration.shape_only))
def test_shapes_are_all_that_counts(name: str) -> None:
    values = inputs(name)
    np.testing.assert_array_equal(result(name, values), result(name, [x + 7 for x in values]))


def test_ops_of_stacks_and_arrays_say_so() -> None:
    named = {name for name in registry if name.startswith(("Stack", "TensorArray", "_ProductSum"))}
    assert named == {name for name in registry if registry[name].container}
    assert {registry[name].container for name in ("StackPop", "StackPopV2")} == {"pop"}
    assert registry["TensorArrayWriteV3"].container == "write"


def test_products_and_convolutions_say_so() -> None:
    kinds = {name: registry[name].multiplies for name in ("MatMul", "Conv3D", "DepthwiseConv2dNative", "Mul")}
    assert list(kinds.values()) == ["product", "convolution", "depthwise", ""]
    assert registry["Conv2DBackpropFilter"].multiplies == "convolution gradient"
    assert registry["Einsum"].multiplies == "contraction"


@pytest.mark.parametrize("name", public(lambda declaration: declaration.moves))
def test_what_moves_elements_hands_on_their_type(name: str) -> None:
    declaration = registry[name]
    (output,) = declaration.outputs
    assert output.type_attr == declaration.inputs[0].type_attr


@pytest.mark.parametrize("name", public(lambda declaration: declaration.takes_result is not None))
def test_gradients_take_the_result(name: str) -> None:
    """The gradient of the op of that name, as the program asks for it, has the op's output there."""
    with tf.Graph().as_default():
        y = getattr(F, name.removesuffix("Grad"))(tf.constant([0.5, -0.5]))
        (x,) = y.op.inputs
        found = [op for op in (tf.gradients(y, x), y.graph.get_operations())[1] if op.type == name]
        assert [op.inputs[registry[name].takes_result] for op in found] == [y]
