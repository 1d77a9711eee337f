"""`tf.Module`."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


class Sample(tf.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self._value = tf.placeholder(tf.float32, [None, 2])

    @property
    def shape(self) -> Any:
        return self._value.shape

    @property
    def value(self) -> Any:
        return self._value


def test_a_property_without_a_setter_takes_what_it_has() -> None:
    """As in TensorFlow; layers of TensorFlow Probability do that to distributions."""
    sample = Sample()
    sample.shape = sample.shape
    sample.value = sample.value
    for name, other in {"shape": tf.TensorShape([2, 2]), "value": tf.constant(1.0)}.items():
        with pytest.raises(AttributeError, match=name):
            setattr(sample, name, other)
    assert sample.shape.as_list() == [None, 2]
