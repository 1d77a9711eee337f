"""`tf.TensorArray`: values, gradients, nodes, shapes and mistakes; expectations are TensorFlow's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors import nest
from flowstone.ops.lists.tensor_array_elements import ArrayElements
from flowstone.ops.lists.tensor_array_gradients import gradient_source
from flowstone.ops.lists.tensor_array_ops import GENERATIONS

pytestmark = pytest.mark.usefixtures("graph")


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def in_turn(*makers: Callable[[], Any]) -> list[Any]:
    """What the functions make, each after the one before has run."""
    made: list[Any] = []
    for make in makers:
        with tf.control_dependencies(made[-1:]):
            made.append(make())
    return made


# ---- values


def test_write_and_stack() -> None:
    ta = tf.TensorArray(tf.float32, 3).write(1, [1.0, 2.0]).write(0, [3.0, 4.0]).write(2, [5.0, 6.0])
    assert run(ta.stack()).tolist() == [[3, 4], [1, 2], [5, 6]]


def test_unstack_read_gather() -> None:
    ta = tf.TensorArray(tf.int32, 3, clear_after_read=False).unstack([1, 2, 3])
    values = run([ta.read(2), ta.gather([1, 1, 0]), ta.size(), ta.read(tf.constant(0))])
    assert [np.asarray(v).tolist() for v in values] == [3, [2, 2, 1], 3, 1]


def test_matrices_that_lie_apart_are_copied_at_once() -> None:
    elements = ArrayElements("steps", tf.float32, 2)
    elements.scatter([0, 1], torch.arange(12.0).view(3, 2, 2).transpose(0, 1), None, tf.float32)
    first, second = (elements.read(i, tf.float32) for i in range(2))
    assert first.is_contiguous() and first.tolist() == [[0, 1], [4, 5], [8, 9]]
    assert second.data_ptr() == first.data_ptr() + 4 * first.numel()
    elements, whole = ArrayElements("steps", tf.float32, 2), torch.zeros(2, 3, 2)
    elements.scatter([0, 1], whole, None, tf.float32)
    assert elements.elements[0].data_ptr() == whole.data_ptr()  # which needs no copy


def test_split_and_concat() -> None:
    ta = tf.TensorArray(tf.float32, 2, infer_shape=False).split([[1.0], [2.0], [3.0]], [1, 2])
    joined, lengths = F.TensorArrayConcatV3(ta.handle, ta.flow, dtype=tf.float32)
    joined, lengths = run([joined, lengths])
    assert joined.tolist() == [[1], [2], [3]] and lengths.tolist() == [1, 2] and lengths.dtype == np.int64
    assert run(ta.read(1)).tolist() == [[2], [3]]


def test_no_scalars_are_joined() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        joined = tf.TensorArray(tf.float32, 0, element_shape=[]).concat()
        assert session.run(joined).shape == (0,)


def test_scatter_then_write() -> None:
    ta = tf.TensorArray(tf.float32, 3).scatter([2, 0], [1.0, 2.0]).write(1, 4.0)
    assert run(ta.stack()).tolist() == [2, 4, 1]


def test_dynamic_size() -> None:
    ta = tf.TensorArray(tf.float32, 0, dynamic_size=True).write(5, 1.0)
    assert run([ta.size(), ta.read(5)]) == [6, 1.0]
    grown = tf.TensorArray(tf.float32, 1, dynamic_size=True).scatter([0, 4], [1.0, 2.0])
    assert run(grown.size()) == 5
    parts = tf.TensorArray(tf.float32, 1, dynamic_size=True, infer_shape=False).split([1.0, 2.0, 3.0], [1, 2])
    assert run(parts.size()) == 2


def test_size_known_in_the_step_only() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    ta = tf.TensorArray(tf.float32, tf.shape(x)[0]).unstack(x)
    doubled = tf.TensorArray(tf.float32, tf.shape(x)[0]).scatter(tf.range(tf.shape(x)[0]), ta.stack() * 2)
    for n in (1, 3, 0):
        value = np.arange(2.0 * n).reshape(n, 2)
        if n:
            assert run(doubled.stack(), {x: value}).tolist() == (2 * value).tolist()
        else:
            assert run(doubled.size(), {x: value}) == 0


def test_strings() -> None:
    ta = tf.TensorArray(tf.string, 2, clear_after_read=False).unstack(["a", "b"])
    read, stacked, joined = run(
        [ta.read(1), ta.stack(), tf.TensorArray(tf.string, 1).write(0, ["c"]).concat()]
    )
    assert (read, stacked.tolist(), joined.tolist()) == (b"b", [b"a", b"b"], [b"c"])
    parts = tf.TensorArray(tf.string, 2, infer_shape=False).split(["x", "y", "z"], [1, 2])
    assert run(parts.read(1)).tolist() == [b"y", b"z"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not read index 0 twice"):
        once = tf.TensorArray(tf.string, 1).unstack(["a"])
        run(in_turn(lambda: once.read(0), lambda: once.read(0)))


def test_never_written_elements_of_a_known_shape_are_zeros() -> None:
    assert run(tf.TensorArray(tf.float32, 3, element_shape=[2]).read(0)).tolist() == [0, 0]
    assert run(tf.TensorArray(tf.float32, 2).write(0, 1.0).stack()).tolist() == [1, 0]
    assert run(tf.TensorArray(tf.bool, 1, element_shape=[2]).stack()).tolist() == [[False, False]]


def test_elements_that_no_step_of_a_loop_wrote_are_zeros() -> None:
    def array(steps: int) -> tf.TensorArray:
        initial = [tf.constant(0), tf.TensorArray(tf.float32, 3)]
        return tf.while_loop(lambda i, _: i < steps, lambda i, a: (i + 1, a.write(i, 1.0)), initial)[1]

    assert run(array(0).stack()).tolist() == [0, 0, 0]
    assert run(array(1).gather([2, 0])).tolist() == [0, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="element shape is not fully defined"):
        run(array(0).read(0))


def test_empty_arrays() -> None:
    assert run(tf.TensorArray(tf.float32, 0, element_shape=[2]).stack()).shape == (0, 2)
    assert run(tf.TensorArray(tf.float32, 0, element_shape=[None, 2]).concat()).shape == (0, 2)
    with pytest.raises(tf.errors.UnimplementedError, match="TensorArray has size zero, but element shape"):
        run(tf.TensorArray(tf.float32, 0).stack())
    with pytest.raises(tf.errors.UnimplementedError, match="element_shape_except0 <unknown> is not fully"):
        run(tf.TensorArray(tf.float32, 0).concat())


def test_an_array_is_made_anew_by_each_step() -> None:
    ta = tf.TensorArray(tf.float32, 1).write(0, 1.0)
    with tf.Session() as session:
        value = ta.read(0)
        assert [session.run(value) for _ in range(3)] == [1, 1, 1]


# ---- memory: elements are shared, never overwritten


def test_what_is_written_stays() -> None:
    x = tf.constant([1.0, 2.0]) * tf.placeholder_with_default(2.0, [])
    ta = tf.TensorArray(tf.float32, 1, clear_after_read=False).write(0, x)
    _, y, again = in_turn(lambda: ta.flow, lambda: x + 1.0, lambda: ta.identity().read(0))
    z, third = in_turn(lambda: again + 5.0, lambda: ta.identity().read(0))
    values = run([y, z, third])
    assert [v.tolist() for v in values] == [[3, 5], [7, 9], [2, 4]]


def test_what_is_read_can_be_fetched_with_its_source() -> None:
    x = tf.placeholder(tf.float32, [2])
    value = np.array([1.0, 2.0], np.float32)
    read = run(tf.TensorArray(tf.float32, 1).write(0, x).read(0), {x: value})
    value[0] = 7.0
    assert read.tolist() == [1, 2]


@pytest.mark.parametrize("joined_flows", [False, True])
def test_a_variables_value_is_that_of_the_read(joined_flows: bool) -> None:
    variable = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
    ta = tf.TensorArray(tf.float32, 2, clear_after_read=False)
    value = variable.read_value()
    written = ta.write(0, value)
    if joined_flows:
        written = ta._with_flow(tf.add_n([written.flow, ta.write(1, value * 1.0).flow]))
    _, _, read = in_turn(
        lambda: written.flow, lambda: variable.assign_add([10.0, 10.0]), lambda: written.identity().read(0)
    )
    assert run([read, variable])[0].tolist() == [1, 2]


# ---- gradients


def gradient(build: Callable[[Any], Any]) -> list[Any]:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    y = build(x)
    weights = tf.reshape(tf.range(1.0, 1.0 + int(np.prod(y.shape.as_list()))), y.shape)
    return run(tf.gradients(y * weights, x)[0]).tolist()


def test_gradient_of_unstack_and_stack() -> None:
    def build(x: Any) -> Any:
        ta = tf.TensorArray(tf.float32, 3).unstack(x)
        out = tf.TensorArray(tf.float32, 3)
        for i in range(3):
            out = out.write(i, ta.read(2 - i) * float(i + 1))
        return out.stack()

    assert gradient(build) == [[15, 18], [6, 8], [1, 2]]


def test_gradient_of_scatter_and_gather() -> None:
    def build(x: Any) -> Any:
        ta = tf.TensorArray(tf.float32, 4, clear_after_read=False).scatter([3, 0, 1], x)
        return ta.gather([0, 0, 3])

    assert gradient(build) == [[5, 6], [4, 6], [0, 0]]


def test_gradient_of_split_and_concat() -> None:
    def build(x: Any) -> Any:
        ta = tf.TensorArray(tf.float32, 2, infer_shape=False).split(x, [1, 2])
        joined = ta.concat()
        joined.set_shape([3, 2])
        return joined

    assert gradient(build) == [[1, 2], [3, 4], [5, 6]]


def test_gradients_of_several_reads_add_up() -> None:
    def build(x: Any) -> Any:
        ta = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(x)
        return tf.stack([ta.read(0), ta.read(2), ta.read(0) * 10.0])

    assert gradient(build) == [[51, 62], [0, 0], [3, 4]]


def test_two_gradient_computations_do_not_mix() -> None:
    x = tf.constant([1.0, 2.0])
    ta = tf.TensorArray(tf.float32, 2, clear_after_read=False).unstack(x)
    y = ta.stack() * 3.0
    first, second = tf.gradients(y, x)[0], tf.gradients(y, x)[0]
    assert [v.tolist() for v in run([first, second])] == [[3, 3], [3, 3]]
    sources = {op.get_attr("source") for op in x.graph.get_operations() if op.type == "TensorArrayGradV3"}
    assert sources == {b"gradients", b"gradients_1"}


def test_gradient_source() -> None:
    assert gradient_source("tower/gradients/while/gradients_2/mul:0") == "tower/gradients/while/gradients_2"
    x = tf.constant([1.0])
    y = tf.TensorArray(tf.float32, 1).unstack(x).read(0)
    with pytest.raises(ValueError, match=r"start with gradients .*got: mine/Fill:0"):
        tf.gradients(y, x, name="mine")


def test_array_of_gradients() -> None:
    ta = tf.TensorArray(tf.float32, 3).unstack([1.0, 2.0, 3.0])
    grad = ta.grad("s").write(0, 5.0).write(0, 6.0).write(0, 7.0)
    assert run([grad.read(0), grad.read(1)]) == [18, 0]
    assert run(ta.grad("t").write(1, 5.0).stack()).tolist() == [0, 5, 0]


def test_array_of_gradients_with_shape() -> None:
    ta = tf.TensorArray(tf.float32, 2).write(0, [1.0, 2.0])
    handle, flow = F.TensorArrayGradWithShape(ta.handle, ta.flow, [3], source="x")
    assert run(F.TensorArrayReadV3(handle, 1, flow, dtype=tf.float32)).shape == (3, 2)


# ---- in loops and branches


def test_loop_carries_an_array_in_a_structure() -> None:
    x = tf.constant([1.0, 2.0])

    def body(i: Any, state: Any) -> Any:
        even = tf.equal(i % 2, 0)
        written = tf.cond(even, lambda: state["a"].write(i, x * 2.0), lambda: state["a"].write(i, x * 3.0))
        return i + 1, {"a": written}

    _, state = tf.while_loop(lambda i, _: i < 4, body, (0, {"a": tf.TensorArray(tf.float32, 4)}))
    y = state["a"].stack()
    assert y.shape.as_list() == [4, 2]
    values, grad = run([y, tf.gradients(y, x)[0]])
    assert values.tolist() == [[2, 4], [3, 6], [2, 4], [3, 6]] and grad.tolist() == [10, 10]


def test_loop_writes_elements_of_different_lengths() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    _, ta = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, ta: (i + 1, ta.write(i, tf.fill([i + 1], 1.0) * x[i])),
        (0, tf.TensorArray(tf.float32, 3, infer_shape=False)),
    )
    y = ta.concat()
    values, grad = run([y, tf.gradients(y * tf.range(6.0), x)[0]])
    assert values.tolist() == [1, 2, 2, 3, 3, 3] and grad.tolist() == [0, 3, 12]


def test_loop_reads_an_element_several_times() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    ta = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(x)
    total = tf.while_loop(
        lambda i, _: i < 4, lambda i, a: (i + 1, a + ta.read(0) * ta.read(i % 3)), (0, 0.0)
    )[1]
    value, grad = run([total, tf.gradients(total, x)[0]])
    assert value == 7 and grad.tolist() == [9, 1, 1]


def test_loop_writes_its_counters() -> None:
    def body(i: Any, total: Any, counts: Any, totals: Any) -> Any:
        total = total + tf.cast(i, tf.float32) * 0.5
        return i + 1, total, counts.write(i, i * i), totals.write(i, total)

    arrays = tf.TensorArray(tf.int32, 3), tf.TensorArray(tf.float32, 3)
    _, total, counts, totals = tf.while_loop(lambda i, *_: i < 3, body, (0, 0.0, *arrays))
    final, squares, sums = run([total, counts.stack(), totals.stack()])
    assert (final, squares.tolist(), sums.tolist()) == (1.5, [0, 1, 4], [0, 0.5, 1.5])


def test_loop_makes_arrays() -> None:
    x = tf.constant([1.0, 2.0, 3.0])

    def body(i: Any, a: Any) -> Any:
        return i + 1, a * tf.reduce_sum(tf.TensorArray(tf.float32, 3).unstack(x * a).stack())

    y = tf.while_loop(lambda i, _: i < 2, body, (0, 1.0))[1]
    value, grad = run([y, tf.gradients(y, x)[0]])
    assert value == 216 and grad.tolist() == [108, 108, 108]


def test_branches_hand_on_an_array(graph) -> None:
    p = tf.placeholder(tf.bool, [])
    ta = tf.TensorArray(tf.float32, 2)
    chosen = tf.cond(p, lambda: ta.write(0, 3.0), lambda: ta.write(0, 4.0))
    assert chosen.handle is ta.handle and chosen.flow.op.type == "Merge"
    stacked = chosen.write(1, 5.0).stack()
    assert run(stacked, {p: True}).tolist() == [3, 5] and run(stacked, {p: False}).tolist() == [4, 5]


def test_gradient_of_a_read_in_a_branch() -> None:
    x, p = tf.constant([1.0, 2.0]), tf.placeholder(tf.bool, [])
    ta = tf.TensorArray(tf.float32, 2, clear_after_read=False).unstack(x)
    y = tf.cond(p, lambda: ta.read(0) * 2.0, lambda: ta.read(1) * 3.0)
    grad = tf.gradients(y, x)[0]
    assert run(grad, {p: True}).tolist() == [2, 0] and run(grad, {p: False}).tolist() == [0, 3]


# ---- older generations


@pytest.mark.parametrize("generation", GENERATIONS)
def test_generations(generation: str) -> None:
    tf.get_default_graph().producer = 15  # later graphs have the third generation alone

    def op(name: str, *inputs: Any, **attributes: Any) -> Any:
        return getattr(F, f"TensorArray{name}{generation}")(*inputs, **attributes)

    made = op("", 3, dtype=tf.float32, clear_after_read=False)
    handle, flow = made if generation == "V3" else (made, tf.constant(0.0))
    flow = op("Write", handle, 0, [1.0, 2.0], flow)
    flow = op("Scatter", handle, [1, 2], [[3.0, 4.0], [5.0, 6.0]], flow)
    gathered = op("Gather", handle, [2, 0], flow, dtype=tf.float32)
    joined, lengths = op("Concat", handle, flow, dtype=tf.float32)
    read, size = op("Read", handle, 1, flow, dtype=tf.float32), op("Size", handle, flow)
    grad = op("Grad", handle, flow, source="s")
    grad, grad_flow = grad if generation == "V3" else (grad, flow)
    grad_flow = op("Split", grad, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], np.array([2, 2, 2]), grad_flow)
    grad_read = op("Read", grad, 2, grad_flow, dtype=tf.float32)
    values = run([gathered, joined, lengths, read, size, grad_read])
    assert [np.asarray(v).tolist() for v in values] == [
        [[5, 6], [1, 2]],
        [1, 2, 3, 4, 5, 6],
        [2, 2, 2],
        [3, 4],
        3,
        [5, 6],
    ]
    with tf.Session() as session:
        assert session.run(op("Close", handle)) is None


def test_pack_and_unpack() -> None:
    tf.get_default_graph().producer = 15
    handle = F.TensorArray(2, dtype=tf.float32)
    flow = F.TensorArrayUnpack(handle, [1.0, 2.0], 0.0)
    packed = F.TensorArrayPack(handle, flow, dtype=tf.float32, element_shape=[])
    assert packed.shape.as_list() == [None] and run(packed).tolist() == [1, 2]


# ---- nodes and static shapes


def names(prefix: str = "") -> list[tuple[str, str]]:
    graph = tf.get_default_graph()
    return [(op.name, op.type) for op in graph.get_operations() if op.name.startswith(prefix)]


def test_names() -> None:
    x = tf.constant([[1.0], [2.0]], name="x")
    ta = tf.TensorArray(tf.float32, 2, name="arr").unstack(x)
    tf.TensorArray(tf.float32, 2).write(1, ta.read(0, name="r"), name="w").stack()
    found = dict(names())
    assert {
        "arr/size": "Const",
        "arr": "TensorArrayV3",
        "TensorArrayUnstack/Shape": "Const",
        "TensorArrayUnstack/strided_slice": "StridedSlice",
        "TensorArrayUnstack/range": "Range",
        "TensorArrayUnstack/TensorArrayScatter/TensorArrayScatterV3": "TensorArrayScatterV3",
        "r/index": "Const",
        "r": "TensorArrayReadV3",
        "TensorArray": "TensorArrayV3",
        "w/w/index": "Const",
        "w/w": "TensorArrayWriteV3",
        "TensorArrayStack/TensorArraySizeV3": "TensorArraySizeV3",
        "TensorArrayStack/range": "Range",
        "TensorArrayStack/TensorArrayGatherV3": "TensorArrayGatherV3",
    }.items() <= found.items()


def test_gradient_nodes(graph) -> None:
    x = tf.constant([1.0, 2.0], name="x")
    tf.gradients(tf.TensorArray(tf.float32, 2).unstack(x).stack(), x)
    scatter = "gradients/TensorArrayUnstack/TensorArrayScatter/TensorArrayScatterV3_grad"
    gather = "gradients/TensorArrayStack/TensorArrayGatherV3_grad"
    assert [name for name, _ in names(scatter)] == [
        f"{scatter}/TensorArrayGrad/TensorArrayGradV3",
        f"{scatter}/TensorArrayGrad/gradient_flow",
        f"{scatter}/TensorArrayGatherV3",
    ]
    assert [name for name, _ in names(gather)] == [
        f"{gather}/TensorArrayGrad/TensorArrayGradV3",
        f"{gather}/TensorArrayGrad/gradient_flow",
        f"{gather}/TensorArrayScatter/TensorArrayScatterV3",
    ]
    node = graph.get_operation_by_name(f"{gather}/TensorArrayGrad/TensorArrayGradV3")
    assert node.colocation_groups() == [b"loc:@TensorArray"]


def test_placed_with_the_first_value_written(graph) -> None:
    x = tf.constant(1.0, name="x")
    with tf.device("/cpu:0"):
        ta = tf.TensorArray(tf.float32, 2).write(0, x).write(1, x + 1.0)
    assert ta.handle.op.device == ""
    writes = [op for op in graph.get_operations() if op.type == "TensorArrayWriteV3"]
    assert [op.colocation_groups() for op in writes] == [[b"loc:@x"], [b"loc:@x"]]


def test_static_shapes() -> None:
    ta = tf.TensorArray(tf.float32, 2, element_shape=[3, None])
    assert ta.read(0).shape.as_list() == [3, None]
    assert ta.stack().shape.as_list() == [2, 3, None]
    assert ta.concat().shape.as_list() == [6, None]
    assert ta.gather(tf.placeholder(tf.int32)).shape.as_list() == [None, 3, None]
    ta = ta.unstack(tf.zeros([2, 3, 4]))
    assert ta.element_shape.as_list() == [3, 4] and ta.grad("s").element_shape.as_list() == [3, 4]
    assert tf.TensorArray(tf.float32, 2).stack().shape.ndims is None
    parts = tf.TensorArray(tf.float32, 2).split(tf.zeros([4, 5]), [1, 3])
    assert parts.element_shape.as_list() == [None, 5]
    assert tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, [1.0]).element_shape.ndims is None


def test_properties() -> None:
    size = tf.constant(2)
    ta = tf.TensorArray("float32", size)
    assert (ta.dtype, ta.dynamic_size, ta.handle.dtype, ta.flow.dtype) == (
        tf.float32,
        False,
        tf.resource,
        tf.float32,
    )
    assert tf.get_static_value(ta.size()) == 2
    assert ta.handle.shape.as_list() == [2] and ta.flow.shape.as_list() == []
    assert tf.TensorArray(tf.float32, size, dynamic_size=True).size().op.type == "TensorArraySizeV3"
    assert nest.flatten([ta]) == [ta]
    same = ta.identity()
    assert same.handle is ta.handle and same.flow.op.type == "Identity"
    adopted = tf.TensorArray(tf.float32, handle=ta.handle, flow=ta.flow)
    assert adopted.handle is ta.handle and adopted.size().op.type == "TensorArraySizeV3"


# ---- mistakes

X = tf.errors.InvalidArgumentError


def vague(value: Any) -> Any:
    """`value` as a tensor of unknown static shape."""
    return tf.placeholder_with_default(value, None)


STEP_MISTAKES: dict[str, Callable[[], Any]] = {
    r"Could not read from TensorArray index 0\.": lambda: tf.TensorArray(tf.float32, 3).read(0),
    r"Tried to read from index 3 but array size is: 3": lambda: tf.TensorArray(tf.float32, 3).read(3),
    r"Tried to read from index -1 but": lambda: tf.TensorArray(tf.float32, 3).read(-1),
    r"Tried to write to index 3 but array is not resizeable and size is: 3": lambda: (
        tf.TensorArray(tf.float32, 3).write(3, 1.0).flow
    ),
    r"Tried to write to index -1 but": lambda: (
        tf.TensorArray(tf.float32, 3, dynamic_size=True).write(-1, 1.0).flow
    ),
    r"TensorArray foo: Could not write to TensorArray index 1 because it has": lambda: (
        tf.TensorArray(tf.float32, 3, tensor_array_name="foo").write(1, 1.0).write(1, 2.0).flow
    ),
    r"\[3\] which is incompatible with the TensorArray's inferred element shape: \[2\]": lambda: (
        tf.TensorArray(tf.float32, 3, element_shape=[2]).write(0, vague([1.0, 2.0, 3.0])).flow
    ),
    r"index 1 because the value shape is \[1\] which": lambda: (
        tf.TensorArray(tf.float32, 3).write(0, vague([1.0, 2.0])).write(1, vague([1.0])).flow
    ),
    r"inconsistent shapes.  Index 0 has shape: \[2\] but index 1 has shape: \[1\]": lambda: (
        tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, [1.0, 2.0]).write(1, [1.0]).stack()
    ),
    r"dtype is float but Op is trying to write dtype int32": lambda: (
        tf.TensorArray(tf.float32, 3).write(0, tf.constant(1)).flow
    ),
    r"TensorArray dtype is float but Op requested dtype double": lambda: F.TensorArrayReadV3(
        *(lambda ta: (ta.handle, 0, ta.flow))(tf.TensorArray(tf.float32, 1).write(0, 1.0)), dtype=tf.float64
    ),
    r"Tried to read from index 2 but": lambda: tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0]).gather([2]),
    r"Could not read index 1 twice": lambda: tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0]).gather([1, 1]),
    r"Max scatter index must be < array size \(4 vs. 4\)": lambda: (
        tf.TensorArray(tf.float32, 4).scatter([0, 4], [1.0, 2.0]).flow
    ),
    r"must be at least a vector but received shape: \[\]": lambda: (
        tf.TensorArray(tf.float32, 4).scatter([0], vague(1.0)).flow
    ),
    r"Index 0 has \(excepting dimension 0\) shape: \[2\] but index 1 has": lambda: (
        tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, [[1.0, 2.0]]).write(1, [[3.0]]).concat()
    ),
    r"Concat saw a scalar shape at index 0": lambda: (
        tf.TensorArray(tf.float32, 1, infer_shape=False).write(0, 1.0).concat()
    ),
    r"sum of lengths is 2 and value's shape is: \[3\]": lambda: (
        tf.TensorArray(tf.float32, 2).split([1.0, 2.0, 3.0], [1, 1]).flow
    ),
    r"size of lengths \(3 vs. 2\)": lambda: tf.TensorArray(tf.float32, 3).split([1.0, 2.0], [1, 1]).flow,
    r"Size should be >= 0": lambda: tf.TensorArray(tf.float32, -1).flow,
    r"size must be scalar, but had shape: \[1\]": lambda: tf.TensorArray(tf.float32, vague([1])).flow,
    r"index must be scalar, but had shape: \[1\]": lambda: (
        tf.TensorArray(tf.float32, 1).write(vague([0]), 1.0).flow
    ),
    r"TensorSetZero type not supported: string": lambda: tf.TensorArray(
        tf.string, 2, element_shape=[]
    ).stack(),
    r"TensorArray@s: Could not aggregate to TensorArray index 0 because the existing shape is \[\]": lambda: (
        tf.TensorArray(tf.float32, 2, infer_shape=False).unstack([1.0, 2.0]).grad("s").write(0, [1.0]).flow
    ),
}


@pytest.mark.parametrize("message", STEP_MISTAKES)
def test_mistakes_in_a_step(message: str) -> None:
    fetch = STEP_MISTAKES[message]()
    with pytest.raises(X, match=message):
        run(fetch)


def test_order_of_use() -> None:
    def cleared() -> Any:
        return tf.TensorArray(tf.float32, 3).write(1, 1.0)

    ta = cleared()
    with pytest.raises(X, match="Could not read index 1 twice because it was cleared after a previous read"):
        run(in_turn(lambda: ta.read(1), lambda: ta.read(1)))
    for clears in (True, False):
        other = tf.TensorArray(tf.float32, 3, clear_after_read=clears).write(1, 1.0)
        with pytest.raises(X, match="index 1 because it has already been read"):
            run(in_turn(lambda ta=other: ta.read(1), lambda ta=other: ta.write(1, 3.0).flow))
    kept = tf.TensorArray(tf.float32, 3, clear_after_read=False).write(1, 1.0)
    assert run(in_turn(lambda: kept.read(1), lambda: kept.read(1))) == [1, 1]
    grad = kept.grad("s").write(0, 5.0)
    with pytest.raises(X, match="@s: Could not read index 0 twice"):
        run(in_turn(lambda: grad.read(0), lambda: grad.read(0)))


def test_closed_arrays() -> None:
    ta = tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0])
    uses = [
        lambda: ta.read(0),
        lambda: ta.grad("s").flow,
        lambda: ta.stack(),
        lambda: ta.write(0, 1.0).flow,
    ]
    for use in uses:
        with pytest.raises(X, match="has already been closed"):
            run(in_turn(lambda: ta.flow, ta.close, use)[-1])
    run(in_turn(lambda: ta.flow, ta.close, ta.close)[-1])


def test_gradients_fix_the_size() -> None:
    ta = tf.TensorArray(tf.float32, 1, dynamic_size=True).write(0, 1.0)
    with pytest.raises(X, match="Tried to write to index 3 but array is not resizeable and size is: 1"):
        run(in_turn(lambda: ta.grad("s").flow, lambda: ta.write(3, 1.0).flow))


BUILDING_MISTAKES: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (ValueError, "`size` must be provided", lambda: tf.TensorArray(tf.float32)),
    (ValueError, "flow must not be None", lambda: tf.TensorArray(tf.float32, handle=tf.constant(1))),
    (
        ValueError,
        "Cannot provide both a `handle` and `size`",
        lambda: tf.TensorArray(tf.float32, 3, handle=tf.constant(1), flow=0.0),
    ),
    (
        ValueError,
        "Cannot provide both `handle` and `clear_after_read`",
        lambda: tf.TensorArray(tf.float32, clear_after_read=True, handle=tf.constant(1), flow=0.0),
    ),
    (TypeError, "Expected `handle` to be a Tensor", lambda: tf.TensorArray(tf.float32, handle=3, flow=0.0)),
    (TypeError, "Expected int32", lambda: tf.TensorArray(tf.float32, 1.5)),
    (TypeError, "Cannot convert", lambda: tf.TensorArray("foo", 1)),
    (
        ValueError,
        r"Inconsistent shapes: saw \(1,\) but expected \(2,\)",
        lambda: tf.TensorArray(tf.float32, 3).write(0, [1.0, 2.0]).write(1, [1.0]),
    ),
    (TypeError, "Expected int32", lambda: tf.TensorArray(tf.float32, 1).write(0.5, 1.0)),
    (
        TypeError,
        "type int64 that does not match expected type of int32",
        lambda: tf.TensorArray(tf.float32, 1).read(tf.constant(0, tf.int64)),
    ),
    (
        ValueError,
        "Shape must be rank 1 but is rank 0",
        lambda: tf.TensorArray(tf.float32, 1).gather(1),
    ),
    (
        ValueError,
        "Dimensions must be equal, but are 2 and 3",
        lambda: tf.TensorArray(tf.float32, 4).scatter([0, 1, 2], [1.0, 2.0]),
    ),
    (TypeError, "Failed to convert", lambda: tf.convert_to_tensor(tf.TensorArray(tf.float32, 1))),
]


@pytest.mark.parametrize(("kind", "message", "build"), BUILDING_MISTAKES)
def test_mistakes_in_building(kind: type[Exception], message: str, build: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=message):
        build()
