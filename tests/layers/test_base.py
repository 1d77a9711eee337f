"""Layers: when variables are made, what they are called, losses, updates, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.layers.base import InputSpec, Layer

pytestmark = pytest.mark.usefixtures("graph")


class Affine(Layer):
    """inputs · w · factor + b, with a b that is not trained."""

    def __init__(self, regularizer: Any = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.regularizer, self.shapes = regularizer, []

    def build(self, input_shape: Any) -> None:
        self.shapes.append(input_shape)
        self.w = self.add_weight("w", [input_shape[-1].value, 3], regularizer=self.regularizer)
        self.b = self.add_variable("b", [3], initializer=tf.ones_initializer(), trainable=False)
        super().build(input_shape)

    def call(self, inputs: Any, factor: float = 1.0) -> Any:
        return tf.matmul(inputs, self.w) * factor + self.b


def names(items: Any) -> list[str]:
    return [item.op.name for item in items]


def test_the_first_call_makes_the_variables() -> None:
    layer = Affine()
    assert (layer.name, layer.dtype, layer.built, layer.weights, layer.graph) == (
        "affine_1",
        None,
        False,
        [],
        None,
    )
    x = tf.ones([2, 4], tf.float64)
    y = layer(x, factor=2.0)
    assert layer(x).dtype == y.dtype == tf.float64 and layer.dtype == "float64" and layer.built
    assert [shape.as_list() for shape in layer.shapes] == [[2, 4]]
    assert names(layer.trainable_variables) == ["affine/w"]
    assert names(layer.non_trainable_weights) == ["affine/b"]
    assert names(layer.variables) == ["affine/w", "affine/b"]
    assert names(tf.trainable_variables()) == ["affine/w"]
    assert layer.scope_name == "affine" and layer.graph is x.graph and layer.count_params() == 15
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        w, value = session.run([layer.w, y])
        np.testing.assert_allclose(value, 2 * w.sum(0) * np.ones([2, 1]) + 1)


def test_later_calls_continue_the_scope(graph) -> None:
    layer = Affine()
    with tf.variable_scope("outer"):
        first = layer(tf.ones([2, 4]))
    with tf.name_scope("elsewhere"):
        second = layer(tf.ones([2, 4]))
    assert first.op.name == "outer/affine/add" and second.op.name == "outer/affine/add_1"
    assert len(tf.global_variables()) == 2


def test_scopes_are_numbered_and_named() -> None:
    x = tf.ones([2, 4])
    layers = [Affine(), Affine(), Affine(name="mine"), Affine(_scope="given"), Affine()]
    for layer in layers[:-1]:
        layer(x)
    layers[-1](x, scope="called")
    assert [layer.scope_name for layer in layers] == ["affine", "affine_1", "mine", "given", "called"]
    assert [layer.name for layer in layers] == ["affine_1", "affine_2", "mine", "affine_3", "affine_4"]
    with tf.variable_scope("outer"):
        again = Affine(name="mine")
        again(x)
    assert again.scope_name == "outer/mine"


def test_names_start_over_in_another_graph() -> None:
    assert Affine().name == "affine_1"
    with tf.Graph().as_default():
        assert Affine().name == "affine_1"
    assert Affine().name == "affine_2"


def test_a_layer_can_share_anothers_variables() -> None:
    x = tf.ones([2, 4])
    with tf.variable_scope("a"):
        first = Affine(name="layer")
        first(x)
    with tf.variable_scope("a", reuse=True):
        second = Affine(name="layer")
        second(x)
    with tf.variable_scope("a"):
        third = Affine(name="layer", _reuse=True)
        third(x)
    assert first.variables == second.variables == third.variables
    with pytest.raises(ValueError, match="does not exist, or was not created with"):
        Affine(name="other", _reuse=True)(x)


def test_a_layer_that_is_not_trainable() -> None:
    layer = Affine(trainable=False)
    layer(tf.ones([2, 4]))
    assert (layer.trainable_weights, names(layer.weights)) == ([], ["affine/w", "affine/b"])
    assert tf.trainable_variables() == []


def test_parts_are_variables() -> None:
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2)):
        layer = Affine()
        layer(tf.ones([2, 4]))
    assert names(layer.trainable_weights) == ["s/affine/w/part_0", "s/affine/w/part_1"]


def test_regularizers_of_weights(graph) -> None:
    layer = Affine(regularizer=tf.nn.l2_loss)
    for _ in range(2):
        layer(tf.ones([2, 4]))
    assert names(layer.losses) == ["affine/w/Regularizer/L2Loss"]
    assert layer.losses == tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    sharing = Affine(regularizer=tf.nn.l2_loss, _reuse=True)
    sharing(tf.ones([2, 4]))
    assert sharing.losses == [], "the variable has its loss already"


def test_losses_of_outputs() -> None:
    layer = Affine(activity_regularizer=tf.reduce_sum)
    x, y = tf.ones([2, 4]), tf.ones([5, 4])
    layer(x)
    layer(y)
    assert len(layer.losses) == 2 and len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2
    assert layer.get_losses_for(y) == layer.losses[1:] and layer.get_losses_for(None) == []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        output, loss = session.run([layer.get_output_at(1), layer.losses[1]])
    np.testing.assert_allclose(loss, output.sum() / 5, rtol=1e-6)


def test_losses_and_updates_by_hand() -> None:
    layer, x = Affine(), tf.ones([2, 4])
    free, bound, update = tf.constant(1.0), tf.reduce_sum(x), tf.no_op()
    layer.add_loss(free)
    layer.add_loss([bound], inputs=x)
    layer.add_update(update)
    layer.add_update([update], inputs=[x])
    assert layer.losses == [free, bound] and layer.updates == [update, update]
    assert layer.get_losses_for(None) == [free] and layer.get_losses_for([x]) == [bound]
    assert layer.get_updates_for(None) == layer.get_updates_for(x) == [update]
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == [update]


def test_the_collection_of_updates_is_there_from_the_first_call_on() -> None:
    """As in TensorFlow: a graph's collections have that key; its MetaGraph has no empty collections."""
    layer, graph = Affine(), tf.get_default_graph()
    assert tf.GraphKeys.UPDATE_OPS not in graph.get_all_collection_keys()
    layer(tf.ones([2, 4]))
    assert tf.GraphKeys.UPDATE_OPS in graph.get_all_collection_keys()
    assert tf.GraphKeys.UPDATE_OPS not in tf.train.export_meta_graph().collection_def


def test_what_it_was_called_with() -> None:
    layer, x = Affine(), tf.ones([2, 4])
    with pytest.raises(AttributeError, match="Layer affine_1 is not connected"):
        layer.input  # noqa: B018
    y = layer.apply(x)
    assert (layer.input, layer.output) == (x, y)
    assert (layer.input_shape, layer.output_shape) == ((2, 4), (2, 3))
    z = layer(tf.ones([5, 4]))
    assert layer.get_output_at(1) is z and layer.get_input_at(0) is x
    assert layer.get_input_shape_at(1) == (5, 4)
    assert layer.get_output_shape_at(1) == (5, 3)
    with pytest.raises(AttributeError, match="has multiple inbound nodes"):
        layer.output_shape  # noqa: B018
    with pytest.raises(ValueError, match="Asked to get input at node 2, but the layer has only 2"):
        layer.get_input_at(2)


def test_arrays_become_tensors() -> None:
    assert Affine()(np.ones([2, 4], "float32")).shape.as_list() == [2, 3]


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Keyword argument not understood:.*foo"):
        Affine(foo=1)
    with pytest.raises(ValueError, match="No name available for layer scope"):
        Affine().scope_name  # noqa: B018
    with pytest.raises(ValueError, match="You tried to call `count_params` on affine_2, but the layer isn't"):
        Affine().count_params()
    with pytest.raises(TypeError, match=r"Unknown keyword argument:.*foo"):
        Affine().add_weight("w", [1], foo=1)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"ndim": 3}, "expected ndim=3, found ndim=2"),
        ({"min_ndim": 3}, "expected min_ndim=3, found ndim=2"),
        ({"max_ndim": 1}, "expected max_ndim=1, found ndim=2"),
        ({"axes": {-1: 5}}, "expected axis -1 of input shape to have value 5 but received"),
        ({"shape": [3, None]}, r"expected shape=\(3, None\), found shape=\[2, 4\]"),
        ({"dtype": "int32"}, "expected dtype=int32, found dtype=<dtype: 'float32'>"),
    ],
)
def test_input_specs(spec: dict[str, Any], fault: str) -> None:
    layer = Affine()
    layer.input_spec = InputSpec(**spec)
    with pytest.raises(ValueError, match=f"Input 0 (of layer affine_1 )?is incompatible with .*: {fault}"):
        layer(tf.ones([2, 4]))


def test_input_specs_admit_sizes_that_are_not_known() -> None:
    layer = Affine()
    layer.input_spec = InputSpec(axes={0: 3})
    assert layer(tf.placeholder(tf.float32, [None, 4])).shape.as_list() == [None, 3]
    assert layer(tf.placeholder(tf.float32)).op.name == "affine/add_1"


@pytest.mark.parametrize("demand", ["ndim", "min_ndim", "max_ndim"])
def test_a_rank_that_is_demanded_has_to_be_known(demand: str) -> None:
    layer = Affine()
    layer.input_spec = InputSpec(**{demand: 2})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="its rank is undefined, but the layer requires a defined rank"):
        layer(tf.placeholder(tf.float32))
