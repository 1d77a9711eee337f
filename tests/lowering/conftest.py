"""Each test of a pass builds its own graph."""

from tests.rewriting.conftest import graph

__all__ = ["graph"]
