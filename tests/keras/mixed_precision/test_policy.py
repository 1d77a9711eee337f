"""`tf.keras.mixed_precision`: the types of layers, as TensorFlow 1.15 has them in graphs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import flowstone as tf

if find_spec("keras") is None:
    pytest.skip("needs flowstone[keras]", allow_module_level=True)

from flowstone.keras.mixed_precision.experimental import Policy, global_policy, set_policy

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _inferred_policy(keras_graph: None) -> Iterator[None]:
    yield
    set_policy("infer")


@pytest.mark.parametrize(
    "name, compute, variable, scale",
    [
        ("mixed_float16", "float16", "float32", 32768.0),
        ("mixed_bfloat16", "bfloat16", "float32", None),
        ("float16", "float16", "float16", None),
        ("float16_with_float32_vars", "float16", "float32", None),
        ("infer", None, None, None),
        ("infer_with_float32_vars", None, "float32", None),
    ],
)
def test_types_of_a_policy(name: str, compute: Any, variable: Any, scale: Any) -> None:
    policy = Policy(name)
    assert (policy.name, policy.compute_dtype, policy.variable_dtype) == (name, compute, variable)
    assert policy.should_cast_variables == (variable is not None and variable != compute)
    found = policy.loss_scale
    assert (None if found is None else found.get_config()["initial_loss_scale"]) == scale


def test_policies_that_are_refused() -> None:
    assert tf.keras.mixed_precision.experimental.Policy is Policy
    assert Policy("float32_with_float32_vars").name == "float32"
    assert Policy("mixed_float16", loss_scale=4).loss_scale.get_config() == {"loss_scale_value": 4.0}
    with pytest.raises(ValueError, match="Cannot convert value bad to a mixed precision Policy"):
        Policy("bad")
    with pytest.raises(TypeError, match="must be a string, not a DType"):
        Policy(tf.float32)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Could not interpret loss scale identifier: x"):
        Policy("float32", loss_scale="x")


def test_the_global_policy_follows_inputs() -> None:
    assert global_policy().name == "infer"
    with pytest.raises(ValueError, match="can only be set to a non-infer policy in TensorFlow 2"):
        set_policy("mixed_float16")
    set_policy("infer_with_float32_vars")
    dense = tf.keras.layers.Dense(3)
    assert dense(tf.ones([2, 4], tf.float16)).dtype == tf.float16 and dense.kernel.dtype == tf.float32


class Product(tf.keras.layers.Layer):  # type: ignore[misc]
    seen: list[Any]

    def build(self, input_shape: Any) -> None:
        self.w = self.add_weight("w", [4, 2], initializer="ones")
        self.own = self.add_weight("own", [], experimental_autocast=False)

    def call(self, x: Any) -> Any:
        w = self.w
        reads = [w, w.value(), w.read_value(), w * 2, 2.0 * w, w[0], tf.gather(w, [0]), w.sparse_read([0])]
        self.seen = [read.dtype for read in reads]
        assert self.own.dtype == tf.float32 and w.handle.dtype == tf.resource
        return tf.matmul(tf.cast(x, tf.float16), w)


def test_variables_are_read_in_the_type_of_the_layer() -> None:
    layer = Product(dtype=Policy("mixed_float16"))
    outputs = layer(tf.ones([3, 4]))
    assert layer.seen == [tf.float16] * 8 and outputs.dtype == tf.float16
    assert layer.w.dtype == layer.w.true_dtype == tf.float32 and layer.dtype == "float32"
    assert "AutoCastVariable" in repr(layer.w)
    assert tf.gradients(outputs, layer.w)[0].dtype == tf.float32


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_layers_of_a_policy(policy: str) -> None:
    given, layers = Policy(policy), tf.keras.layers
    kind = given.compute_dtype
    assert layers.Dense(3, dtype=given)(tf.ones([2, 4], tf.float64)).dtype == kind
    assert layers.Embedding(3, 4, dtype=given)(tf.ones([2, 4], tf.int32)).dtype == kind
    assert layers.Conv2D(3, 2, dtype=given)(tf.ones([2, 4, 4, 1], kind)).dtype == kind
    norm = layers.BatchNormalization(dtype=given)
    assert norm(tf.ones([2, 4, 4, 1], kind)).dtype == kind
    assert {weight.dtype for weight in norm.weights} == {tf.float32} and norm.dtype == "float32"


def test_a_model_of_half_precision_trains() -> None:
    constant, policy = tf.keras.initializers.Constant(0.1), Policy("mixed_float16")
    inputs = tf.keras.layers.Input([4])
    hidden = tf.keras.layers.Dense(8, "relu", kernel_initializer=constant, dtype=policy)(inputs)
    outputs = tf.keras.layers.Dense(1, kernel_initializer=constant, dtype=policy)(hidden)
    model = tf.keras.Model(inputs, tf.keras.layers.Activation("linear", dtype="float32")(outputs))
    model.compile(tf.keras.optimizers.SGD(0.05), "mse")
    x = np.arange(32, dtype=np.float32).reshape(8, 4) / 16
    history = model.fit(x, x.sum(1, keepdims=True), epochs=4, batch_size=8, verbose=0, shuffle=False)
    # TensorFlow 1.15 adds the products up in float16, which differs by a unit or two in the last place.
    np.testing.assert_allclose(history.history["loss"], [17.1406, 6.8633, 0.2603, 0.2437], rtol=4e-3)
    assert {weight.dtype for weight in model.weights} == {tf.float32}
