"""Where nodes may run: requests, kernels, colocation, handles and soft placement, as TensorFlow has them."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.framework import errors
from flowstone.framework.declarations.operation import F
from flowstone.placement.device_constraints import find_constraints, runs_everything
from flowstone.placement.devices import SimulatedDevice
from flowstone.rewriting.simplification.partial_execution import prune

pytestmark = pytest.mark.usefixtures("graph")

TASK = "/job:localhost/replica:0/task:0"
CPUS = [SimulatedDevice(f"{TASK}/device:CPU:{i}") for i in range(4)]
GPU = SimulatedDevice(f"{TASK}/device:GPU:0", "GPU")
MIXED = [CPUS[0], CPUS[1], GPU]


def feasible(fetches, devices=CPUS, soft=False, assigned=None):
    """{node name: short names of the devices that it may use}."""
    elements = fetches if isinstance(fetches, list) else [fetches]
    tensors = [x for x in elements if isinstance(x, tf.Tensor)]
    subgraph = prune(tensors, [x for x in elements if not isinstance(x, tf.Tensor)], [])
    constraints = find_constraints(subgraph.nodes, devices, soft, assigned)
    return {
        node.name: [devices[d].name[-5:] for d in constraints.feasible[constraints.group[i]]]
        for i, node in enumerate(subgraph.nodes)
    }


def random(name):
    with tf.device(None):
        size = tf.constant([2], name=name + "_size")
    return F.RandomUniform(size, dtype=tf.float32, name=name)


def colocate(tensor, *names):
    getattr(tensor, "op", tensor).attributes["_class"] = tuple("loc:@" + name for name in names)
    return tensor


def test_a_dataset_is_where_its_iterator_is():
    dataset = tf.data.Dataset.from_tensors([1, 2]).repeat()
    with tf.device("/cpu:1"):
        iterator = dataset.make_initializable_iterator()
    found = feasible(iterator.initializer)
    assert {name: found[name] for name in ("TensorDataset", "RepeatDataset", "MakeIterator")} == {
        "TensorDataset": ["CPU:1"], "RepeatDataset": ["CPU:1"], "MakeIterator": ["CPU:1"],
    }  # fmt: skip


# ---- requests


def test_a_free_node_may_run_anywhere_gpus_first():
    assert feasible(random("a"), MIXED)["a"] == ["GPU:0", "CPU:0", "CPU:1"]


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        ("/cpu:1", ["CPU:1"]),
        ("/cpu:*", ["CPU:0", "CPU:1"]),
        ("/task:0/gpu:0", ["GPU:0"]),
        ("/job:localhost", ["GPU:0", "CPU:0", "CPU:1"]),
        (f"{TASK}/device:CPU:0", ["CPU:0"]),
    ],
)
def test_a_request_may_name_a_device_in_part(requested, expected):
    with tf.device(requested):
        a = random("a")
    assert feasible(a, MIXED)["a"] == expected


@pytest.mark.parametrize("requested", ["/gpu:0", "/cpu:7", "/job:ps/task:1/cpu:0", "/device:XPU:0"])
def test_a_device_that_does_not_exist_is_an_error_that_lists_those_that_do(requested):
    with tf.device(requested):
        a = random("a")
    with pytest.raises(errors.InvalidArgumentError) as caught:
        feasible(a)
    message = caught.value.message
    assert message.startswith(
        f"Cannot assign a device for operation a: Operation was explicitly assigned to {a.device} but "
        f"available devices are [ {CPUS[0].name}, {CPUS[1].name}, "
    )
    assert message.endswith("Make sure the device specification refers to a valid device.")
    assert caught.value.op is a.op


@pytest.mark.parametrize("requested", ["/gpu:3", "/device:XPU:0", "/cpu:7"])
def test_soft_placement_takes_the_best_device_instead(requested):
    with tf.device(requested):
        a = random("a")
    assert feasible(a, MIXED, soft=True)["a"] == ["GPU:0"]
    assert feasible(a, CPUS, soft=True)["a"] == ["CPU:0"]


def test_soft_placement_stays_in_the_requested_task():
    with tf.device("/job:ps"):
        a = random("a")
    with pytest.raises(errors.InvalidArgumentError, match="explicitly assigned to /job:ps but"):
        feasible(a, soft=True)
    ps = SimulatedDevice("/job:ps/replica:0/task:0/device:CPU:0")
    with tf.device("/job:ps/gpu:0"):
        b = random("b")
    assert feasible(b, [*CPUS, ps], soft=True)["b"] == ["CPU:0"]


# ---- kernels


def test_strings_live_on_the_host():
    with tf.device("/gpu:0"):
        text = tf.identity(tf.placeholder(tf.string, [2], name="x"), name="text")
    assert feasible(tf.placeholder(tf.string, name="free"), MIXED)["free"] == ["CPU:0", "CPU:1"]
    with pytest.raises(errors.InvalidArgumentError) as caught:
        feasible(text, MIXED)
    assert (
        "Could not satisfy explicit device specification '/device:GPU:0' because no supported kernel for GPU "
        "devices is available.\nColocation Debug Info:"
    ) in caught.value.message
    assert feasible(text, MIXED, soft=True)["text"] == ["CPU:0"]


def test_an_op_without_a_kernel_for_any_device_here_is_an_error():
    with pytest.raises(errors.InvalidArgumentError, match="No kernel of op 'Const' supports any"):
        feasible(random("a"), [SimulatedDevice(f"{TASK}/device:XPU:0", "XPU")])


# ---- colocation


def test_a_group_shares_the_device_that_one_of_it_requests():
    with tf.device("/cpu:*"):
        a = random("a")
    with tf.device("/cpu:3"):
        b = colocate(tf.add(a, a, name="b"), "a")
    found = feasible(b)
    assert found["a"] == found["b"] == ["CPU:3"]


def test_nodes_of_one_class_form_a_group_even_without_the_node_it_names():
    with tf.device("/cpu:2"):
        a = colocate(random("a"), "pruned")
    b = colocate(random("b"), "pruned")
    c = colocate(random("c"), "elsewhere")
    found = feasible([a, b, c])
    assert found["a"] == found["b"] == ["CPU:2"]
    assert len(found["c"]) == 4


def test_colocation_is_transitive():
    with tf.device("/cpu:1"):
        a = random("a")
    b = colocate(random("b"), "a")
    c = colocate(random("c"), "b")
    assert feasible([a, b, c])["c"] == ["CPU:1"]


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ("/cpu:1", "incompatible ids: '/device:CPU:1' and '/device:CPU:2'"),
        ("/device:GPU:*", "incompatible types: '/device:GPU:*' and '/device:CPU:2'"),
        ("/job:ps/cpu:2", None),
    ],
)
def test_contradicting_requests_of_a_group_are_an_error_with_all_members(other, reason):
    with tf.device("/cpu:2"):
        a = random("a")
    between = colocate(random("between"), "a")
    with tf.device(other):
        b = colocate(tf.add(a, between, name="b"), "between")
    with pytest.raises(errors.InvalidArgumentError) as caught:
        feasible(b)
    message = caught.value.message
    if reason is None:  # only together they ask for what does not exist
        assert "explicitly assigned to /job:ps/device:CPU:2 but" in message
        return
    assert message.startswith(f"Cannot colocate nodes 'b' and 'a': Cannot merge devices with {reason}")
    assert "  a (RandomUniform) /device:CPU:2\n  between (RandomUniform)\n  b (Add) " in message
    assert feasible(b, soft=True)["b"] == ["CPU:0"]


def test_a_group_needs_a_device_type_with_all_its_kernels():
    xpu = SimulatedDevice(f"{TASK}/device:XPU:0", "XPU")
    F.RandomUniform.kernels["XPU"] = F.RandomUniform.kernels["CPU"]
    try:
        text = tf.placeholder(tf.string, name="text")
        a = colocate(random("a"), "text")
        with pytest.raises(errors.InvalidArgumentError) as caught:
            feasible([text, a], [GPU, xpu])
        assert "No kernel of op 'Placeholder' supports any of the devices here: GPU, XPU" in str(caught.value)
        b = colocate(tf.add(a, a, name="b"), "a")
        assert feasible(b, [CPUS[0], xpu])["b"] == ["CPU:0"]
        del F.RandomUniform.kernels["GPU"]
        with pytest.raises(errors.InvalidArgumentError) as caught:
            feasible(b, [GPU, xpu])
    finally:
        F.RandomUniform.kernels["GPU"] = F.RandomUniform.kernels["CPU"]
        del F.RandomUniform.kernels["XPU"]
    message = caught.value.message
    assert message.startswith(
        "Cannot colocate nodes 'b' and 'a' because no device type supports both of those nodes and the other "
        "nodes colocated with them.\nColocation Debug Info:\n"
    )
    assert "RandomUniform: XPU \nAdd: GPU \n" in message


# ---- buffers and handles


def test_an_update_goes_where_the_reference_is_whatever_it_asks():
    with tf.device("/cpu:2"):
        v = tf.Variable([1.0, 2.0], use_resource=False, name="v")
    with tf.device("/cpu:1"):
        update = colocate(tf.assign(v, random("r"), name="update"))
    found = feasible(update)
    assert found["v"] == found["update"] == ["CPU:2"]
    assert len(found["r"]) == 1 and found["r"] == ["CPU:1"]


def test_an_update_does_not_move_a_reference():
    v = tf.Variable([1.0, 2.0], use_resource=False, name="v")
    with tf.device("/cpu:1"):
        update = colocate(tf.assign(v, [2.0, 3.0], name="update"))
    assert len(feasible(update)["v"]) == 4


def test_a_read_of_a_reference_may_be_elsewhere():
    with tf.device("/cpu:2"):
        v = tf.Variable([1.0, 2.0], use_resource=False, name="v")
    with tf.device("/cpu:1"):
        read = tf.identity(v, name="r")
    found = feasible(read)
    assert found["v"] == ["CPU:2"] and found["r"] == ["CPU:1"]


def test_resource_operations_go_where_the_handle_is():
    with tf.device("/cpu:2"):
        v = tf.Variable([1.0, 2.0], use_resource=True, name="v")
    with tf.device("/cpu:1"):
        read = F.ReadVariableOp(v.handle, dtype=tf.float32, name="r")
    assert feasible(read)["r"] == ["CPU:2"]


def test_a_handle_without_a_request_goes_where_it_is_used():
    v = tf.Variable([1.0, 2.0], use_resource=True, name="v")
    with tf.device("/cpu:1"):
        read = F.ReadVariableOp(v.handle, dtype=tf.float32, name="r")
    found = feasible(read)
    assert found["v"] == found["r"] == ["CPU:1"]


@pytest.mark.parametrize("use_resource", [False, True])
def test_an_update_cannot_be_with_both_its_variable_and_another_device(use_resource):
    with tf.device("/cpu:2"):
        v = tf.Variable([1.0, 2.0], use_resource=use_resource, name="v")
    with tf.device("/cpu:1"):
        r = random("r")
        update = v.assign(r, name="update", read_value=False)
    colocate(update, "r")
    with pytest.raises(errors.InvalidArgumentError, match="Cannot colocate nodes 'r' and 'v'"):
        feasible(update)
    assert feasible(update, soft=True)["r"] == ["CPU:0"]


# ---- state of earlier plans


def test_state_stays_where_an_earlier_plan_put_it():
    v = tf.Variable([1.0, 2.0], use_resource=True, name="v")
    found = feasible(v.initializer, assigned={"v": CPUS[3].name})
    assert found["v"] == found["v/Assign"] == ["CPU:3"]
    gone = feasible(v.initializer, assigned={"v": "/job:gone/replica:0/task:0/device:CPU:0"})
    assert len(gone["v"]) == 4


def test_nodes_cannot_be_with_state_on_two_devices():
    a = colocate(random("a"), "g")
    b = colocate(random("b"), "g")
    with pytest.raises(errors.InvalidArgumentError) as caught:
        feasible([a, b], assigned={"a": CPUS[0].name, "b": CPUS[1].name})
    assert "Cannot colocate nodes 'a' and 'b'" in caught.value.message
    assert f"framework assigned={CPUS[1].name}" in caught.value.message


# ---- one device


def test_one_device_runs_everything_or_says_so():
    a = random("a")
    assert runs_everything(prune([a], [], []).nodes, CPUS[0])
    with tf.device("/cpu:1"):
        b = random("b")
    assert not runs_everything(prune([b], [], []).nodes, CPUS[0])
    assert runs_everything(prune([b], [], []).nodes, CPUS[1])
    assert not runs_everything(prune([a], [], []).nodes, SimulatedDevice("/device:XPU:0", "XPU"))
