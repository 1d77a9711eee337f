"""What a GPU's kernels ask of the host, found without a GPU: nothing, or their declarations say it.

The kernels run on torch's device `meta`, where tensors have shapes but no values: who asks for a value, or
gives a kernel the host's memory where the device's belongs, fails there as he would wait or fail on a GPU.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import flowstone as tf
import op_cases
import training_programs
from flowstone.framework.declarations.containers import ResourceStore, Variable
from flowstone.framework.declarations.kernel import GPU, Environment
from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.lowering.passes import LOWERING, passes_for
from flowstone.rewriting.invariants import check
from flowstone.runtime.code.segments import compile_segment
from flowstone.runtime.plans.cuda_graph import obstacle
from flowstone.runtime.plans.plan import placed_subgraph
from flowstone.runtime.plans.plan_options import PlanOptions
from flowstone.runtime.process.device import Device
from flowstone.runtime.steps.step import Step
from pattern_programs import PROGRAMS
from pattern_variants import Program
from state_sessions import lower_sizes

assert training_programs  # which adds to PROGRAMS
META = torch.device("meta")
DEVICE = Device("/job:localhost/replica:0/task:0/device:GPU:0", GPU, META)


_COPIES = ("aten._to_copy", "aten.to.", "aten.copy_")


class _OneMemory(TorchDispatchMode):
    """Refuses calls on tensors of both memories, though scalars of the host may go everywhere, and copies
    from one to the other.
    """

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if len({x.device.type for x in tensors if x.dim() or x.device == META}) > 1:
            raise RuntimeError(f"{function}: tensors of the host and of the device")
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.device == META:
            copies = str(function).startswith(_COPIES) and any(x.device != META for x in tensors)
            # the only sign of torch.tensor(numbers, device=…)
            if copies or str(function) == "aten.detach_.default":
                raise RuntimeError(f"{function}: copies from the host to the device")
        return result


def run(fetches: list[Any], feeds: list[Any]) -> str:
    """Runs the fetches with the kernels of a GPU; returns why the step cannot be recorded."""
    return run_planned(placed_subgraph(fetches, [], feeds, PlanOptions([DEVICE]))[0])


def run_planned(subgraph: Subgraph) -> str:
    """Runs what a GPU was planned to; returns why the step cannot be recorded."""
    # torch has no generators for this device, and takes the host's
    states = {node.name: torch.Generator() for node in subgraph.nodes if "seed2" in node.attributes}
    environment = Environment(GPU, META, ResourceStore(), states)
    with torch.inference_mode():
        segment = compile_segment(subgraph, environment, feeds_are_there=True)
        for node in subgraph.nodes:
            for value in segment.globals.values():
                if type(value) is Variable and value.name in (node.name, node.attributes.get("shared_name")):
                    dims, dtype = node.attributes["shape"], node.attributes["dtype"].torch
                    value.tensor = torch.empty(dims, dtype=dtype, device=META)
        values = [torch.empty(x.dims, dtype=x.dtype.torch, device=META) for x in subgraph.feeds]
        with _OneMemory():
            segment.function(Step(), *values)
    return obstacle(subgraph, segment)


# ---- training steps


def dense(x: Any, units: int) -> Any:
    weights = tf.Variable(tf.random_normal([int(x.shape[1]), units]))
    return tf.matmul(x, weights) + tf.Variable(tf.zeros([units]))


def convolutional(x: Any) -> Any:
    filters = tf.Variable(tf.truncated_normal([3, 3, 3, 8]))
    h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, filters, [1, 1, 1, 1], "SAME"), tf.Variable(tf.zeros([8]))))
    h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = tf.nn.avg_pool(tf.nn.lrn(h), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    return dense(tf.nn.dropout(tf.reshape(h, [4, -1]), keep_prob=0.5), 10)


def recurrent(x: Any) -> Any:
    table = tf.get_variable("table", [50, 6])
    words = tf.cast(tf.reshape(tf.reduce_sum(x, [2, 3]), [4, 8]), tf.int32)
    inputs = tf.nn.embedding_lookup(table, words)
    c = h = tf.zeros([4, 6])
    for t in range(8):
        i, j, f, o = tf.split(dense(tf.concat([inputs[:, t, :], h], 1), 24), 4, 1)
        c = c * tf.sigmoid(f) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    return dense(h, 10)


OPTIMIZERS = {
    "descent": lambda rate: tf.train.GradientDescentOptimizer(rate),
    "momentum": lambda rate: tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True),
    "adam": lambda rate: tf.train.AdamOptimizer(rate),
    "rmsprop": lambda rate: tf.train.RMSPropOptimizer(rate, centered=True),
    "adadelta": lambda rate: tf.train.AdadeltaOptimizer(rate),
    "adagrad": lambda rate: tf.train.AdagradOptimizer(rate),
    "ftrl": lambda rate: tf.train.FtrlOptimizer(rate),
}


def training(model: Any, optimizer: str) -> str:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [4, 8, 8, 3])
        y = tf.placeholder(tf.int32, [4])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x)))
        count = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(0.1, count, 100, 0.9, staircase=True)
        gradients, variables = zip(*OPTIMIZERS[optimizer](rate).compute_gradients(loss))
        clipped, _ = tf.clip_by_global_norm(gradients, 5.0)
        train = OPTIMIZERS[optimizer](rate).apply_gradients(zip(clipped, variables), global_step=count)
        with tf.control_dependencies([train]):
            return run([tf.identity(loss)], [x, y])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_convolutional_step_can_be_recorded(optimizer):
    assert training(convolutional, optimizer) == ""


def test_a_recurrent_step_with_an_embedding_can_be_recorded():
    assert training(recurrent, "descent") == ""


LOOPS = {
    "dynamic_rnn": lambda x: tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(3), x, dtype=tf.float32)[0],
    "scan": lambda x: tf.scan(lambda state, row: tf.tanh(state + row), x),
    "map_fn": lambda x: tf.map_fn(lambda row: tf.tanh(row), x),
    "while_loop": lambda x: tf.while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, tf.sin(h)), [0, x])[1],
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_step_with_a_loop_that_counts_can_be_recorded(name):
    assert training(lambda x: dense(tf.reshape(LOOPS[name](x[:, :, 0]), [4, -1]), 10), "momentum") == ""


def test_a_loop_that_asks_for_a_value_cannot():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        halved = tf.while_loop(lambda y: y > 1, lambda y: y / 2, [x])
        subgraph, _ = placed_subgraph([halved], [], [x], PlanOptions([DEVICE]))
        environment = Environment(GPU, META, ResourceStore(), {})
        with torch.inference_mode():
            segment = compile_segment(subgraph, environment, feeds_are_there=True)
        assert "(LoopCond) decides in the step which nodes run" in obstacle(subgraph, segment)


def test_updates_of_rows_look_at_their_indices_on_the_host():
    with pytest.raises((RuntimeError, NotImplementedError), match="item"):
        training(recurrent, "adagrad")


def test_variables_live_on_the_device():
    with tf.Graph().as_default():
        count = tf.Variable(0)
        more = count.assign(tf.constant(5))
        subgraph, _ = placed_subgraph([more], [], [], PlanOptions([DEVICE]))
        environment = Environment(GPU, META, ResourceStore(), {})
        with torch.inference_mode():
            segment = compile_segment(subgraph, environment, feeds_are_there=True)
            assert segment.function(Step())[0].device == META


# ---- what lowering makes

MADE = [each.name for each in passes_for(GPU, in_part=False) if not each.follows]
LOOKS = {  # what the host has to do in a step with it
    "mask_accidental_hits": "Cannot copy out of meta tensor",  # SparseToDense has a kernel for hosts only
    "sum_repeated_rows": "item",  # updates of rows look at their indices
}


@pytest.fixture
def small_gains(monkeypatch: Any) -> None:
    """Has passes change programs whose tensors are small."""
    lower_sizes(monkeypatch.setattr)


def planned(program: Program) -> Subgraph:
    """The program's plan for a GPU."""
    built = program.drafted()
    targets = [x.op if hasattr(x, "op") else x for x in built.draft.targets]
    subgraph, _ = placed_subgraph(built.fetches, targets, list(built.draft.feeds), PlanOptions([DEVICE]))
    check(subgraph)
    return subgraph


def fires(program: Program, subgraph: Subgraph) -> bool:
    return any(name == program.name for name, _, _ in subgraph.log)


@pytest.mark.usefixtures("small_gains")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.needs_onednn] * (name == "pack_weights")) for name in MADE]
)
def test_what_a_pass_of_lowering_makes_runs_on_a_gpu(name: str) -> None:
    subgraphs = [(p, planned(p)) for p in PROGRAMS if p.name == name and p.applies]
    fired = [subgraph for program, subgraph in subgraphs if fires(program, subgraph)]
    assert fired, f"no program's plan for a GPU has what {name} makes"
    for subgraph in fired:
        if name in LOOKS:
            with pytest.raises((RuntimeError, NotImplementedError), match=LOOKS[name]):
                run_planned(subgraph)
        else:
            run_planned(subgraph)


@pytest.mark.usefixtures("small_gains")
@pytest.mark.parametrize("name", [each.name for each in LOWERING if each.hosts])
def test_what_is_for_hosts_is_not_planned_for_a_gpu(name: str) -> None:
    for program in PROGRAMS:
        if program.name == name:
            assert not fires(program, planned(program))


# ---- all ops

FIRST = {}
for family in op_cases.families():
    for case in op_cases.load(family):
        if GPU in registry[case.op].kernels and not case.error and case.op not in FIRST:
            FIRST[case.op] = case


def build(case: op_cases.Case) -> tuple[list[Any], list[Any]]:
    """The op's outputs and its placeholders; what it wants in host memory is constant."""
    declaration, feeds = registry[case.op], []

    def argument(one: Any, on_host: bool) -> Any:
        if isinstance(one, list):
            return [argument(part, on_host) for part in one]
        if one.role != "tensor":
            variable = tf.Variable(one.value, use_resource=one.role == "resource")
            return variable.handle if one.role == "resource" else variable._ref()
        if on_host or one.value.dtype == object:
            return tf.constant(one.value, one.dtype)
        feeds.append(tf.placeholder(tf.as_dtype(one.dtype), one.value.shape))
        return feeds[-1]

    if declaration.deprecated is not None:
        tf.get_default_graph().producer = declaration.deprecated[0] - 1
    arguments = [
        argument(one, spec.name in declaration.host) for one, spec in zip(case.inputs(), declaration.inputs)
    ]
    attributes = {
        name: tf.as_dtype(value)
        if isinstance(value, str) and op_cases.dtype_name(value) in op_cases.NUMPY_DTYPES
        else value
        for name, value in case.attributes.items()
    }
    return flat(declaration(*arguments, **attributes)), feeds


def flat(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [element for part in result for element in flat(part)]
    return [result]


@pytest.mark.parametrize("name", sorted(name for name in FIRST if registry[name].is_capturable))
def test_what_is_declared_capturable_asks_the_host_for_nothing(name):
    with tf.Graph().as_default():
        fetches, feeds = build(FIRST[name])
        if any(x.dtype.base_dtype is tf.string for x in fetches if isinstance(x, tf.Tensor)):
            pytest.skip("strings are on the host")
        targets = [x for x in fetches if not isinstance(x, tf.Tensor)]
        with tf.control_dependencies(targets):
            fetches = [x for x in fetches if isinstance(x, tf.Tensor)] or [tf.constant(1.0) + 1.0]
        try:
            run(fetches, feeds)
        except NotImplementedError as error:
            if "no fake impl or Meta kernel" not in str(error):
                raise
            pytest.skip("torch has no such kernel for meta")
