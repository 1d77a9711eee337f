"""Which process groups exchange large values; groups of NCCL where there are GPUs for them."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from flowstone.distributed.links.collective_exchange import Exchange, Inviter
from flowstone.distributed.links.process_groups import GLOO, NCCL, backend_for, has_gloo, has_nccl
from flowstone.ops.collectives.offers import BROADCAST, EXCHANGE, GATHER, REDUCE, SCATTER, Offer

COUNT = 100_000
GPUS = torch.cuda.device_count() if has_nccl() else 0


def offers(gpus: list[str], kind: str = REDUCE) -> list[Offer]:
    """What members on these GPUs bring ("": on the host)."""
    found = []
    for rank, gpu in enumerate(gpus):
        device = torch.device("cuda", rank) if gpu else torch.device("cpu")
        value = torch.arange(COUNT * 2, dtype=torch.float32).reshape(-1, 2).to(device) + rank
        member = f"/job:worker/replica:0/task:{rank}/device:{'GPU' if gpu else 'CPU'}:0"
        found.append(
            Offer(
                kind, 1, len(gpus), 1, member, "node", "float32", tuple(value.shape), "sum",
                is_source=rank == 1, stays=True, value=value, device=device, gpu=gpu,
            )
        )  # fmt: skip
    return found


def exchanged(given: list[Offer], inviter: Inviter, broke: Any = None) -> list[torch.Tensor]:
    """The members' results, each by an `Exchange` of its own, on the host."""
    results: list[Any] = [None] * len(given)
    ended = threading.Semaphore(0)
    exchanges = [Exchange("localhost", inviter.broke if broke is None else broke) for _ in given]
    for rank, (invitation, offer) in enumerate(zip(inviter.invitations(given), given)):

        def report(outputs: Any, error: Any, rank: int = rank) -> None:
            results[rank] = error or outputs[0].cpu()
            ended.release()

        exchanges[rank].run(invitation, offer, report)
    for _ in given:
        assert ended.acquire(timeout=90)
    for each in exchanges:
        each.end()
    return results


def expected(kind: str) -> list[torch.Tensor]:
    own = [offer.value for offer in offers(["", ""], kind)]
    total = own[0] + own[1]
    return {
        REDUCE: [total, total],
        SCATTER: list(total.chunk(2)),
        GATHER: [torch.cat(own)] * 2,
        BROADCAST: [own[1], own[1]],
        EXCHANGE: [torch.cat(column) for column in zip(own[0].chunk(2), own[1].chunk(2))],
    }[kind]


def test_nccl_is_for_members_with_a_gpu_each() -> None:
    assert backend_for(["GPU-a", "GPU-b"]) == NCCL
    for others in (["GPU-a", "GPU-a"], ["GPU-a", ""], ["", ""]):
        assert backend_for(others) == GLOO


def test_a_group_of_nccl_that_broke_is_followed_by_one_of_gloo() -> None:
    inviter = Inviter("localhost")
    given = [offer._replace(gpu=f"GPU-{rank}") for rank, offer in enumerate(offers(["", ""]))]
    first = inviter.invitations(given)
    assert [(each.backend, each.turn) for each in first] == [(NCCL, 0)] * 2
    assert [(each.backend, each.turn) for each in inviter.invitations(given)] == [(NCCL, 1)] * 2
    inviter.broke(first[0].communicator)
    then = inviter.invitations(given)
    assert [(each.backend, each.turn) for each in then] == [(GLOO, 0)] * 2
    assert then[0].communicator != first[0].communicator


def test_a_lost_task_takes_its_groups_with_it() -> None:
    inviter = Inviter("localhost")
    first = inviter.invitations(offers(["", ""]))[0].communicator
    inviter.lost("/job:worker/replica:0/task:7")
    assert inviter.invitations(offers(["", ""]))[0].communicator == first
    inviter.lost("/job:worker/replica:0/task:1")
    assert inviter.invitations(offers(["", ""]))[0].communicator != first


@pytest.mark.skipif(has_nccl(), reason="here torch has NCCL")
def test_where_torch_has_no_nccl_nobody_offers_it() -> None:
    """A member that asks for NCCL and cannot have it says so to the leader, who then takes Gloo."""
    (offer, _) = offers(["", ""])
    told = Exchange("localhost", lambda name: None).offered(offer._replace(gpu="GPU-a", stays=False))
    assert (told.stays, told.gpu) == (True, "")


@pytest.mark.parametrize("kind", [REDUCE, GATHER, BROADCAST, SCATTER, EXCHANGE])
@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(GLOO, marks=pytest.mark.skipif(not has_gloo(), reason="needs Gloo")),
        pytest.param(NCCL, marks=pytest.mark.skipif(GPUS < 2, reason="NCCL needs two GPUs")),
    ],
)
def test_values_are_exchanged(backend: str, kind: str) -> None:
    gpus = ["", ""] if backend == GLOO else ["GPU-a", "GPU-b"]
    inviter = Inviter("localhost")
    given = offers(gpus, kind)
    assert inviter.invitations(given)[0].backend == backend
    for found, wanted in zip(exchanged(given, Inviter("localhost")), expected(kind)):
        assert torch.equal(found, wanted), found


def test_a_group_that_cannot_be_formed_is_an_error_and_then_one_of_gloo() -> None:
    """Members that say they are on GPUs which are not there: their step fails, the next one is of Gloo."""
    if GPUS >= 2:
        pytest.skip("here NCCL works")
    inviter = Inviter("localhost")
    given = [offer._replace(gpu=f"GPU-{rank}") for rank, offer in enumerate(offers(["", ""]))]
    for error in exchanged(given, inviter):
        assert "exchange of values among 2 members failed" in str(error)
    for found, wanted in zip(exchanged(given, inviter), expected(REDUCE)):
        assert torch.equal(found, wanted)
