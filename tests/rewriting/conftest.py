"""Each test of a rewriting pass builds its own graph."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import flowstone as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    """The test's default graph."""
    with tf.Graph().as_default() as g:
        yield g
