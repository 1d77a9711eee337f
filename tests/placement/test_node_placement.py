"""Placement: never worse than one device, near the best, inside memory and constraints; loops and state."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.framework import errors
from flowstone.framework.declarations.operation import F, registry
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.placement.cluster_simulator import (
    best_single_device,
    cost,
    exhaustive,
    random_placement,
    round_robin,
    simulate,
)
from flowstone.placement.cost_model import CostModel
from flowstone.placement.devices import Link, SimulatedDevice
from flowstone.placement.greedy_walk import ranks
from flowstone.placement.node_placement import place, place_tasks, stateful_placement
from flowstone.placement.synthetic_graphs import random_cluster, random_tasks
from flowstone.placement.task_graph import placed_task_graph
from flowstone.rewriting.simplification.partial_execution import prune

pytestmark = pytest.mark.usefixtures("graph")

TASK = "/job:localhost/replica:0/task:0"
CPUS = [SimulatedDevice(f"{TASK}/device:CPU:{i}") for i in range(4)]
FREE = lambda a, b: Link(1.0, 0.0)  # noqa: E731
LINKS = [Link(0.0, 0.0), Link(5.0, 1e-3), Link(50.0, 1e-2)]


def names(placement):
    return {node.name: device.name[-5:] for node, device in placement.items()}


# ---- by property, on random graphs


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(("count", "width"), [(12, 2), (7, 3)])
def test_small_graphs_come_near_the_best_placement(seed, link, count, width):
    tasks = random_tasks(
        count, random_cluster(width, seed), seed, links=lambda a, b: link,
        pinned=0.1 * (seed % 3), colocated=0.1 * (seed % 2),
    )  # fmt: skip
    found, best = cost(tasks, place_tasks(tasks)), cost(tasks, exhaustive(tasks))
    assert best[1] <= found[1] <= 1.2 * best[1]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("link", LINKS)
def test_never_worse_than_the_best_single_device(seed, link):
    devices = random_cluster(8, seed)
    tasks = random_tasks(300, devices, seed, links=lambda a, b: link, pinned=0.05, colocated=0.1)
    groups = place_tasks(tasks)
    assert all(d in feasible for d, feasible in zip(groups, tasks.feasible))
    found = cost(tasks, groups)
    assert found <= cost(tasks, best_single_device(tasks))
    assert found < cost(tasks, round_robin(tasks))
    assert found < min(cost(tasks, random_placement(tasks, s)) for s in range(5))


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("share", [2 / 3, 1 / 2])
def test_memory_limits_hold_wherever_each_task_alone_fits(seed, share):
    free = random_tasks(40, random_cluster(4, seed), seed)
    need = max(simulate(free, best_single_device(free)).peak_bytes)
    limit = int(share * need)
    tasks = random_tasks(40, random_cluster(4, seed, memory_limit=limit), seed)
    largest = max(
        sum(tasks.size[t] for t in (*tasks.outputs[i], *inputs)) for i, inputs in enumerate(tasks.inputs)
    )
    assert cost(tasks, best_single_device(tasks))[0] > 0, "one device would do"
    if largest > limit:
        with pytest.raises(errors.ResourceExhaustedError):
            place_tasks(tasks)
    else:
        assert max(simulate(tasks, place_tasks(tasks)).peak_bytes) <= limit


def test_what_fits_nowhere_is_refused_with_the_sizes():
    tasks = random_tasks(20, random_cluster(2, 1, memory_limit=10), 1)
    with pytest.raises(errors.ResourceExhaustedError, match=r"CPU:\d would hold \d+ bytes of 10"):
        place_tasks(tasks)


def test_a_rank_is_the_longest_path_to_the_end():
    tasks = random_tasks(30, random_cluster(2, 5), 5)
    found = ranks(tasks)
    for i, inputs in enumerate(tasks.inputs):
        for t in inputs:
            assert found[tasks.producer[t]] > found[i]


def test_the_same_problem_gives_the_same_placement():
    problems = [random_tasks(200, random_cluster(6, 3), 3) for _ in range(2)]
    assert place_tasks(problems[0]) == place_tasks(problems[1])


# ---- graphs


def matmuls(count, size=256, name="branch"):
    x = tf.placeholder(tf.float32, [size, size], name=name + "_x")
    for i in range(count):
        x = tf.matmul(x, tf.constant(1.0, shape=[size, size], name=f"{name}_c{i}"), name=f"{name}_{i}")
    return x


def test_independent_branches_go_to_different_devices():
    a, b = matmuls(3, name="a"), matmuls(3, name="b")
    placement = names(place(prune([a, b], [], [a.graph.get_tensor_by_name("a_x:0")]), CPUS[:2], links=FREE))
    assert {placement[f"a_{i}"] for i in range(3)} != {placement[f"b_{i}"] for i in range(3)}
    assert len({placement[f"a_{i}"] for i in range(3)}) == 1
    assert all(placement[f"a_c{i}"] == placement["a_0"] for i in range(3)), "constants go where they are used"
    assert placement["a_x"] == placement["a_0"], "and so do feeds"


def test_a_chain_stays_on_the_fastest_device():
    chain = matmuls(5)
    fast = SimulatedDevice(f"{TASK}/device:CPU:7", relative_speed=4.0)
    assert set(names(place(prune([chain], [], []), [*CPUS, fast])).values()) == {"CPU:7"}


def test_requests_are_kept_and_the_rest_is_free():
    with tf.device("/cpu:3"):
        a = matmuls(1, name="a")
    b = matmuls(1, name="b")
    placement = names(place(prune([a + b], [], []), CPUS))
    assert placement["a_0"] == "CPU:3" and placement["b_0"] in {f"CPU:{i}" for i in range(4)}


def test_one_device_takes_everything_and_refuses_what_it_cannot():
    a = matmuls(2)
    subgraph = prune([a], [], [])
    assert place(subgraph, CPUS[:1]) == dict.fromkeys(subgraph.nodes, CPUS[0])
    with tf.device("/cpu:1"):
        b = tf.negative(a, name="b")
    with pytest.raises(errors.InvalidArgumentError, match="Cannot assign a device for operation b"):
        place(prune([b], [], []), CPUS[:1])
    assert set(names(place(prune([b], [], []), CPUS[:1], soft_placement=True)).values()) == {"CPU:0"}


# ---- state


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_variable_its_reads_and_its_updates_share_a_device(use_resource):
    losses = []
    for i in range(4):
        w = tf.get_variable(f"w{i}", [256, 256], use_resource=use_resource)
        losses.append(tf.reduce_sum(tf.matmul(tf.ones([256, 256]), w)))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.add_n(losses))
    placement = names(place(prune([], [train], []), CPUS, links=FREE))
    homes = {placement[f"w{i}"] for i in range(4)}
    assert len(homes) > 1, "independent layers are spread"
    for i in range(4):
        own = {
            device
            for name, device in placement.items()
            if name.startswith((f"w{i}/", f"Momentum/update_w{i}/"))
        }
        assert own == {placement[f"w{i}"]}


def test_state_stays_in_later_plans():
    v = tf.get_variable("v", [64, 64], use_resource=True)
    product = tf.matmul(v, v)
    first = place(prune([], [v.initializer], []), CPUS)
    state = stateful_placement(first)
    assert state["v"] in {device.name for device in CPUS}
    for device in CPUS:
        later = place(prune([product], [], []), CPUS, assigned={"v": device.name})
        assert names(later)["v"] == device.name[-5:]


def test_a_variable_goes_where_its_memory_is():
    small = SimulatedDevice(f"{TASK}/device:CPU:0", memory_limit=1 << 20, relative_speed=8.0)
    large = SimulatedDevice(f"{TASK}/device:CPU:1", memory_limit=1 << 30)
    w = tf.get_variable("w", [1024, 1024])
    read = tf.reduce_sum(tf.matmul(w, w))
    assert set(names(place(prune([read], [], []), [small, large])).values()) == {"CPU:1"}


# ---- costs


def test_measured_costs_decide_over_static_ones():
    a, b = matmuls(1, name="a"), matmuls(1, name="b")
    subgraph = prune([tf.add(a, b, name="sum")], [], [])
    costs = CostModel()
    for device, times in ((CPUS[0], (10, 1000)), (CPUS[1], (1000, 10))):
        costs.record("a_0", device.name, times[0])
        costs.record("b_0", device.name, times[1])
    placement = names(place(subgraph, CPUS[:2], costs=costs))
    assert (placement["a_0"], placement["b_0"]) == ("CPU:0", "CPU:1")


# ---- control flow


def loop():
    """A while loop with two branches in its body, as a subgraph whose cycle is closed."""
    nodes: list[PlanNode] = []
    subgraph = Subgraph(nodes, [], [], [])
    like = PlanNode(registry["NoOp"], "like", [], {}, (), [], "", 0)

    def node(kind, inputs, name, sizes=None, **attributes):
        made = subgraph.new_node(registry[kind], inputs, attributes, like, sizes, name)
        nodes.append(made)
        return made

    start = tf.constant(1.0, shape=[256, 256])
    first = prune([start], [], [])
    nodes += first.nodes
    frame = {"frame_name": "f", "is_constant": False, "parallel_iterations": 10, "T": tf.float32}
    enter = node("Enter", [first.fetches[0]], "enter", **frame)
    merge = node("Merge", [enter.outputs[0], enter.outputs[0]], "merge", (2,), N=2, T=tf.float32)
    total = node("L2Loss", [merge.outputs[0]], "total", T=tf.float32)
    test = node("Less", [total.outputs[0], total.outputs[0]], "less", T=tf.float32)
    cond = node("LoopCond", [test.outputs[0]], "cond")
    switch = node("Switch", [merge.outputs[0], cond.outputs[0]], "switch", T=tf.float32)
    left = node("Tanh", [switch.outputs[1]], "left", T=tf.float32)
    right = node("Tanh", [switch.outputs[1]], "right", T=tf.float32)
    body = node("AddV2", [left.outputs[0], right.outputs[0]], "body", T=tf.float32)
    following = node("NextIteration", [body.outputs[0]], "next", T=tf.float32)
    merge.inputs[1] = following.outputs[0]
    leave = node("Exit", [switch.outputs[0]], "exit", T=tf.float32)
    subgraph.fetches.append(leave.outputs[0])
    return subgraph


LOOP = ["enter", "merge", "total", "less", "cond", "switch", "left", "right", "body", "next"]


def test_a_loop_stays_on_one_device():
    placement = names(place(loop(), CPUS, links=FREE))
    assert len({placement[name] for name in LOOP}) == 1
    assert placement["exit"] == placement["switch"], "Exit goes with its data"


def test_a_requested_device_in_a_loop_is_kept_and_primitives_follow_their_data():
    subgraph = loop()
    for node in subgraph.nodes:
        if node.name == "body":
            node.device = "/device:CPU:2"
    placement = names(place(subgraph, CPUS))
    assert placement["body"] == placement["next"] == "CPU:2" or placement["next"] == placement["merge"]
    assert placement["body"] == "CPU:2" and placement["enter"] == placement["merge"] == placement["switch"]


def test_a_loop_counts_for_more_than_one_iteration():
    subgraph = loop()
    tasks, chosen = placed_task_graph(subgraph, dict.fromkeys(subgraph.nodes, CPUS[0]))
    once = CostModel().time_us(next(n for n in subgraph.nodes if n.name == "left"), CPUS[0])
    step = simulate(tasks, chosen)
    at = [n.name for n in subgraph.nodes].index("left")
    assert step.finish_us[at] - step.start_us[at] == pytest.approx(10 * once)


def test_the_branches_of_a_conditional_may_be_elsewhere_but_switches_follow_their_data():
    p = tf.placeholder(tf.bool, [], name="p")
    with tf.device("/cpu:1"):
        x = F.RandomUniform(tf.constant([64, 64]), dtype=tf.float32, name="x")
    y = tf.cond(p, lambda: tf.matmul(x, x, name="yes"), lambda: tf.negative(x, name="no"), name="c")
    placement = place(prune([y], [], [p]), CPUS)
    where = {node: device.name[-5:] for node, device in placement.items()}
    for node, device in where.items():
        if node.type == "Switch" and node.inputs[0].op.name == "x":
            assert device == "CPU:1"
        if node.type == "Merge":
            assert device == where[node.inputs[0].op]
