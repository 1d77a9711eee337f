"""`Predictor`: a session that computes the outputs of a graph for fed inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flowstone as tf

__all__ = ["Predictor"]


class Predictor:
    """Calls ``predictor({"x": array})`` give ``{"y": array}``.

    `graph`, `session`: where it runs. `feed_tensors`, `fetch_tensors`: the tensors by name.
    """

    def __init__(
        self, session: tf.Session, feed_tensors: Mapping[str, Any], fetch_tensors: Mapping[str, Any]
    ) -> None:
        self._session = session
        self._feed_tensors, self._fetch_tensors = dict(feed_tensors), dict(fetch_tensors)

    def __repr__(self) -> str:
        feeds, fetches = self._feed_tensors, self._fetch_tensors
        return f"{type(self).__name__} with feed tensors {feeds} and fetch_tensors {fetches}"

    @property
    def graph(self) -> tf.Graph:
        """The graph."""
        graph: tf.Graph = self._session.graph
        return graph

    @property
    def session(self) -> tf.Session:
        """The session."""
        return self._session

    @property
    def feed_tensors(self) -> dict[str, Any]:
        """The inputs by name."""
        return self._feed_tensors

    @property
    def fetch_tensors(self) -> dict[str, Any]:
        """The outputs by name."""
        return self._fetch_tensors

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs for these inputs. ValueError for a name that is no input."""
        unknown = sorted(set(input_dict) - set(self._feed_tensors))
        if unknown:
            raise ValueError(
                f"Got unexpected keys in input_dict: {unknown}\nexpected: {sorted(self._feed_tensors)}"
            )
        feeds = {self._feed_tensors[name]: value for name, value in input_dict.items()}
        found: dict[str, Any] = self._session.run(self._fetch_tensors, feeds)
        return found
