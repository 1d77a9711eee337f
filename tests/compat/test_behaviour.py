"""The switches between TensorFlow 1 and 2: which do nothing, which choose, which are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import flowstone as tf
from flowstone.compat import behaviour


@pytest.fixture(autouse=True)
def reference_variables_again() -> Iterator[None]:
    yield
    behaviour.disable_resource_variables()


def is_resource(variable: object) -> bool:
    return variable.dtype.base_dtype == variable.dtype  # type: ignore[attr-defined]


def test_resource_variables_can_be_the_default() -> None:
    with tf.Graph().as_default():
        assert not behaviour.resource_variables_enabled()
        assert not is_resource(tf.Variable(1.0))
        behaviour.enable_resource_variables()
        assert behaviour.resource_variables_enabled()
        assert is_resource(tf.Variable(1.0))
        assert is_resource(tf.get_variable("v", []))
        assert not is_resource(tf.Variable(1.0, use_resource=False))
        behaviour.disable_v2_behavior()
        assert not is_resource(tf.Variable(1.0))


@pytest.mark.parametrize(
    "switch",
    [
        behaviour.enable_eager_execution,
        behaviour.enable_v2_behavior,
        behaviour.enable_tensor_equality,
        behaviour.enable_v2_tensorshape,
    ],
)
def test_tensorflow_2_is_refused(switch: Callable[[], None]) -> None:
    with pytest.raises(RuntimeError, match="flowstone"):
        switch()


def test_graphs_are_what_there_is() -> None:
    behaviour.disable_eager_execution()
    behaviour.disable_control_flow_v2()
    assert not behaviour.executing_eagerly()
    assert not behaviour.executing_eagerly_outside_functions()
    assert not behaviour.control_flow_v2_enabled()
