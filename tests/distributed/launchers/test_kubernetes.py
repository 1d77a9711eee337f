"""Manifests, read back as YAML."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from flowstone.distributed.launchers.cluster_description import ClusterDescription, Program
from flowstone.distributed.launchers.kubernetes import manifest

CLUSTER = ClusterDescription(
    {"ps": 1, "worker": 2, "my_job": 1},
    Program("train.py", ("--text", "a: b\n# ü"), with_flags=True),
    restarts=3,
    threads=2,
)


def documents(cluster: ClusterDescription = CLUSTER, gpus: int = 0) -> list[Any]:
    return list(yaml.safe_load_all(manifest(cluster, "mnist", "registry/image:1", 3333, gpus)))


def test_every_task_has_a_pod_with_its_place() -> None:
    service, ps, first, second, other = documents()
    assert service["kind"] == "Service" and service["spec"]["clusterIP"] == "None"
    assert ps["kind"] == "Deployment" and [each["kind"] for each in (first, second, other)] == ["Job"] * 3
    assert first["spec"]["backoffLimit"] == 3
    assert first["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    pod = second["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (pod["hostname"], pod["subdomain"], container["image"]) == (
        "worker-1",
        "mnist",
        "registry/image:1",
    )
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert json.loads(variables["TF_CONFIG"]) == {
        "cluster": {
            "ps": ["ps-0.mnist:3333"],
            "worker": ["worker-0.mnist:3333", "worker-1.mnist:3333"],
            "my_job": ["my-job-0.mnist:3333"],
        },
        "task": {"type": "worker", "index": 1},
    }
    assert variables["OMP_NUM_THREADS"] == "2"
    assert container["command"] == [
        "flowstone",
        "cluster",
        "task",
        "--flags",
        "train.py",
        "--text",
        "a: b\n# ü",
    ]


def test_secrets_are_mounted_and_not_written() -> None:
    text = manifest(CLUSTER, "mnist", "registry/image:1", secret="mnist-secrets")
    _, *tasks = yaml.safe_load_all(text)
    assert len(tasks) == 4
    for task in tasks:
        pod = task["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        variables = {each["name"]: each["value"] for each in container["env"]}
        (mount,) = container["volumeMounts"]
        assert variables["FLOWSTONE_CLUSTER_SECRETS"] == mount["mountPath"] and mount["readOnly"]
        (volume,) = pod["volumes"]
        assert volume == {"name": mount["name"], "secret": {"secretName": "mnist-secrets"}}
    assert "volumes" not in documents()[1]["spec"]["template"]["spec"]


def test_a_deployment_selects_its_own_pod() -> None:
    specification = documents()[1]["spec"]
    assert specification["selector"]["matchLabels"] == specification["template"]["metadata"]["labels"]
    assert documents()[0]["spec"]["selector"].items() <= specification["selector"]["matchLabels"].items()
    assert specification["strategy"] == {"type": "Recreate"}


def test_servers_and_gpus() -> None:
    service, worker = documents(ClusterDescription({"worker": 1}, Program("")), gpus=2)
    container = worker["spec"]["template"]["spec"]["containers"][0]
    assert (service["kind"], worker["kind"]) == ("Service", "Deployment")
    assert container["command"] == ["flowstone", "server"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 2}}


def test_a_name_that_kubernetes_refuses() -> None:
    with pytest.raises(ValueError, match="'My_Model'"):
        manifest(CLUSTER, "My_Model", "image")
