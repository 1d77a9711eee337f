"""Every test here begins with an empty default graph."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import flowstone as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    """The default graph of the test."""
    with tf.Graph().as_default() as graph:
        yield graph
