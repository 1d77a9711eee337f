"""Tasks' places from Slurm's variables."""

from __future__ import annotations

import pytest

from flowstone.distributed.launchers.cluster_description import ClusterDescription, Program, Task
from flowstone.distributed.launchers.slurm import from_slurm, nodes, tasks_per_node

CLUSTER = ClusterDescription({"ps": 1, "worker": 3}, Program("p.py"))
STEP = {
    "SLURM_JOB_ID": "1234",
    "SLURM_PROCID": "2",
    "SLURM_NTASKS": "9",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_NODELIST": "n[07-08]",
    "SLURM_STEP_TASKS_PER_NODE": "3,1",
}


def test_blocks_of_ranks() -> None:
    """Job 1234 has the ports from 12000 + 64 * (1234 mod 300) on."""
    cluster, task = from_slurm(CLUSTER, STEP)
    assert task == Task("worker", 1)
    assert cluster == {"ps": ["n07:14176"], "worker": ["n07:14177", "n07:14178", "n08:14176"]}


def test_ranks_in_turn_with_reserved_ports() -> None:
    variables = STEP | {"SLURM_DISTRIBUTION": "cyclic:block", "SLURM_STEP_RESV_PORTS": "12001-12002,12010"}
    cluster, _ = from_slurm(CLUSTER, variables)
    assert cluster == {"ps": ["n07:12001"], "worker": ["n08:12001", "n07:12002", "n07:12010"]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"SLURM_PROCID": ""}, "no step of Slurm"),
        ({"SLURM_PROCID": "x"}, "should be a number"),
        ({"SLURM_STEP_NUM_TASKS": "5"}, "5 processes and the cluster has 4 tasks"),
        ({"SLURM_STEP_TASKS_PER_NODE": "4"}, "2 nodes and the processes of 1"),
        ({"SLURM_STEP_TASKS_PER_NODE": "1(x2)"}, "place 2 processes, not 4"),
        ({"SLURM_STEP_TASKS_PER_NODE": "2,x"}, "'2,x'"),
        ({"SLURM_DISTRIBUTION": "plane=2"}, "srun -m plane=2: use block or cyclic"),
        ({"SLURM_STEP_RESV_PORTS": "12001-12002"}, "than there are ports: 2"),
    ],
)
def test_variables_that_do_not_fit(change: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_slurm(CLUSTER, STEP | change)


def test_short_forms() -> None:
    """As `scontrol show hostnames` of Slurm 22.05 prints them."""
    assert nodes("a") == ["a"]
    assert nodes("a,b-[1,3-4],c[001-002]") == ["a", "b-1", "b-3", "b-4", "c001", "c002"]
    assert nodes("r[1-2]n[8-9]") == ["r1n8", "r1n9", "r2n8", "r2n9"]
    assert tasks_per_node("2(x3),1") == [2, 2, 2, 1]
