"""Collective operations between the servers of a cluster: values, contradictions, failures, and hostile
requests. The members' sessions are those of between-graph replication, each at its own server."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import clusters
import flowstone as tf
from flowstone.distributed.links import collective_exchange
from flowstone.distributed.links.collective_links import ClusterCollectives, leader_of
from flowstone.distributed.wire.tensor_codec import pack
from flowstone.ops.collectives import collective_ops as collective
from flowstone.ops.collectives import nccl_ops
from flowstone.ops.collectives.offers import Offer
from flowstone.runtime.steps.collectives import Collectives

LARGE = 100_000  # elements of a value that its members exchange themselves
LIMIT = tf.RunOptions(timeout_in_ms=20_000)


class Member:
    """A session at one worker, with a graph of its own. `run` gives results or the error."""

    def __init__(self, cluster: clusters.Cluster, task: int, **options: Any) -> None:
        self.device = f"/job:worker/task:{task}/cpu:0"
        self.graph = tf.Graph()
        config = tf.ConfigProto(device_filters=[f"/job:worker/task:{task}"])
        self.session = tf.Session(cluster.target("worker", task), self.graph, config)

    def make(self, build: Callable[[], Any]) -> Any:
        with self.graph.as_default(), tf.device(self.device):
            return build()

    def run(self, fetches: Any, options: Any = LIMIT, **keywords: Any) -> Any:
        try:
            return self.session.run(fetches, options=options, **keywords)
        except tf.errors.OpError as error:
            return error


@pytest.fixture
def members(cluster: clusters.Cluster, connection: None) -> Iterator[list[Member]]:
    found = [Member(cluster, task) for task in range(2)]
    yield found
    for member in found:
        member.session.close()


def at_once(members: list[Member], fetches: list[Any], **options: Any) -> list[Any]:
    """What the members' steps give, which run at the same time."""
    results: list[Any] = [None] * len(members)

    def run(place: int) -> None:
        results[place] = members[place].run(fetches[place], **options)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(members))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def reduced(value: Any, instance: int = 1, **options: Any) -> Callable[[], Any]:
    return lambda: collective.all_reduce(tf.constant(value), 2, 1, instance, **options)


@pytest.mark.parametrize("count", [3, LARGE])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int64"])
def test_values_are_reduced(members: list[Member], count: int, dtype: str) -> None:
    kind = tf.as_dtype(dtype).as_numpy_dtype
    values = [np.arange(count).astype(np.int64) % 7 + 2, np.arange(count).astype(np.int64) % 5 + 1]
    merges = {
        "Add": values[0] + values[1], "Mul": values[0] * values[1], "Min": np.minimum(*values),
        "Max": np.maximum(*values),
    }  # fmt: skip
    fetches = [
        member.make(
            lambda value=value: [
                reduced(value.astype(kind), i, merge_op=merge)() for i, merge in enumerate(merges)
            ]
        )
        for member, value in zip(members, values)
    ]
    for results in at_once(members, fetches):
        assert not isinstance(results, Exception), results
        for found, expected in zip(results, merges.values()):
            np.testing.assert_array_equal(found.astype(np.int64), expected)


@pytest.mark.parametrize("count", [3, LARGE])
def test_integers_are_divided_towards_zero(members: list[Member], count: int) -> None:
    values = [np.full(count, -2, np.int32), np.full(count, -5, np.int32)]
    fetches = [m.make(reduced(value, final_op="Div")) for m, value in zip(members, values)]
    for result in at_once(members, fetches):
        np.testing.assert_array_equal(result, np.full(count, -3))


@pytest.mark.parametrize("count", [3, LARGE])
def test_values_are_gathered_scattered_exchanged_and_broadcast(members: list[Member], count: int) -> None:
    def build(task: int) -> list[Any]:
        value = tf.constant(np.arange(2 * count * 2, dtype=np.float32).reshape(2 * count, 2) + 1000 * task)
        flag = tf.constant(np.arange(4 * count) % 3 == task)
        keys = (2, 1)
        sent = (
            collective.broadcast_recv(flag.shape, tf.bool, *keys, 14)
            if task == 0
            else collective.broadcast_send(flag, flag.shape, tf.bool, *keys, 14)
        )
        scattered = tf.raw_ops.CollectiveReduceScatterV2(
            input=value, group_size=2, group_key=1, instance_key=12, ordering_token=[], merge_op="Add",
            final_op="Id",
        )  # fmt: skip
        return [
            collective.all_gather(value, *keys, 11), scattered, collective.all_to_all_v2(value, *keys, 13),
            sent, collective.all_gather_v2(value, *keys, 15), collective.all_reduce_v2(value, *keys, 16),
        ]  # fmt: skip

    fetches = [member.make(lambda task=task: build(task)) for task, member in enumerate(members)]
    own = [np.arange(4 * count, dtype=np.float32).reshape(-1, 2) + 1000 * task for task in range(2)]
    for task, results in enumerate(at_once(members, fetches)):
        assert not isinstance(results, Exception), results
        part = slice(task * count, (task + 1) * count)
        expected = [
            np.concatenate(own), (own[0] + own[1])[part], np.concatenate([own[0][part], own[1][part]]),
            np.arange(4 * count) % 3 == 1, np.concatenate(own), own[0] + own[1],
        ]  # fmt: skip
        for found, wanted in zip(results, expected):
            np.testing.assert_array_equal(found, wanted)


def test_one_session_over_both_tasks(cluster: clusters.Cluster, connection: None) -> None:
    totals = []
    for task in range(2):
        with tf.device(f"/job:worker/task:{task}"):
            totals.append(collective.all_reduce(tf.constant([1.0 + task]), 2, 3, 1))
    with tf.Session(cluster.target("ps", 0)) as session:
        for _ in range(3):
            assert session.run(totals, options=LIMIT) == [[3.0], [3.0]]


def test_large_values_do_not_pass_the_leader(members: list[Member], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Gloo they do; the results are the same."""
    turns: list[str] = []
    exchanged = collective_exchange._exchanged

    def counted(*arguments: Any) -> Any:
        turns.append("exchanged")
        return exchanged(*arguments)

    monkeypatch.setattr(collective_exchange, "_exchanged", counted)
    fetches = [member.make(reduced(np.ones(LARGE, np.float32))) for member in members]
    assert all((result == 2).all() for result in at_once(members, fetches))
    assert len(turns) == 2
    monkeypatch.setattr(collective_exchange.Exchange, "wants", lambda self, offer: False)
    assert all((result == 2).all() for result in at_once(members, fetches))
    assert len(turns) == 2


def test_sums_within_a_process_stay_there(cluster: clusters.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large, and whoever leads."""
    monkeypatch.setattr(collective_exchange, "_exchanged", None)
    for task in range(2):
        member = Member(cluster, task)
        sums = member.make(lambda: nccl_ops.all_sum([tf.ones([LARGE]), tf.ones([LARGE])]))
        for value in member.run(sums):
            np.testing.assert_array_equal(value, np.full(LARGE, 2.0))
        member.session.close()


# ---- contradictions


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (([1.0, 2.0], [1.0]), tf.errors.InvalidArgumentError),
        (([1.0, 2.0], [1, 2]), tf.errors.InternalError),
    ],
    ids=["shapes", "types"],
)
def test_members_that_disagree(members: list[Member], values: Any, kind: Any) -> None:
    fetches = [member.make(reduced(value, 20)) for member, value in zip(members, values)]
    for result in at_once(members, fetches):
        assert isinstance(result, kind), result
        assert result.node_def.name == "CollectiveReduce"
        assert "task:0" in result.message
        assert "task:1" in result.message
    right = [member.make(reduced([1.0], 20)) for member in members]
    assert at_once(members, right) == [[2.0], [2.0]]


def test_groups_of_other_sizes(members: list[Member]) -> None:
    fetches = [
        member.make(lambda task=task: collective.all_reduce(tf.constant(1.0), 2 + task, 5, 1))
        for task, member in enumerate(members)
    ]
    assert [type(result) for result in at_once(members, fetches)] == [tf.errors.InternalError] * 2


# ---- members that do not come, or fail


def test_a_member_that_does_not_come(members: list[Member]) -> None:
    fetches = [member.make(reduced([1.0], 30)) for member in members]
    late = members[0].make(reduced([1.0], 31, timeout=0.2))
    for member, fetch in zip(members, fetches):
        begun = time.monotonic()
        result = member.run(fetch, options=tf.RunOptions(timeout_in_ms=300))
        assert isinstance(result, tf.errors.DeadlineExceededError), result
        assert time.monotonic() - begun < 10
    result = members[0].run(late)
    assert isinstance(result, tf.errors.DeadlineExceededError), result
    assert result.node_def.name == late.op.name
    assert at_once(members, fetches) == [[2.0], [2.0]]


@pytest.mark.parametrize("waiting", [0, 1])
def test_closing_a_session_ends_what_waits(cluster: clusters.Cluster, waiting: int) -> None:
    member = Member(cluster, waiting)
    fetch = member.make(reduced([1.0], 32))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(member.run(fetch)))
    thread.start()
    time.sleep(0.3)
    member.session.close()
    thread.join(10)
    assert isinstance(results[0], tf.errors.CancelledError), results


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failure_after_meeting_ends_the_others_steps(members: list[Member], failing: int) -> None:
    def build(task: int) -> Any:
        first = collective.all_reduce(tf.constant(1.0), 2, 1, 40)
        if task == failing:
            with tf.control_dependencies([tf.Assert(first < 0, ["wrong"])]):
                first = tf.identity(first)
        return collective.all_reduce(first, 2, 1, 41)

    fetches = [member.make(lambda task=task: build(task)) for task, member in enumerate(members)]
    results = at_once(members, fetches)
    assert isinstance(results[failing], tf.errors.InvalidArgumentError), results
    other = results[1 - failing]
    assert isinstance(other, tf.errors.AbortedError), other
    assert "wrong" in other.message
    assert f"task:{failing}" in other.message
    right = [member.make(reduced([1.0], 42)) for member in members]
    assert at_once(members, right) == [[2.0], [2.0]]


def test_steps_that_have_ended_are_forgotten(cluster: clusters.Cluster, members: list[Member]) -> None:
    fetches = [member.make(reduced([1.0], 50)) for member in members]
    leading = cluster.servers["worker", 0]._collectives._own
    gc.collect()  # failed steps of other tests
    before = len(leading)
    for _ in range(20):
        at_once(members, fetches)
    assert len(leading) <= before + 2  # the other task tells of its last step with its next one


def test_a_step_that_is_over_does_not_fail_those_that_it_met(members: list[Member]) -> None:
    def build(task: int) -> Any:
        total = collective.all_reduce(tf.constant(1.0), 2, 1, 60)
        if task == 1:
            waited = tf.py_func(lambda x: time.sleep(0.5) or x, [total], tf.float32)
            total = collective.all_reduce(waited, 1, 9, 61)
        return total

    fetches = [member.make(lambda task=task: build(task)) for task, member in enumerate(members)]
    for _ in range(2):
        assert at_once(members, fetches) == [2.0, 2.0]


# ---- who leads


def test_who_leads() -> None:
    tasks = ["/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1", "/job:ps/replica:0/task:0"]
    config = tf.ConfigProto()
    assert leader_of(config, tasks) == tasks[0]
    assert leader_of(config, [*tasks, "/job:chief/replica:0/task:0"]).startswith("/job:chief")
    assert leader_of(config, tasks[2:]) == tasks[2]
    config.experimental.collective_group_leader = "/job:worker/task:1"
    assert leader_of(config, tasks) == tasks[1]
    assert leader_of(None, tasks, "/job:ps/replica:0/task:0") == tasks[2]
    config.experimental.collective_group_leader = "/job:worker/task:7"
    with pytest.raises(tf.errors.InvalidArgumentError, match="task:7"):
        leader_of(config, tasks)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "nonsense", '{"step": 1}', '{"step": "x", "failed": ""}', '{"step": 1, "ended": 3}',
     '{"step": 1, "kind": 1, "group": 1, "size": 2, "instance": 1, "member": "a", "node": "n", "dtype": "q",'
     ' "dims": [1], "merge": "", "is_mean": 0, "is_source": 0, "stays": 0, "has_value": 1}'],
)  # fmt: skip
def test_malformed_requests_are_answered(cluster: clusters.Cluster, text: str) -> None:
    answers: list[str] = []
    leading = cluster.servers["worker", 0]._collectives._own
    connection = SimpleNamespace(task="/job:worker/replica:0/task:1")
    leading.asked(connection, text, memoryview(b"nonsense"), lambda words, parts: answers.append(words))
    assert len(answers) == 1
    assert "error" in answers[0]


# ---- a leader that is lost


class Leader:
    """The leader's link, whose connection breaks when a test says so."""

    def __init__(self) -> None:
        self.asked: list[Callable[..., None]] = []

    def connect(self) -> bool:
        return True

    def collect(self, text: str, parts: Any, done: Callable[..., None]) -> None:
        self.asked.append(done)

    def tell_leader(self, text: str) -> None:
        pass

    def answer(self) -> None:
        """The last request has its result."""
        self.asked.pop()(("{}", memoryview(b"".join(map(bytes, pack([torch.ones(1)]))))), None)

    def break_off(self) -> None:
        while self.asked:
            self.asked.pop()(None, LOST)


LOST = tf.errors.UnavailableError(None, None, "gone")


@pytest.fixture
def leader() -> Leader:
    return Leader()


@pytest.fixture
def ask(leader: Leader) -> Iterator[Callable[[], list[Any]]]:
    """Makes an offer of a new step; the list gets what it is told."""
    exchange = collective_exchange.Exchange("localhost", lambda name: None)
    collectives = ClusterCollectives("/job:worker/replica:0/task:1", leader, exchange, Collectives("t"))
    numbers = itertools.count()

    def offer() -> list[Any]:
        told: list[Any] = []
        made = Offer("reduce", 1, 2, 1, "m", "n", "float32", (1,), "sum", value=torch.ones(1))
        collectives._offer(next(numbers), lambda outputs, error: told.append(error), made)
        return told

    offer.collectives = collectives  # type: ignore[attr-defined]
    yield offer
    exchange.end()


def test_a_leader_lost_between_steps_is_heard_of_once(leader: Leader, ask: Any) -> None:
    """Its replacement has begun anew, which a step that waited for it would not know."""
    first = ask()
    leader.answer()
    assert first == [None]
    ask.collectives.lost_leader()
    ask.collectives.lost_leader()  # the connection in the other direction
    second = ask()
    assert isinstance(second[0], tf.errors.UnavailableError)
    assert leader.asked == []
    assert ask() == [], "it waits for the replacement"
    leader.answer()


@pytest.mark.parametrize("other_direction_first", [False, True])
def test_an_offer_that_waited_for_a_lost_leader_has_heard(
    leader: Leader, ask: Any, other_direction_first: bool
) -> None:
    ask()
    leader.answer()
    waiting = ask()
    if other_direction_first:
        ask.collectives.lost_leader()
    leader.break_off()
    ask.collectives.lost_leader()
    assert waiting == [LOST]
    assert ask() == []


def test_a_program_that_begins_does_not_hear_of_a_lost_leader(leader: Leader, ask: Any) -> None:
    ask.collectives.lost_leader()
    assert ask() == [], "it was not there yet"
    leader.answer()
    ask.collectives.lost_leader()
    ask.collectives.begin_program()
    assert ask() == []
