"""A cluster that the tests of a file share; they use names of their own, in graphs of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

import clusters
import flowstone as tf


@pytest.fixture(scope="module")
def cluster() -> Iterator[clusters.Cluster]:
    with clusters.running(ps=1, worker=2) as found:
        yield found


@pytest.fixture(params=["own server", "messages"])
def connection(request: pytest.FixtureRequest) -> Iterator[None]:
    """Sessions connect to a server of this process, without messages and with them."""
    with clusters.by_messages() if request.param == "messages" else contextlib.nullcontext():
        yield


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as found:
        yield found
