"""Values that go from task to task through process groups. Tests without GPUs have all large values go so,
by Gloo."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import clusters
import flowstone as tf
from flowstone.distributed.links import collective_exchange, group_transfers
from flowstone.distributed.links.process_groups import has_gloo, has_nccl
from flowstone.distributed.servers.server import TaskServer
from flowstone.ops.collectives.offers import BROADCAST

pytestmark = pytest.mark.skipif(not has_gloo(), reason="torch has no process groups here")
LARGE, SMALL = 100_000, 10  # elements
LIMIT = tf.RunOptions(timeout_in_ms=60_000)


@contextlib.contextmanager
def servers(protocols: tuple[str, str]) -> Iterator[list[TaskServer]]:
    """The servers of two workers."""
    addresses = clusters.cluster_of(worker=2)
    found = []
    for task, protocol in enumerate(protocols):
        message = clusters.server_def(addresses, "worker", task)
        message.protocol = protocol
        found.append(TaskServer(message))
    for each in found:
        each.start()
    try:
        yield found
    finally:
        for each in found:
            each.stop()


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values need not be on GPUs."""
    monkeypatch.setattr(group_transfers, "between_gpus", lambda *_: True)


@pytest.fixture
def exchanged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of values that are sent through groups from now on."""
    seen: list[tuple[int, ...]] = []
    kept = collective_exchange._broadcast

    def broadcast(group: Any, invitation: Any, offer: Any) -> torch.Tensor:
        if offer.is_source:
            seen.append(offer.dims)
        return kept(group, invitation, offer)

    monkeypatch.setitem(collective_exchange._EXCHANGES, BROADCAST, broadcast)
    return seen


def there_and_back(count: int, dtype: Any) -> tuple[Any, Any]:
    """A placeholder of task 0, and what task 1 made of its values in task 0."""
    with tf.device("/job:worker/task:0"):
        given = tf.placeholder(dtype, [count])
        turned = tf.reverse(given, [0])
    with tf.device("/job:worker/task:1"):
        changed = tf.concat([turned[-1:], turned[:-1]], 0)
    with tf.device("/job:worker/task:0"):
        return given, tf.reverse(changed, [0])


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16", "complex64"])
def test_large_values_go_through_groups(everywhere: None, exchanged: list[Any], dtype: str) -> None:
    values = np.arange(LARGE * 8) % 3
    given, result = there_and_back(LARGE * 8, tf.as_dtype(dtype))
    fed = values.astype(tf.as_dtype(dtype).as_numpy_dtype)
    with servers(("grpc+gdr", "grpc+gdr")) as (first, _), tf.Session(first.target) as session:
        for _ in range(3):
            found = session.run(result, {given: fed}, options=LIMIT)
            np.testing.assert_array_equal(found, np.roll(fed, -1))
    assert len(exchanged) >= 3


def test_small_values_and_strings_do_not(everywhere: None, exchanged: list[Any]) -> None:
    for count, dtype in ((SMALL, tf.float32), (LARGE, tf.string)):
        given, result = there_and_back(count, dtype)
        fed = [str(i).encode() for i in range(count)] if dtype is tf.string else np.arange(count)
        with servers(("grpc+gdr", "grpc+gdr")) as (first, _), tf.Session(first.target) as session:
            found = session.run(result, {given: fed}, options=LIMIT)
        assert list(found) == [*fed[1:], fed[0]]
    assert exchanged == []


@pytest.mark.parametrize("protocols", [("grpc", "grpc"), ("grpc+gdr", "grpc"), ("grpc+verbs", "grpc+mpi")])
def test_values_of_the_host_never_do(exchanged: list[Any], protocols: tuple[str, str]) -> None:
    given, result = there_and_back(LARGE, tf.float32)
    with servers(protocols) as (first, _), tf.Session(first.target) as session:
        found = session.run(result, {given: np.arange(LARGE)}, options=LIMIT)
    assert (found[0], found[-1]) == (1.0, 0.0)
    assert exchanged == []


def test_both_must_be_on_gpus_of_their_own() -> None:
    on_host = torch.zeros(3)
    assert not group_transfers.between_gpus(on_host, "GPU-a", "GPU-b")
    value: Any = type("OnGpu", (), {"is_cuda": True})()
    assert group_transfers.between_gpus(value, "GPU-a", "GPU-b")
    for own, other in (("GPU-a", "GPU-a"), ("", "GPU-b"), ("GPU-a", "")):
        assert not group_transfers.between_gpus(value, own, other)


def test_a_value_that_its_sender_changes_afterwards_arrives_as_it_was(everywhere: None) -> None:
    """Many sends of a variable that the same task updates in the same step, after it has read it."""
    with tf.device("/job:worker/task:0"):
        state = tf.get_variable("state", [LARGE], initializer=tf.zeros_initializer(), use_resource=True)
        read = state.read_value()
    with tf.device("/job:worker/task:1"):
        seen = tf.stack([tf.reduce_min(read), tf.reduce_max(read)])
    with tf.control_dependencies([read]), tf.device("/job:worker/task:0"):
        update = state.assign_add(tf.ones([LARGE])).op
    with servers(("grpc+gdr", "grpc+gdr")) as (first, _), tf.Session(first.target) as session:
        session.run(tf.global_variables_initializer(), options=LIMIT)
        for step in range(30):
            found, _ = session.run([seen, update], options=LIMIT)
            assert found.tolist() == [step, step]


def test_values_of_a_loop_come_in_their_order(everywhere: None, exchanged: list[Any]) -> None:
    with tf.device("/job:worker/task:0"):
        begin = tf.placeholder(tf.float32, [LARGE])

        def body(i: Any, value: Any) -> tuple[Any, Any]:
            with tf.device("/job:worker/task:1"):
                moved = value * 2.0
            with tf.device("/job:worker/task:0"):
                return i + 1, moved + tf.to_float(i)

        _, result = tf.while_loop(lambda i, _: i < 6, body, [0, begin])
    with servers(("grpc+gdr", "grpc+gdr")) as (first, _), tf.Session(first.target) as session:
        found = session.run(result, {begin: np.ones(LARGE)}, options=LIMIT)
    expected = 1.0
    for i in range(6):
        expected = expected * 2 + i
    assert set(found.tolist()) == {expected}
    assert 6 <= len(exchanged) <= 12  # the first may go before there is a connection


@pytest.mark.parametrize("at", ["sender", "receiver"])
def test_a_step_whose_exchange_fails_says_so_and_later_ones_work(
    everywhere: None, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    given, result = there_and_back(LARGE, tf.float32)
    kept = collective_exchange._broadcast
    left = [1]

    def broadcast(group: Any, invitation: Any, offer: Any) -> torch.Tensor:
        if offer.is_source == (at == "sender") and left and left.pop():
            raise RuntimeError("the cable is cut")
        return kept(group, invitation, offer)

    monkeypatch.setitem(collective_exchange._EXCHANGES, BROADCAST, broadcast)
    with servers(("grpc+gdr", "grpc+gdr")) as (first, _), tf.Session(first.target) as session:
        with pytest.raises(tf.errors.UnavailableError, match="exchange of values among 2 members failed"):
            session.run(result, {given: np.arange(LARGE)}, options=LIMIT)
        # A step that begins before the sender hears of the failure fails as well; if the failure comes before
        # the request to begin, as one that has failed (`WorkerSteps.begun`).
        for _ in range(10):
            with contextlib.suppress(tf.errors.UnavailableError, tf.errors.AbortedError):
                session.run(result, {given: np.arange(LARGE)}, options=LIMIT)
                break
        for _ in range(3):
            found = session.run(result, {given: np.arange(LARGE)}, options=LIMIT)
            assert (found[0], found[-1]) == (1.0, 0.0)


@pytest.mark.parametrize(
    "words",
    [
        "no JSON",
        "{}",
        json.dumps({"key": "k", "dtype": "float32", "dims": [LARGE], "invitation": {}}),
        json.dumps(
            {"key": "a;0;b;c;0:0", "dtype": "wrong", "dims": [LARGE], "invitation": ["c", "h", 1, 0, 2, 0]}
        ),
    ],
)
def test_a_malformed_invitation_is_refused(words: str) -> None:
    devices: list[Any] = []
    found = group_transfers.GroupTransfers("localhost", devices, lambda *_: None, lambda *_: None)
    with pytest.raises((ValueError, KeyError, TypeError)):
        found.invited(None, 7, words)  # type: ignore[arg-type]


@pytest.mark.skipif(torch.cuda.device_count() < 2 or not has_nccl(), reason="needs two GPUs and NCCL")
def test_values_go_from_gpu_to_gpu(exchanged: list[Any]) -> None:
    with tf.device("/job:worker/task:0/gpu:0"):
        value = tf.random_normal([LARGE], seed=3)
    with tf.device("/job:worker/task:1/gpu:1"):
        total = tf.reduce_sum(value)
    with tf.device("/job:worker/task:0/gpu:0"):
        own = tf.reduce_sum(value)
    with servers(("grpc+gdr", "grpc+gdr")) as (first, _), tf.Session(first.target) as session:
        one, other = session.run([own, total], options=LIMIT)
    assert one == pytest.approx(other)
    assert exchanged == [(LARGE,)]
