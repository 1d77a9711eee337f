"""What a session's planner makes once, makes anew, and forgets."""

from __future__ import annotations

import gc
import io
import re
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.client import planning
from flowstone.client.feeds_fetches import FetchStructure
from flowstone.client.planning import PlanKey, Planner
from flowstone.client.run_metadata import Measurements
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.runtime.plans.placement_log import PlacementLog
from flowstone.runtime.plans.plan import Plan
from flowstone.runtime.plans.plan_options import PlanOptions
from flowstone.runtime.plans.session_options import plan_options

pytestmark = pytest.mark.usefixtures("graph")


def two_cpus() -> tf.ConfigProto:
    return tf.ConfigProto(device_count={"CPU": 2, "GPU": 0})


def planner(config: Any = None, **options: Any) -> Planner:
    return Planner(plan_options(config, ResourceStore()), **options)


def structure(fetches: Any) -> FetchStructure:
    return FetchStructure(tf.get_default_graph(), fetches)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[PlanOptions]:
    """The options of all plans that are made, in order."""
    options_of, make_plan = [], planning.make_plan

    def noted(fetches: Any, targets: Any, feeds: Any, options: PlanOptions) -> Plan:
        options_of.append(options)
        return make_plan(fetches, targets, feeds, options)

    monkeypatch.setattr(planning, "make_plan", noted)
    return options_of


def test_a_plan_is_made_once_for_the_same_fetches_and_feeds(made):
    x = tf.placeholder(tf.float32, [None])
    y, p = x * 2.0, planner()
    first = p.plan(structure(y), [x])
    assert p.plan(structure({"y": [y]}), [x]) is first and len(made) == 1  # forms are the runners' matter
    assert p.plan(structure(y), []) is not first and len(made) == 2


def test_what_varies_from_plan_to_plan_is_all_that_options_differ_in(made):
    x = tf.placeholder(tf.float32, [None])
    p, wanted = planner(), structure(x * 2.0)
    variants: list[dict[str, Any]] = [{}, {"shapes": ((3,),)}, {"watched": True}, {"traced": True}]
    plans = [p.plan(wanted, [x], **variant) for variant in variants]
    assert [p.plan(wanted, [x], **variant) for variant in variants] == plans
    assert len({id(plan) for plan in plans}) == len(made) == 4
    named = [{"feed_dims" if k == "shapes" else k: v for k, v in variant.items()} for variant in variants]
    assert made == [p.options._replace(**variant) for variant in named]
    assert "step.check()" in plans[2].program.source and "_record(" in plans[3].program.source


def test_shapes_that_contradict_the_graph_leave_no_plan():
    x = tf.placeholder(tf.float32, [None, 3])
    p, wanted = planner(), structure(tf.matmul(x, tf.ones([3, 2])))
    with pytest.raises(ValueError, match="must be equal"):
        p.plan(wanted, [x], ((2, 4),))
    assert not p.plans
    assert p.plan_for_values(wanted, [x], [np.ones((2, 4))], watched=False, traced=True)[1] is None
    assert p.plan_for_values(wanted, [x], [np.ones((2, 3))], watched=False, traced=True)[1] == ((2, 3),)


def test_a_tensor_is_fed_once():
    x = tf.placeholder(tf.float32, [])
    with pytest.raises(tf.errors.InvalidArgumentError, match="fed twice"):
        planner().plan(structure(x + 1.0), [x, x])


def test_traces_tell_so_many_shapes_apart_and_no_more(monkeypatch):
    monkeypatch.setattr(planning, "_MOST_TRACED", 2)
    x = tf.placeholder(tf.float32, [None])
    p, wanted = planner(), structure(x * 2.0)
    shapes = [
        p.plan_for_values(wanted, [x], [np.ones(n)], watched=False, traced=True)[1] for n in (1, 2, 3, 4)
    ]
    assert shapes == [((1,),), ((2,),), None, None]


def test_state_stays_on_the_device_that_the_first_plan_gave_it():
    with tf.device("/cpu:1"):
        v = tf.Variable(tf.ones([4]), name="v")
    p = planner(two_cpus())
    plan = p.plan(structure(v.initializer), [])
    assert plan.assigned == p.assigned == {"v": "/job:localhost/replica:0/task:0/device:CPU:1"}
    assert p.options.assigned == p.assigned
    with pytest.raises(TypeError):
        p.options.assigned["v"] = "elsewhere"  # type: ignore[index]


def test_looking_at_a_placement_assigns_nothing():
    with tf.device("/cpu:1"):
        v = tf.Variable(tf.ones([4]), name="v")
    with tf.Session(config=two_cpus()) as session:
        assert "CPU:1" in session.explain_placement(v)
        assert not session.planner.assigned
        session.partial_run_setup([v + 1.0])
        assert session.planner.assigned["v"].endswith("CPU:1")


def test_measured_costs_are_those_that_placement_goes_by():
    measurements = Measurements(1, 0)
    assert planner(measurements=measurements).options.costs is measurements.costs
    assert planner().options.costs is None


def test_placements_of_new_plans_are_logged():
    stream = io.StringIO()
    x = tf.placeholder(tf.float32, [], name="x")
    c = structure(tf.add(x, 2.0, name="c"))
    p = planner(log=PlacementLog(tf.get_default_graph(), stream))
    assert p.plan(c, [x]) is p.plan(c, [x])
    assert sum(line.startswith("c: (Add): /job:") for line in stream.getvalue().splitlines()) == 1


@pytest.mark.parametrize("devices", [1, 2])
def test_forgotten_plans_are_made_anew_where_placement_has_a_choice(devices):
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [])
    p = planner(tf.ConfigProto(device_count={"CPU": devices, "GPU": 0}))
    wanted, other = structure(x * 2.0), structure(y * 2.0)
    plans, kept = p.plans_for_shapes(wanted, [x]), p.plan(other, [y])
    chosen = plans.choose(((3,),)).plan
    p.plan(wanted, [x], watched=True)
    p.runners["a runner"] = print
    p.forget(wanted, [x])
    is_forgotten = devices > 1
    assert (list(p.plans.values()) == [kept]) == (not p.runners) == (not p.plans_by_shape) == is_forgotten
    assert (p.plan(wanted, [x], ((3,),)) is not chosen) == is_forgotten
    assert p.plan(other, [y]) is kept


def test_a_plan_that_other_shapes_displace_is_forgotten():
    x = tf.placeholder(tf.float32, [None])
    p, wanted = planner(), structure(x * 2.0)
    plans = p.plans_for_shapes(wanted, [x])
    assert p.plans_for_shapes(wanted, [x]) is plans
    chosen = plans.choose(((3,),))
    (key,) = p.plans
    assert key == PlanKey(key.elements, ((3,),)) and p.plans[key] is chosen.plan
    plans._forget(chosen)
    assert not p.plans


def test_a_planner_that_was_stopped_keeps_nothing():
    x = tf.placeholder(tf.float32, [None])
    p, wanted = planner(), structure(x * 2.0)
    p.plans_for_shapes(wanted, [x]).choose(((3,),))
    p.runners["a runner"] = print
    p.stop()
    assert not p.plans and not p.plans_by_shape and not p.runners
    assert p.plan(wanted, [x]).function is not None and not p.plans  # one that was under way


def test_a_session_and_its_planner_end_with_the_last_reference():
    x = tf.placeholder(tf.float32, [])
    session = tf.Session()
    assert session.run(x + 1.0, {x: 1.0}) == 2.0
    living = [weakref.ref(session), weakref.ref(session.planner)]
    gc.disable()
    try:
        del session
        assert [each() for each in living] == [None, None]
    finally:
        gc.enable()


def test_nobody_in_this_package_reads_what_a_session_keeps_to_itself():
    """Runs, runners and observers are given a planner and steps; resetting a target ends its sessions."""
    files = sorted(Path(planning.__file__).parent.glob("*.py"))
    readers = {file.name for file in files if re.search(r"\bsession\._", file.read_text())}
    assert readers == {"target.py"}
