"""Reversible layers and functions computed anew have the values and gradients of plain ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

slim = tf.contrib.slim
X = np.array([[1.0, 2.0, 3.0, 4.0], [0.5, 0.1, 0.2, 0.9]], np.float32)


def tanh_layer(x: Any) -> Any:
    return tf.contrib.layers.fully_connected(x, 2, activation_fn=tf.nn.tanh)


def relu_layer(x: Any) -> Any:
    return tf.contrib.layers.fully_connected(x, 2)


def scaled_layer(x: Any, side: Any) -> Any:
    return tf.contrib.layers.fully_connected(x, 2) * side[0]


def run(build: Any) -> tuple[list[str], list[Any]]:
    """The names of variables, and outputs and gradients with small numbers in the variables."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(X)
        y1, y2 = build(*tf.split(x, 2, axis=-1))
        variables = tf.trainable_variables()
        gradients = tf.gradients(tf.reduce_mean(y1 * 3.0 + y2 * y2), [x, *variables])
        session.run(tf.global_variables_initializer())
        for i, each in enumerate(variables):
            shape = each.shape.as_list()
            each.load(np.arange(np.prod(shape)).reshape(shape) * 0.1 - 0.1 + i * 0.03, session)
        return [each.name for each in variables], session.run([y1, y2, *gradients])


def block(is_training: bool, f: Any = tanh_layer, g: Any = relu_layer, count: int = 2, **side: Any) -> Any:
    def build(x1: Any, x2: Any) -> Any:
        given = {name: [tf.constant(value)] for name, value in side.items()}
        return slim.rev_block(x1, x2, f, g, num_layers=count, is_training=is_training, **given)

    return build


def assert_same(one: Any, other: Any) -> None:
    assert one[0] == other[0]
    for found, expected in zip(one[1], other[1], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"count": 3},
        {"f": [tanh_layer, relu_layer], "g": [relu_layer, tanh_layer]},
        {"f": scaled_layer, "f_side_input": 2.0},
        {"g": scaled_layer, "g_side_input": -0.5, "count": 1},
    ],
)
def test_gradients_from_activations_computed_anew_are_those_of_kept_ones(arguments: dict[str, Any]) -> None:
    assert_same(run(block(True, **arguments)), run(block(False, **arguments)))


def test_answers_are_those_of_tensorflow() -> None:
    names, (y1, y2, *gradients) = run(block(True))
    assert names[:3] == [f"revblock/revlayer_0/{each}" for each in (
        "f/fully_connected/weights:0", "f/fully_connected/biases:0", "g/fully_connected/weights:0"
    )]  # fmt: skip
    np.testing.assert_allclose(y1, [[1.8587852, 3.6513276], [0.78796035, 0.79099596]], rtol=1e-5)
    np.testing.assert_allclose(y2, [[4.658751, 6.7808094], [0.6136303, 1.7522227]], rtol=1e-5)
    np.testing.assert_allclose(
        gradients[0], [[1.6651, 3.98986, 2.19125, 4.14123], [0.99603, 1.58899, 0.33171, 1.75438]], atol=1e-5
    )
    np.testing.assert_allclose(gradients[1], [[5.19002, 6.73128], [7.55085, 9.9383]], atol=1e-5)


def test_side_inputs_have_gradients() -> None:
    found = []
    for is_training in (True, False):
        with tf.Graph().as_default(), tf.Session() as session:
            x1, x2 = tf.split(tf.constant(X), 2, axis=-1)
            side = tf.constant(2.0)
            y1, y2 = slim.rev_block(
                x1, x2, scaled_layer, relu_layer, 2, f_side_input=[side], is_training=is_training
            )
            gradient = tf.gradients(y1 + y2, side)
            session.run(tf.global_variables_initializer())
            for each in tf.trainable_variables():
                each.load(np.full(each.shape.as_list(), 0.1), session)
            found.append(session.run(gradient)[0])
    assert found[0] == pytest.approx(found[1], rel=1e-4) and found[0] != 0


def test_inputs_are_computed_from_outputs() -> None:
    made = slim.RevBlock(tanh_layer, relu_layer, num_layers=3, name="there")

    def there_and_back(x1: Any, x2: Any) -> Any:
        return made(made((x1, x2)), forward=False)

    names, (x1, x2, *_) = run(there_and_back)
    np.testing.assert_allclose(np.concatenate([x1, x2], 1), X, rtol=1e-4, atol=1e-4)
    assert len(names) == 12 and all(name.startswith("there/") for name in names)


def test_blocks_have_scopes_of_their_own() -> None:
    def two(x1: Any, x2: Any) -> Any:
        return block(True, count=1)(*block(True, count=1)(x1, x2))

    assert {name.partition("/")[0] for name in run(two)[0]} == {"revblock", "revblock_1"}


def test_a_function_for_each_layer() -> None:
    with pytest.raises(ValueError, match="there are 2 layers, but 1 functions"):
        slim.RevBlock([tanh_layer], relu_layer, num_layers=2)


# ---- functions computed anew


def recomputed(**options: Any) -> Any:
    def build(x1: Any, x2: Any) -> Any:
        def pair(p: Any, q: Any) -> Any:
            return tanh_layer(p) * q, q * 2.0

        function = slim.recompute_grad(pair, **options) if options.pop("anew", True) else pair
        with tf.variable_scope("v", use_resource=True):
            return function(x1, x2)

    return build


@pytest.mark.parametrize("options", [{}, {"tupleize_grads": True}, {"use_data_dep": True}])
def test_functions_computed_anew(options: dict[str, Any]) -> None:
    assert_same(run(recomputed(**options)), run(recomputed(anew=False)))


def test_a_function_learns_when_it_is_computed_anew() -> None:
    seen: list[bool] = []

    @slim.recompute_grad
    def layer(x: Any, is_recomputing: bool = False) -> Any:
        seen.append(is_recomputing)
        return tanh_layer(x)

    def build(x1: Any, x2: Any) -> Any:
        with tf.variable_scope("v", use_resource=True):
            return layer(x1), x2

    run(build)
    assert seen == [False, True]


def test_activations_are_computed_twice() -> None:
    def count(is_training: bool) -> int:
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [2, 4])
            y = slim.rev_block(
                *tf.split(x, 2, axis=-1), tanh_layer, tanh_layer, num_layers=3, is_training=is_training
            )
            gradient = tf.gradients(y[0] + y[1], x)
            code = str(session.explain(gradient, {x: X})).rpartition("def segment")[2]
            return sum("tanh" in line and "backward" not in line for line in code.splitlines())

    assert count(True) >= count(False) + 4  # those of the last layer are there already


def test_variables_that_are_references_are_refused() -> None:
    with pytest.raises(TypeError, match="must be `ResourceVariable`s"):
        slim.recompute_grad(tanh_layer)(tf.constant(X))


@pytest.mark.parametrize("name", ["RevBlock", "recompute_grad", "rev_block"])
def test_both_packages_have_the_names(name: str) -> None:
    assert getattr(tf.contrib.layers, name) is getattr(slim, name)
