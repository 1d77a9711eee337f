"""What a plan's function is, and that nothing of a plan changes once it is compiled."""

from __future__ import annotations

import dataclasses
from types import FunctionType
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.runtime.code.generated_code import Segment
from flowstone.runtime.execution.partitioned_program import PartitionedProgram
from flowstone.runtime.execution.traced_units import TracedUnitProgram
from flowstone.runtime.execution.unit_program import UnitProgram
from flowstone.runtime.plans import plan as plan_module
from flowstone.runtime.plans.plan import Plan, make_plan, placed_subgraph
from flowstone.runtime.plans.plan_options import PlanOptions
from flowstone.runtime.process.device import Device, is_divided, local_devices
from flowstone.runtime.steps.step import UNLIMITED, Step


@pytest.fixture(autouse=True)
def graph(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("flowstone.framework.flags.CHECK", 0)  # at 2, another function is around every step
    with tf.Graph().as_default() as g:
        yield g


def options(cpus: int = 1, **others: Any) -> PlanOptions:
    devices, resources = local_devices({"CPU": cpus, "GPU": 0}), ResourceStore()
    states: dict[str, Any] = {}
    environments = {device.name: device.environment(resources, states) for device in devices}
    return PlanOptions(devices, environments, **others)


def run(plan: Plan, *feeds: Any) -> list[Any]:
    with torch.inference_mode():
        return [x.tolist() for x in plan.function(Step(), *map(torch.tensor, feeds))]


def segment() -> Plan:
    x = tf.placeholder(tf.float32, [])
    return make_plan([x * 2.0], [], [x], options())


def units(**others: Any) -> Plan:
    """Two waiting kernels, where one would stay in the segment."""
    queues = [tf.FIFOQueue(2, [tf.float32], shapes=[[]]) for _ in range(2)]
    return make_plan([q.dequeue() for q in queues], [], [], options(**others))


def parts() -> Plan:
    x = tf.placeholder(tf.float32, [])
    with tf.device("/cpu:0"):
        y = x * 2.0
    with tf.device("/cpu:1"):
        z = y + 1.0
    return make_plan([y, z], [], [x], options(cpus=2))


PLANS = [
    (segment, Segment),
    (units, UnitProgram),
    (lambda: units(traced=True), TracedUnitProgram),
    (parts, PartitionedProgram),
]


@pytest.mark.parametrize("make, kind", PLANS)
def test_what_is_compiled_does_not_change(make, kind):
    program = make().program
    assert type(program) is kind
    fields = [field.name for field in dataclasses.fields(program)]
    for name in fields:
        before = getattr(program, name)
        with pytest.raises(AttributeError):
            setattr(program, name, before)
        with pytest.raises(AttributeError):
            delattr(program, name)
        assert not isinstance(before, (list, dict, set))
    with pytest.raises((AttributeError, TypeError)):
        program.function = print


@pytest.mark.parametrize("make, kind", PLANS)
def test_a_plan_does_not_change(make, kind):
    plan = make()
    for name in Plan._fields:
        with pytest.raises(AttributeError):
            setattr(plan, name, getattr(plan, name))


def test_the_function_of_a_plain_plan_is_what_its_segment_compiled():
    plan = segment()
    assert type(plan.function) is FunctionType and plan.function is plan.program.function
    assert plan.function.__wrapped__.__code__.co_filename == plan.program.filename
    assert run(plan, 3.0) == [6.0]
    assert run(parts(), 3.0) == [6.0, 7.0]


def test_each_step_is_compared_around_the_segment(monkeypatch):
    monkeypatch.setattr("flowstone.framework.flags.CHECK", 2)
    plan = segment()
    assert plan.function is not plan.program.function
    assert run(plan, 3.0) == [6.0]
    monkeypatch.setattr(plan_module, "interpret", lambda subgraph, environment, feeds: [torch.tensor(7.0)])
    with pytest.raises(tf.errors.InternalError, match="node by node it is 7"):
        run(plan, 3.0)
    assert plan.program.function(UNLIMITED, torch.tensor(3.0))[0] == 6.0


def test_segments_of_a_gpu_run_with_the_chosen_precision(monkeypatch):
    """The recording, too, is of the function that sets it; neither is the segment's own."""
    around: list[Any] = []
    monkeypatch.setattr(plan_module, "with_precision", lambda f: around.append(f) or (lambda *a: f(*a)))
    host = options()
    device = Device("/job:localhost/replica:0/task:0/device:GPU:0", GPU, torch.device("cuda", 0))
    environments = {device.name: host.environments[host.devices[0].name]}
    x = tf.placeholder(tf.float32, [])
    plan = make_plan([x * 2.0], [], [x], PlanOptions([device], environments, captures=False))
    assert around == [plan.program.function] and plan.function not in around
    assert plan.feed_device == device.torch
    assert run(plan, 3.0) == [6.0]


@pytest.mark.parametrize(
    "others, part",
    [({"watched": True}, "step.check()"), ({"traced": True}, "_record("), ({"feed_dims": ((5,),)}, "")],
)
def test_options_of_one_plan(others, part):
    x = tf.placeholder(tf.float32, [None])
    plan = make_plan([tf.shape(x), x * 2.0], [], [x], options(**others))
    assert part in plan.program.source
    assert (plan.subgraph.feeds[0].dims == (5,)) == ("feed_dims" in others)
    assert ("Shape" not in {node.type for node in plan.subgraph.nodes}) == ("feed_dims" in others)


def test_assigned_devices_are_taken_and_told():
    v = tf.Variable(1.0, name="v")
    given = options(cpus=2)
    cpu_1 = given.devices[1].name
    plan = make_plan([v.value()], [], [], given._replace(assigned={"v": cpu_1}))
    assert plan.placement["v"] == plan.assigned["v"] == cpu_1
    assert segment().assigned == {}


def test_a_subgraph_in_pieces_says_so():
    x = tf.placeholder(tf.float32, [])
    for in_pieces in (False, True):
        subgraph, chosen = placed_subgraph([x + 1.0], [], [x], options(in_pieces=in_pieces))
        assert subgraph.in_pieces == in_pieces and chosen == {}


def test_which_devices_divide_a_step():
    def devices(*kinds: str) -> list[Device]:
        return [Device(f"{kind}:{i}", kind, torch.device("cpu")) for i, kind in enumerate(kinds)]

    assert [is_divided(devices(kind)) for kind in (CPU, GPU, "ARENA")] == [False, False, True]
    assert is_divided(devices(CPU, CPU)) and is_divided(devices(CPU, GPU))


def test_loops_with_gradients_of_known_shapes_are_what_explain_says():
    """Gradients of loops know more of shapes than when they were made, also where no feed leaves any open."""
    x = tf.placeholder(tf.float32, [3, 7])
    y = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, a: (i + 1, tf.nn.top_k(tf.reshape(a[:, None] + x, [-1]), 3)[0]),
        [0, x[:, 0]],
    )[1]
    fetches = [y, *tf.gradients(y, x)]
    with tf.Session() as session:
        session.run(fetches, {x: np.ones([3, 7])})
        (plan,) = session._planner.plans.values()
        assert [node.type for node in plan.subgraph.nodes].count("Exit") == 0
        assert session.explain(fetches, [x]) == session.explain(fetches, {x: np.ones([3, 7])})


def test_shapes_of_a_loop_that_contradict_are_told_by_the_step():
    x = tf.placeholder(tf.float32, [2])
    y = tf.while_loop(
        lambda i, _: i < 2,
        lambda i, a: (i + 1, tf.tile(a, [i + 1])),
        [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )[1]
    with tf.Session() as session:
        assert session.run(y, {x: [1.0, 2.0]}).tolist() == [1.0, 2.0, 1.0, 2.0]
