"""Models of a program's own class, made of a SavedModel again, without the class.

What comes is a model of a class of that name: its method `call` calls the functions that the SavedModel has,
and its weights are the variables there. It predicts, is evaluated and trained; layers it has none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import flowstone as tf
from flowstone.keras.published import own

__all__ = ["Origin", "revive"]


class Origin(NamedTuple):
    """The class of a model that was saved, its name, and whether its calls were told about training."""

    class_name: str
    name: str
    takes_training: bool = True


def revive(path: str, origin: Origin) -> Any:
    """The model of the SavedModel in the folder `path`.

    Raises ValueError if its object cannot be called, as where the model used what functions do not take.
    """
    restored: Any = tf.saved_model.load_v2(path)
    if not callable(restored):
        raise ValueError(
            f"{path} is a SavedModel of a model of the class {origin.class_name}, and has no function that "
            "calls it: make an object of the class, and load weights that `save_weights` has written."
        )

    def call(self: Any, inputs: Any, training: Any = None) -> Any:
        """The outputs, as the model that was saved computed them."""
        if not origin.takes_training:
            return restored(inputs)
        told = own("backend").learning_phase() if training is None else training
        if not isinstance(told, tf.Tensor):
            return restored(inputs, training=bool(told))
        is_training = tf.cast(told, tf.bool)
        return tf.cond(
            is_training, lambda: restored(inputs, training=True), lambda: restored(inputs, training=False)
        )

    call.__module__ = __name__
    model = type(origin.class_name, (own("models").Model,), {"call": call})(name=origin.name)
    trainable = list(restored.trainable_variables)
    for variable in restored.variables:
        own("backend").track_variable(variable)
        is_trainable = any(variable is each for each in trainable)
        (model._trainable_weights if is_trainable else model._non_trainable_weights).append(variable)
    return model
