"""`tf.keras.experimental.LinearModel` and `WideDeepModel`, which the package does not have.

Source of the second: Cheng et al. (2016), "Wide & deep learning for recommender systems", arXiv 1606.07792.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flowstone.framework.tensors import nest
from flowstone.keras.extensions.calls import has_argument
from flowstone.keras.extensions.optimizer_base import Optimizer
from flowstone.keras.published import own

__all__ = ["extend"]


def _linear_class(model: Any) -> Any:
    class LinearModel(model):  # type: ignore[misc]
        """The sum of products of each input [batch, n] with weights [n, units], and a bias: [batch, units].

        Args:
            units: the number of sums.
            activation: the function of the sums; by default none.
            use_bias: whether there is a bias.
            kernel_initializer, bias_initializer: of the weights.
            kernel_regularizer, bias_regularizer: of the weights.
        """

        def __init__(
            self,
            units: int = 1,
            activation: Any = None,
            use_bias: bool = True,
            kernel_initializer: Any = "glorot_uniform",
            bias_initializer: Any = "zeros",
            kernel_regularizer: Any = None,
            bias_regularizer: Any = None,
            **keywords: Any,
        ) -> None:
            self.units, self.use_bias = units, use_bias
            super().__init__(**keywords)
            self.activation = own("activations").get(activation)
            self.kernel_initializer = own("initializers").get(kernel_initializer)
            self.bias_initializer = own("initializers").get(bias_initializer)
            self.kernel_regularizer = own("regularizers").get(kernel_regularizer)
            self.bias_regularizer = own("regularizers").get(bias_regularizer)
            self.bias = None

        def build(self, input_shape: Any) -> None:
            """Makes the weights; they are built with the first inputs."""
            self.dense_layers = [
                own("layers").Dense(
                    self.units,
                    use_bias=False,
                    kernel_initializer=self.kernel_initializer,
                    kernel_regularizer=self.kernel_regularizer,
                )
                for _ in range(len(input_shape) if isinstance(input_shape, list) else 1)
            ]
            if self.use_bias:
                self.bias = self.add_weight(
                    "bias",
                    (self.units,),
                    initializer=self.bias_initializer,
                    regularizer=self.bias_regularizer,
                )
            self.built = True

        def call(self, inputs: Any) -> Any:
            """The sums for a tensor, or for a list of them."""
            products = [layer(x) for layer, x in zip(self.dense_layers, nest.flatten(inputs))]
            result = sum(products[1:], products[0])
            if self.use_bias:
                result = own("backend").bias_add(result, self.bias)
            return result if self.activation is None else self.activation(result)

        def get_config(self) -> dict[str, Any]:
            """What it is made of."""
            initializers, regularizers = own("initializers"), own("regularizers")
            return {
                "name": self.name,
                "trainable": self.trainable,
                "dtype": self.dtype,
                "units": self.units,
                "activation": own("activations").serialize(self.activation),
                "use_bias": self.use_bias,
                "kernel_initializer": initializers.serialize(self.kernel_initializer),
                "bias_initializer": initializers.serialize(self.bias_initializer),
                "kernel_regularizer": regularizers.serialize(self.kernel_regularizer),
                "bias_regularizer": regularizers.serialize(self.bias_regularizer),
            }

        @classmethod
        def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
            """A model of this configuration."""
            return cls(**config)

    return LinearModel


def _wide_deep_class(model: Any) -> Any:
    class WideDeepModel(model):  # type: ignore[misc]
        """The mean of the outputs of a linear model and a deep one, trained together.

        A call takes [inputs of the linear model, inputs of the deep one], or one tensor for both. `compile`
        takes one optimiser, or a list: that of the linear model's weights, and that of the others.

        Args:
            linear_model, dnn_model: models of outputs of one structure.
            activation: the function of the mean; by default none.
        """

        def __init__(
            self, linear_model: Any, dnn_model: Any, activation: Any = None, **keywords: Any
        ) -> None:
            super().__init__(**keywords)
            self.linear_model, self.dnn_model = linear_model, dnn_model
            self.activation = own("activations").get(activation)

        def call(self, inputs: Any, training: Any = None) -> Any:
            """The mean of both outputs."""
            pair = inputs if isinstance(inputs, (list, tuple)) and len(inputs) == 2 else (inputs, inputs)
            wide, deep = (
                part(x, training=training) if has_argument(part.call, "training") else part(x)
                for part, x in zip((self.linear_model, self.dnn_model), pair)
            )
            mean = nest.map_structure(lambda x, y: 0.5 * (x + y), wide, deep)
            return mean if self.activation is None else nest.map_structure(self.activation, mean)

        def compile(self, optimizer: Any = "rmsprop", *arguments: Any, **keywords: Any) -> Any:
            """See `tf.keras.Model.compile`; `optimizer` may be a list of two."""
            if isinstance(optimizer, (list, tuple)):
                linear, deep = (own("optimizers").get(each) for each in optimizer)
                optimizer = _SplitOptimizer(self, linear, deep)
            return super().compile(optimizer, *arguments, **keywords)

        def get_config(self) -> dict[str, Any]:
            """What it is made of."""
            serialize = own("utils.generic_utils").serialize_keras_object
            return {
                "name": self.name,
                "trainable": self.trainable,
                "dtype": self.dtype,
                "linear_model": serialize(self.linear_model),
                "dnn_model": serialize(self.dnn_model),
                "activation": own("activations").serialize(self.activation),
            }

        @classmethod
        def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
            """A model of this configuration."""
            made = own("layers").deserialize
            known = {"LinearModel": own("models").LinearModel, **(custom_objects or {})}
            parts = {key: made(config[key], known) for key in ("linear_model", "dnn_model")}
            return cls(**{**config, **parts})

    return WideDeepModel


class _SplitOptimizer(Optimizer):
    """Two optimisers: one of the linear model's weights, one of all others."""

    def __init__(self, model: Any, linear: Any, deep: Any) -> None:
        super().__init__("SplitOptimizer")
        self._model, self._parts = model, (linear, deep)

    def get_updates(self, loss: Any, params: Any) -> list[Any]:
        """The updates of a step by both."""
        linear = {id(weight) for weight in self._model.linear_model.trainable_weights}
        updates: list[Any] = []
        for part, is_linear in zip(self._parts, (True, False)):
            weights = [weight for weight in params if (id(weight) in linear) == is_linear]
            updates += part.get_updates(params=weights, loss=loss)
        return updates

    @property
    def weights(self) -> list[Any]:
        """Those of both."""
        return [weight for part in self._parts for weight in part.weights]


def extend(module: ModuleType) -> None:
    """Puts the classes into `keras.models`, and where configurations of layers are looked up."""
    names = vars(module)
    for make in (_linear_class, _wide_deep_class):
        made = make(names["Model"])
        made.__qualname__ = made.__name__  # its module stays: lists that are attributes are a program's
        names[made.__name__] = made
