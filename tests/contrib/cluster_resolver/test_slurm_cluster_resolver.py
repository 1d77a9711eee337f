"""`SlurmClusterResolver`: what TensorFlow 1.15.5's gives for the same variables and the same ``scontrol``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import flowstone as tf

SlurmClusterResolver = tf.contrib.cluster_resolver.SlurmClusterResolver
HOSTS = ("t02n13", "t02n41", "t02n43", "t02n44")


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    program = tmp_path / "scontrol"
    program.write_text("#!/bin/sh\n" + "".join(f"echo {host}\n" for host in HOSTS))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for name in ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    return monkeypatch


def test_a_task_a_node(job: pytest.MonkeyPatch) -> None:
    job.setenv("SLURM_PROCID", "0")
    job.setenv("SLURM_NTASKS", "4")
    resolver = SlurmClusterResolver({"worker": 3, "ps": 1}, auto_set_gpu=False)
    assert (resolver.get_task_info(), resolver.master()) == ((None, None), "")
    assert resolver.cluster_spec().as_dict() == {
        "ps": ["t02n13:8888"],
        "worker": ["t02n41:8888", "t02n43:8888", "t02n44:8888"],
    }
    assert (resolver.get_task_info(), resolver.master()) == (("ps", 0), "grpc://t02n13:8888")
    assert resolver.master("worker", 0) == "grpc://t02n41:8888"
    assert resolver.master("ps", 0, "x") == "x://t02n13:8888"
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    assert resolver.environment == ""


def test_several_tasks_and_gpus_a_node(job: pytest.MonkeyPatch) -> None:
    job.setenv("SLURM_PROCID", "7")
    job.setenv("SLURM_NTASKS", "8")
    jobs = {"ps": 1, "worker": 7}
    resolver = SlurmClusterResolver(jobs, 100, 4, 2, tasks_per_node=2, rpc_layer="foo")
    found = resolver.cluster_spec().as_dict()
    assert found["ps"] == ["t02n13:100"]
    assert found["worker"][:3] == ["t02n13:101", "t02n41:100", "t02n41:101"]
    assert (resolver.get_task_info(), resolver.master()) == (("worker", 6), "foo://t02n44:101")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert resolver.num_accelerators() == {"GPU": 2}


def test_more_than_there_is(job: pytest.MonkeyPatch) -> None:
    job.setenv("SLURM_NTASKS", "4")
    with pytest.raises(RuntimeError, match="number of tasks"):
        SlurmClusterResolver({"ps": 1, "worker": 1})
    with pytest.raises(RuntimeError, match="GPUs"):
        SlurmClusterResolver({"worker": 4}, gpus_per_task=2)
    job.delenv("SLURM_NTASKS_PER_NODE")
    with pytest.raises(RuntimeError, match="SLURM_NTASKS_PER_NODE"):
        SlurmClusterResolver({"worker": 4})
    job.delenv("SLURM_NTASKS")
    with pytest.raises(KeyError):
        SlurmClusterResolver({"worker": 4})
