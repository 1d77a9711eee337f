"""A client in a process of its own gets of our servers what TensorFlow's clients get of theirs.

`any_client.py`, as a command, has TensorFlow's clients drive our servers, and ours theirs.
"""

from __future__ import annotations

import json

import any_client
import pytest

import clusters


def test_what_steps_give(cluster: clusters.Cluster) -> None:
    expected = json.loads(any_client.GOLDEN.read_text(encoding="utf-8"))
    found = any_client.results(any_client.OURS, cluster.target())
    assert len(expected) >= 12
    assert any_client.difference(found, expected) == ""


@pytest.mark.parametrize(
    ("first", "second", "differs"),
    [
        ({"a": [1.0, "x"]}, {"a": [1.000001, "x"]}, ""),
        ({"a": [1.0, 2]}, {"a": [1.1, 3]}, "1.0 and 1.1; 2 and 3"),
        ([1.0], [1.0, 2.0], "[1.0] and [1.0, 2.0]"),
        ({"a": 1}, {"b": 1}, "{'a': 1} and {'b': 1}"),
    ],
)
def test_differences(first: object, second: object, differs: str) -> None:
    assert any_client.difference(first, second) == differs
