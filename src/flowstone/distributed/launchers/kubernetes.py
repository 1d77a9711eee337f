"""A manifest that starts a cluster on Kubernetes, for ``kubectl apply -f``.

A headless Service gives the tasks names; ``worker-0.NAME:2222`` is the address of a worker. A task that ends
by itself is a Job, restarted as often as the description says; a task that serves is a Deployment of one
pod, which runs until ``kubectl delete -f``. Each has its place in the cluster in ``TF_CONFIG``, and runs
``flowstone cluster task``, which fills the program's arguments in. The cluster's token and certificates are
in a Secret of Kubernetes, which the manifest names; its keys are the files of a folder of secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from flowstone.distributed.launchers.cluster_description import ClusterDescription, Program, Task
from flowstone.distributed.launchers.task_environment import tf_config

__all__ = ["manifest"]

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,40}[a-z0-9])?\Z")


_SECRETS = "/etc/flowstone/secrets"


def manifest(
    description: ClusterDescription,
    name: str,
    image: str,
    port: int = 2222,
    gpus: int = 0,
    secret: str = "",
) -> str:
    """The manifest's text, YAML.

    Args:
        description: the cluster; the program's path is that in the image.
        name: of the cluster, with which the names of all its parts begin.
        image: a container image with flowstone and the program.
        port: at which each task listens in its pod.
        gpus: of each task.
        secret: the name of a Secret with the cluster's token and certificates
            (`distributed/wire/cluster_security.py`); "" for none.

    Raises ValueError for a name that Kubernetes does not allow.
    """
    if not _NAME.match(name):
        raise ValueError(f"a name on Kubernetes has small letters, digits and -, at most 42: {name!r}")
    addresses = {task: f"{_host(task)}.{name}:{port}" for task in description.tasks}
    cluster = description.addresses_by_job(addresses)
    documents = [_service(name, port)]
    for task in description.tasks:
        pod = _pod(description, task, name, image, port, gpus, tf_config(cluster, task))
        if secret:
            _mount(pod, secret)
        is_server = not description.program.path or description.is_passive(task)
        documents.append(_deployment(name, task, pod) if is_server else _job(description, name, task, pod))
    return "".join("---\n" + "".join(_yaml(document)) for document in documents)


def _host(task: Task) -> str:
    return f"{task.job.lower().replace('_', '-')}-{task.index}"


def _labels(name: str, task: Task) -> dict[str, str]:
    return {"app": name, "job": task.job, "task": str(task.index)}


def _service(name: str, port: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,  # tasks look for each other before all are ready
            "selector": {"app": name},
            "ports": [{"name": "grpc", "port": port}],
        },
    }


def _pod(
    description: ClusterDescription, task: Task, name: str, image: str, port: int, gpus: int, place: str
) -> dict[str, Any]:
    """The specification of a task's pod, but for when it is restarted."""
    container: dict[str, Any] = {
        "name": "task",
        "image": image,
        "command": _command(description.program),
        "env": [{"name": "TF_CONFIG", "value": place}, {"name": "PYTHONUNBUFFERED", "value": "1"}],
        "ports": [{"name": "grpc", "containerPort": port}],
    }
    if description.threads is not None:
        container["env"].append({"name": "OMP_NUM_THREADS", "value": str(description.threads)})
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    return {"hostname": _host(task), "subdomain": name, "containers": [container]}


def _mount(pod: dict[str, Any], secret: str) -> None:
    """Has the pod's container find the cluster's secrets."""
    (container,) = pod["containers"]
    container["env"].append({"name": "FLOWSTONE_CLUSTER_SECRETS", "value": _SECRETS})
    container["volumeMounts"] = [{"name": "secrets", "mountPath": _SECRETS, "readOnly": True}]
    pod["volumes"] = [{"name": "secrets", "secret": {"secretName": secret}}]


def _command(program: Program) -> list[str]:
    if not program.path:
        return ["flowstone", "server"]
    flags = [*(["--flags"] if program.with_flags else []), *(["-m"] if program.as_module else [])]
    return ["flowstone", "cluster", "task", *flags, program.path, *program.arguments]


def _job(description: ClusterDescription, name: str, task: Task, pod: dict[str, Any]) -> dict[str, Any]:
    labels = _labels(name, task)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{name}-{_host(task)}", "labels": labels},
        "spec": {
            "backoffLimit": description.restarts,
            "template": {"metadata": {"labels": labels}, "spec": {**pod, "restartPolicy": "Never"}},
        },
    }


def _deployment(name: str, task: Task, pod: dict[str, Any]) -> dict[str, Any]:
    labels = _labels(name, task)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"{name}-{_host(task)}", "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},  # never two of a task
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _yaml(value: dict[str, Any] | list[Any], indent: str = "") -> Iterator[str]:
    """Lines of YAML: blocks of dicts and lists, with scalars as JSON writes them, which YAML reads."""
    items = value.items() if isinstance(value, dict) else ((None, each) for each in value)
    for key, item in items:
        start = indent + ("-" if key is None else f"{key}:")
        if not isinstance(item, (dict, list)):
            yield f"{start} {json.dumps(item, ensure_ascii=False)}\n"
        elif key is None:  # the first line of a list's item stands behind its dash
            first, *rest = _yaml(item, indent + "  ")
            yield f"{indent}- {first.lstrip()}"
            yield from rest
        else:
            yield f"{start}\n"
            yield from _yaml(item, indent + "  ")
