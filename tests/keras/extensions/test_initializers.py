"""Initialisers with TensorFlow's arguments."""

from __future__ import annotations

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras]


@pytest.mark.parametrize(("kind", "limit"), [("truncated_normal", 2.3), ("untruncated_normal", 6.0)])
def test_normal_distributions(kind: str, limit: float) -> None:
    initializer = tf.keras.initializers.VarianceScaling(2.0, distribution=kind, seed=1)
    with tf.Graph().as_default(), tf.Session() as session:
        numbers = session.run(initializer([100, 200]))
    deviation = np.sqrt(2.0 / 100)
    assert numbers.std() == pytest.approx(deviation, rel=0.05)
    assert (np.abs(numbers).max() > 2.5 * deviation) == (kind == "untruncated_normal")
    assert np.abs(numbers).max() < limit * deviation
    config = initializer.get_config()
    assert type(initializer).from_config(config).get_config()["distribution"] in (kind, "normal")


def test_other_distributions_are_refused() -> None:
    with pytest.raises(ValueError, match="distribution"):
        tf.keras.initializers.VarianceScaling(distribution="z")
