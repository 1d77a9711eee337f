"""Options of plans: what each changes, and that a plan without any is made for a session's every step."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.runtime.plans.plan import Plan, make_plan, placed_subgraph
from flowstone.runtime.plans.plan_options import PlanOptions
from flowstone.runtime.process.device import local_devices
from flowstone.runtime.steps.step import Step

pytestmark = pytest.mark.usefixtures("graph")


def options(cpus: int = 1) -> PlanOptions:
    devices, resources = local_devices({"CPU": cpus, "GPU": 0}), ResourceStore()
    states: dict[str, Any] = {}
    return PlanOptions(devices, {device.name: device.environment(resources, states) for device in devices})


def run(plan: Plan, *feeds: Any) -> list[Any]:
    with torch.inference_mode():
        return [x.tolist() for x in plan.function(Step(), *map(torch.tensor, feeds))]


def text(*planned: Any) -> str:
    return str(placed_subgraph(*planned)[0])


def test_another_plan_has_options_of_its_own() -> None:
    one = options()
    other = one._replace(watched=True)
    assert (one.watched, other.watched) == (False, True)
    assert one == other._replace(watched=False)


@pytest.mark.by_aten
def test_disabled_passes_do_not_run() -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.exp(x) + tf.exp(x)
    assert text([y], [], [x], options()).count("= Exp(") == 1
    disabled = options()._replace(disabled_passes=frozenset({"merge_common_subexpressions"}))
    assert text([y], [], [x], disabled).count("= Exp(") == 2


def test_fed_shapes_are_known_in_the_plan() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.zeros_like(x) + tf.cast(tf.size(x), tf.float32)
    known = options()._replace(feed_dims=[(3,)])
    assert "Size" in text([y], [], [x], options())
    assert "Size" not in text([y], [], [x], known)
    assert run(make_plan([y], [], [x], known), [0.0, 0.0, 0.0]) == [[3, 3, 3]]


def test_devices_that_are_missing_are_an_error_unless_placement_is_soft() -> None:
    with tf.device("/cpu:1"):
        y = tf.placeholder(tf.float32, []) * 2.0
    x = y.op.inputs[0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="CPU:1"):
        make_plan([y], [], [x], options())
    assert run(make_plan([y], [], [x], options()._replace(soft_placement=True)), 3.0) == [6]
    assert run(make_plan([y], [], [x], options(cpus=2)), 3.0) == [6]


def test_state_stays_where_an_earlier_plan_placed_it() -> None:
    v = tf.Variable(1.0, name="v")
    names = [device.name for device in options(cpus=2).devices]
    for name in names:
        earlier = options(cpus=2)._replace(assigned={"v": name})
        with tf.device("/cpu:0" if name == names[1] else "/cpu:1"):
            y = -v
        _, chosen = placed_subgraph([y], [], [], earlier)
        assert {device.name for node, device in chosen.items() if node.name == "v"} == {name}


def test_a_watched_step_checks_its_deadline() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.exp(tf.sin(x))
    plain, watched = (make_plan([y], [], [x], options()._replace(watched=each)) for each in (False, True))
    late = Step()
    late.deadline = time.monotonic() - 1
    plain.function(late, torch.tensor(1.0))
    with pytest.raises(tf.errors.DeadlineExceededError):
        watched.function(late, torch.tensor(1.0))


def test_traced_plans_make_traced_steps() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.exp(x)
    plain, traced = (make_plan([y], [], [x], options()._replace(traced=each)) for each in (False, True))
    assert plain.program.source != traced.program.source


def test_floats_are_sent_in_sixteen_bits_if_plans_compress() -> None:
    x = tf.placeholder(tf.float32, [1])
    with tf.device("/cpu:0"):
        y = x * 1.0001
    with tf.device("/cpu:1"):
        z = -y
    exact, short = (make_plan([z], [], [x], options(2)._replace(compresses=each)) for each in (False, True))
    assert run(exact, [1.0]) == [[pytest.approx(-1.0001)]]
    assert run(short, [1.0]) == [[-1.0]]
