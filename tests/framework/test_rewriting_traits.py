"""Traits that say what an op does: kernels do what the declarations say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import flowstone.lowering.passes  # declares the ops of plans
from flowstone.framework.declarations.operation import CONTROL_FLOW, F, OpDeclaration, registry
from flowstone.rewriting.simplification.partial_execution import prune

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


@pytest.mark.parametrize("name", public(lambda declaration: declaration.reshapes))
def test_reshapes_keep_the_elements_and_their_order(name: str) -> None:
    (x,) = inputs(name, 1)
    more = {"Reshape": [x, [3, 2]], "ExpandDims": [x, 1], "Squeeze": [x[:, None]]}
    found = result(name, more[name])
    assert found.shape != more[name][0].shape
    np.testing.assert_array_equal(found.ravel(), x.ravel())


@pytest.mark.parametrize("name", public(lambda declaration: declaration.uniform))
def test_elements_of_uniform_values_are_the_same(name: str) -> None:
    values = [np.array([2, 3], np.int32), np.float32(7)] if name == "Fill" else inputs(name)
    found = result(name, values)
    assert found.shape == (2, 3) and len(np.unique(found)) == 1


@pytest.mark.parametrize("name", public(lambda declaration: declaration.reduces))
def test_reductions_are_over_the_axes_of_the_second_input(name: str) -> None:
    (x,) = inputs(name, 1)
    x = x > 0.5 if registry[name].inputs[0].type_attr is None else x  # type: ignore[assignment]
    one = np.int32(1)
    found = result(name, [x, one])
    assert found.shape == (2,)
    np.testing.assert_allclose(found, result(name, [x.T.copy(), one - 1]), 1e-6)


@pytest.mark.parametrize("name", public(lambda declaration: declaration.row_wise))
def test_rows_of_row_wise_ops_do_not_depend_on_each_other(name: str) -> None:
    values = inputs(name)
    if name.startswith("Sparse"):
        values[1] = np.array([2, 0], np.int32)
    for both, other in zip(as_list(result(name, values)), as_list(result(name, [x[::-1] for x in values]))):
        np.testing.assert_allclose(both, other[::-1], 1e-6)


def as_list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, tuple) else [values]


@pytest.mark.parametrize("name", public(lambda declaration: declaration.images is not None))
def test_images_are_where_declarations_say(name: str) -> None:
    declaration = registry[name]
    images, arguments = declaration.images, [argument.name for argument in declaration.inputs]
    assert images is not None and "data_format" in declaration.attributes
    assert all(declaration.inputs[i].dtype is None for i in images.inputs)
    assert all(declaration.outputs[i].dtype is None for i in images.outputs)
    assert images.shape is None or arguments[images.shape] in declaration.host
    assert ("filter" in arguments) == (images.filter is not None)
    assert images.filter is None or arguments[images.filter] == "filter"


@pytest.mark.parametrize("name", public(lambda declaration: declaration.sizes_function is not None))
def test_arithmetic_on_sizes_is_that_of_the_op(name: str) -> None:
    compute = registry[name].sizes_function
    x, y = np.array([6, 9, 4], np.int32), np.array([3, 3, 8] if name != "Prod" else [0], np.int32)
    assert compute is not None
    if name == "DynamicStitch":
        places = [np.array([2, 0, 1], np.int32), np.array([3, 4, 5], np.int32)]
        with tf.Graph().as_default(), tf.Session() as session:
            expected = session.run(F.DynamicStitch(places, [x, y]))
        found = compute(*(each.astype(object) for each in (*places, x, y)))
        np.testing.assert_array_equal(found, expected)
        return
    np.testing.assert_array_equal(compute(x.astype(object), y.astype(object)), result(name, [x, y]))


def test_roles() -> None:
    roles = {registry[name].role for name in registry} - {""}
    assert roles > CONTROL_FLOW
    assert roles - CONTROL_FLOW == {
        "constant", "dataset", "element", "element_access", "feed", "files", "gradient_barrier",
        "host_receive", "host_send", "identity", "no_op", "placeholder", "read", "receive", "send",
        "swap_out", "trigger", "variable",
    }  # fmt: skip
    assert {name for name in registry if registry[name].role == "variable"} < {
        name for name in registry if registry[name].holds_state
    }


@pytest.mark.parametrize("role", ["identity", "gradient_barrier"])
def test_identities_hand_on_what_they_take(role: str) -> None:
    for name in registry.with_role(role):
        if registry[name].has_references:
            continue  # takes a variable alone
        (x,) = inputs(name, 1)
        np.testing.assert_array_equal(result(name, [x]), x)


def test_nodes_tell_constants_and_feeds() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32)
        y = tf.add(x, 1.0)
    nodes = prune([y], [], [x]).nodes
    assert [node.name for node in nodes if node.is_constant] == ["Add/y"]
    assert [node.name for node in nodes if node.is_feed] == ["Placeholder"]


def test_ops_of_stacks_and_arrays_say_so() -> None:
    named = {name for name in registry if name.startswith(("Stack", "TensorArray", "_ProductSum"))}
    assert named == {name for name in registry if registry[name].container}
    assert {registry[name].container for name in ("StackPop", "StackPopV2")} == {"pop"}
    assert registry["TensorArrayWriteV3"].container == "write"
    made = ("Stack", "StackV2", "TensorArrayV3", "_ProductSum")
    assert [registry[name].container for name in made] == ["stack", "stack", "array", "sum"]


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
