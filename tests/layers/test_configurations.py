"""What layers say they are made of, against TensorFlow 1.15 (make_layer_configuration_goldens.py)."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf

GOLDEN = Path(__file__).parents[1] / "golden"


def _maker() -> Any:
    path = GOLDEN / "make_layer_configuration_goldens.py"
    spec = spec_from_file_location("make_layer_configuration_goldens", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_configurations_are_tensorflows() -> None:
    expected = json.loads((GOLDEN / "layers" / "configurations.json").read_text())
    found = _maker().configurations(tf)
    assert [name for name, _ in found] == [name for name, _ in expected]
    for (name, config), (_, other) in zip(found, expected):
        assert config == other, name


def test_a_layer_is_made_of_its_configuration() -> None:
    with tf.Graph().as_default():
        for layer in _maker().layers(tf):
            if isinstance(layer, tf.nn.rnn_cell.MultiRNNCell):
                continue  # its configuration lacks the cells
            again = type(layer).from_config(layer.get_config())
            assert type(again) is type(layer)
            assert again.get_config() == layer.get_config()


def test_functions_that_a_name_does_not_say_are_refused() -> None:
    with tf.Graph().as_default():
        regularizer = tf.contrib.layers.l2_regularizer(0.1)
        layer = tf.layers.Dense(3, kernel_regularizer=regularizer)
        with pytest.raises(ValueError, match="does not say which function"):
            tf.layers.Dense.from_config(layer.get_config())


class Scaled(tf.layers.Layer):
    def __init__(self, units: int, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.units = units


class Described(Scaled):
    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


def test_classes_of_a_program_say_what_they_add() -> None:
    with tf.Graph().as_default():
        with pytest.raises(NotImplementedError, match="must override `get_config`"):
            Scaled(3).get_config()
        config = Described(3, name="q").get_config()
        assert config == {"name": "q", "trainable": True, "dtype": None, "units": 3}
        assert Described.from_config(config).units == 3
