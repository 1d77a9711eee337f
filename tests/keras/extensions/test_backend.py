"""`tf.keras.backend`: what counts as a tensor."""

from __future__ import annotations

from typing import Any

import pytest
from tests.keras.published import with_keras

import flowstone as tf
from flowstone.keras import tf_utils

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


class Registered:
    """What a library has registered, as TensorFlow Probability does its distributions."""


def test_objects_of_registered_classes_are_tensors(monkeypatch: Any) -> None:
    monkeypatch.setattr(tf_utils, "_symbolic_types", [])
    is_keras_tensor, found = tf.keras.backend.is_keras_tensor, Registered()
    with pytest.raises(ValueError, match="Registered"):
        is_keras_tensor(found)
    tf_utils.register_symbolic_tensor_type(Registered)
    assert not is_keras_tensor(found) and not is_keras_tensor(tf.ones([2]))
    assert is_keras_tensor(tf.keras.Input((2,)))
