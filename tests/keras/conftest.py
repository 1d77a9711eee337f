"""What tests of Keras begin with; each undoes what it changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import flowstone as tf


@pytest.fixture
def keras_graph() -> Iterator[None]:
    """A graph and a session of Keras' own, which are new."""
    tf.keras.backend.clear_session()
    yield
    tf.keras.backend.clear_session()
