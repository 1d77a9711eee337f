"""Resolvers of clusters; what they answer follows from the addresses given."""

from __future__ import annotations

import json

import pytest

import flowstone as tf

resolvers = tf.contrib.cluster_resolver
CLUSTER = tf.train.ClusterSpec({"ps": ["a:1"], "worker": ["b:1", "c:1"]})


def test_a_known_cluster() -> None:
    simple = resolvers.SimpleClusterResolver(CLUSTER, "m", "worker", 1, "here", {"GPU": 3}, "grpc")
    assert isinstance(simple, resolvers.ClusterResolver)
    assert simple.cluster_spec() == CLUSTER
    assert (simple.master(), simple.master("worker", 1)) == ("m", "grpc://c:1")
    assert (simple.task_type, simple.task_id, simple.environment) == ("worker", 1, "here")
    assert simple.num_accelerators() == {"GPU": 3}
    count = tf.contrib.eager.num_gpus()
    assert resolvers.SimpleClusterResolver(CLUSTER).num_accelerators().get("GPU", 0) == count
    with pytest.raises(TypeError):
        resolvers.SimpleClusterResolver({"ps": ["a:1"]})


def test_several_clusters() -> None:
    first = resolvers.SimpleClusterResolver(CLUSTER, "m", "ps", 0, "here", {"GPU": 1})
    second = resolvers.SimpleClusterResolver(tf.train.ClusterSpec({"worker": ["c:1", "d:1"]}))
    union = resolvers.UnionClusterResolver(first, second, rpc_layer="grpc")
    assert union.cluster_spec().as_dict() == {"ps": ["a:1"], "worker": ["b:1", "c:1", "d:1"]}
    assert (union.master(), union.master("ps", 0)) == ("m", "grpc://a:1")
    assert (union.task_type, union.task_id, union.environment) == ("ps", 0, "here")
    assert union.num_accelerators() == {"GPU": 1}
    third, fourth = (
        resolvers.SimpleClusterResolver(tf.train.ClusterSpec({"ps": {2: address}}))
        for address in ("y:1", "z:1")
    )
    assert resolvers.UnionClusterResolver(first, third).cluster_spec().as_dict()["ps"] == {0: "a:1", 2: "y:1"}
    with pytest.raises(KeyError):
        resolvers.UnionClusterResolver(third, fourth).cluster_spec()
    with pytest.raises(ValueError):
        resolvers.UnionClusterResolver()
    with pytest.raises(TypeError):
        resolvers.UnionClusterResolver(CLUSTER)


def test_the_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"cluster": CLUSTER.as_dict(), "task": {"type": "worker", "index": "1"}, "rpc_layer": "grpc"}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    found = resolvers.TFConfigClusterResolver(environment="there")
    assert found.cluster_spec() == CLUSTER
    assert (found.master(), found.master("ps", 0, "rpc")) == ("grpc://c:1", "rpc://a:1")
    assert (found.task_type, found.task_id, found.environment) == ("worker", 1, "there")
    monkeypatch.delenv("TF_CONFIG")
    assert resolvers.TFConfigClusterResolver().master() == ""


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("GCEClusterResolver", ["project", "zone", "group", 80]),
        ("GceClusterResolver", ["project", "zone", "group", 80]),
        ("KubernetesClusterResolver", []),
        ("TPUClusterResolver", []),
    ],
)
def test_clouds_are_refused(name: str, arguments: list[object]) -> None:
    with pytest.raises(NotImplementedError, match=f"{name}: use "):
        getattr(resolvers, name)(*arguments)
    assert issubclass(getattr(resolvers, name), resolvers.ClusterResolver)
