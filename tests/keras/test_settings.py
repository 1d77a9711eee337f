"""Settings of Keras: the float type, epsilon and the order of an image's axes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from flowstone.keras import settings


@pytest.fixture(autouse=True)
def _unchanged() -> Iterator[None]:
    before = dict(settings._settings)
    yield
    settings._settings.update(before)


def test_defaults() -> None:
    assert settings.floatx() == "float32"
    assert settings.epsilon() == 1e-7
    assert settings.image_data_format() == "channels_last"


def test_settings_change_what_is_made() -> None:
    settings.set_floatx("float64")
    settings.set_epsilon(1e-3)
    settings.set_image_data_format("channels_first")
    assert settings.cast_to_floatx([1, 2]).dtype == np.float64
    assert settings.epsilon() == 1e-3
    assert settings.image_data_format() == "channels_first"


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="Unknown floatx type"):
        settings.set_floatx("int32")
    with pytest.raises(ValueError, match="Unknown data_format"):
        settings.set_image_data_format("channels")
