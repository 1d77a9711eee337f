"""Ask TensorFlow for graphs with functions, and have it run one of Flowstone's.

Run with a Python that has TensorFlow 2 (the files came from 2.21):
`python tests/golden/make_function_goldens.py`. Writes `tests/golden/functions/*.pbtxt`, GraphDefs with a
library, and `values.json`: by graph, for each feed, what its fetches are; of the programs in
`tests/ops/function_programs.py` what they give (`programs.json`) and their nodes (`nodes.txt`, in which
gradients begin as in 1.15, by hand: ``gradients/grad_ys_0``, ``gradients/Fill``). Then imports and runs
`from_flowstone.pbtxt`, which `tests/ops/control/test_functions.py` holds Flowstone's export to; ends with an
error if TensorFlow computes something else than it says, or a message lacks the words that it should have.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", TF_USE_LEGACY_KERAS="1")

import numpy as np
import tensorflow.compat.v1 as tf
from google.protobuf import text_format
from tensorflow.python.framework import function
from tensorflow.python.ops import functional_ops

FOLDER = pathlib.Path(__file__).parent / "functions"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))

import function_programs  # noqa: E402


def x() -> Any:
    return tf.placeholder(tf.float32, [], name="x")


def defun() -> list[float]:
    """Nested functions, captured values, a gradient function, an effect."""
    weight = tf.constant([2.0, 3.0], name="weight")

    @function.Defun(tf.float32, func_name="SquareOf")
    def square(a: Any) -> Any:
        return a * a

    @function.Defun(tf.float32, tf.float32, func_name="ClippedGrad")
    def clipped_gradient(a: Any, dy: Any) -> Any:
        return tf.clip_by_value(dy * a, -1.0, 1.0)

    @function.Defun(tf.float32, func_name="Clipped", grad_func=clipped_gradient)
    def clipped(a: Any) -> Any:
        return 0.5 * a * a

    @function.Defun(tf.float32, tf.int32, func_name="Outer", out_names=["sum", "count"])
    def outer(a: Any, n: Any) -> Any:
        return tf.reduce_sum(square(a) * weight) + clipped(a), n + tf.size(weight)

    a = x()
    total, count = outer(a, tf.constant(4, name="n"))
    tf.identity(total, name="total")
    tf.identity(count, name="count")
    tf.identity(tf.gradients(total, a)[0], name="dx")
    return [-2.0, 0.5]


def conditional() -> list[float]:
    """If, nested, with captured values and gradients."""
    a = x()
    scale = tf.constant(10.0, name="scale")
    result = tf.cond(
        a > 0.0,
        lambda: tf.cond(a > 5.0, lambda: a * scale, lambda: tf.square(a)),
        lambda: tf.exp(a) + 1.0,
    )
    tf.identity(result, name="result")
    return [-1.0, 2.0, 6.0]


def loop() -> list[float]:
    """While over several variables, a conditional in its body, an array that does not change."""
    a = x()
    table = tf.constant([1.0, 2.0, 3.0, 4.0], name="table")

    def body(i: Any, total: Any) -> Any:
        step = tf.cond(tf.equal(i % 2, 0), lambda: table[i], lambda: -table[i] * a)
        return i + 1, total + step

    i, total = tf.while_loop(lambda i, total: i < 4, body, [0, a])
    tf.identity(i, name="count")
    tf.identity(total, name="result")
    return [1.0, 0.25]


def cases() -> list[float]:
    """Case."""
    a = x()
    index = tf.cast(a, tf.int32)
    branches = [lambda: a + 1.0, lambda: a * 100.0, lambda: -a]
    tf.identity(tf.switch_case(index, branches), name="result")
    return [0.0, 1.0, 2.0, 7.0, -3.0]


def traced() -> list[float]:
    """tf.function: PartitionedCall of functions that call functions, and a stateful one."""

    @tf.function
    def inner(a: Any, b: Any) -> Any:
        return a * b, a - b

    @tf.function
    def outer(a: Any) -> Any:
        product, difference = inner(a, a + 1.0)
        grown = tf.while_loop(lambda v: v < 50.0, lambda v: v * 2.0 + 1.0, [tf.abs(product) + 1.0])
        return grown + difference

    tf.identity(outer(x()), name="result")
    return [3.0, -0.5]


def stateful() -> list[float]:
    """A resource variable that functions read and update: what is fetched is the value after the update."""
    count = tf.get_variable("count", [], initializer=tf.zeros_initializer(), use_resource=True)
    a = x()

    @tf.function
    def update(amount: Any) -> Any:
        count.assign_add(amount)
        if_large = tf.cond(count > 5.0, lambda: count.assign(0.0), lambda: count.assign_add(1.0))
        with tf.control_dependencies([if_large]):
            return count.read_value()

    tf.identity(update(a), name="result")
    tf.group(count.initializer, name="initialize")
    return [1.0, 1.0, 4.0, 2.0]


def arithmetic_loop() -> list[float]:
    """For."""

    @function.Defun(tf.int32, tf.float32, func_name="AddIndex")
    def add_index(i: Any, total: Any) -> Any:
        return total * 2.0 + tf.cast(i, tf.float32)

    (total,) = functional_ops.For(1, 10, 3, [x()], add_index)
    tf.identity(total, name="result")
    return [0.5]


def rows(a: Any) -> Any:
    return a * tf.constant([[1.0, -2.0], [0.5, 3.0], [-1.0, 0.25]], name="rows")


def arrays() -> list[float]:
    """While with lists of tensors: map_fn, scan and arrays written, read, joined in loops; the gradients."""
    a = x()
    mapped = tf.map_fn(lambda row: tf.tanh(row) * a, rows(a))
    scanned = tf.scan(lambda before, row: before * row + a, rows(a))
    parts = tf.TensorArray(tf.float32, 3, infer_shape=False, element_shape=[None, 2])
    parts = tf.while_loop(
        lambda i, parts: i < 3,
        lambda i, parts: (i + 1, parts.write(i, rows(a)[: i + 1] * tf.cast(i + 1, tf.float32))),
        [0, parts],
    )[1]
    joined = parts.concat()
    total = tf.reduce_sum(mapped) + tf.reduce_sum(scanned) + tf.reduce_sum(tf.square(joined))
    tf.identity(total, name="result")
    tf.identity(tf.gradients(total, a)[0], name="dx")
    return [1.0, -0.5]


def recurrence() -> list[float]:
    """dynamic_rnn as a functional While, with sequences of several lengths; the gradients."""
    a = x()
    sequence = tf.stack([rows(a), 2.0 * rows(a)])

    def weights(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        count = int(np.prod(shape))
        return tf.constant((np.arange(count) % 5 - 2.0).reshape(shape) / 4.0, dtype)

    with tf.variable_scope("cells", initializer=weights, use_resource=False):
        cell = tf.nn.rnn_cell.GRUCell(2)
        outputs, state = tf.nn.dynamic_rnn(cell, sequence, sequence_length=[2, 3], dtype=tf.float32)
    total = tf.reduce_sum(outputs) + tf.reduce_sum(state * state)
    tf.identity(total, name="result")
    tf.identity(tf.gradients(total, a)[0], name="dx")
    tf.group(tf.global_variables_initializer(), name="initialize")
    return [1.0, -0.5]


def list_operations() -> list[float]:
    """What else there is for lists."""
    raw, a = tf.raw_ops, x()
    table = rows(a)
    shape = [2]
    made = raw.TensorListFromTensor(tensor=table, element_shape=shape)
    longer = raw.TensorListResize(input_handle=made, size=5)
    gathered = raw.TensorListGather(
        input_handle=longer, indices=[4, 1, 1], element_shape=shape, element_dtype=tf.float32
    )
    scattered = raw.TensorListScatterV2(
        tensor=gathered, indices=[3, 0, 2], element_shape=shape, num_elements=6
    )
    pushed = raw.TensorListPushBack(input_handle=scattered, tensor=table[0])
    popped, last = raw.TensorListPopBack(input_handle=pushed, element_shape=shape, element_dtype=tf.float32)
    doubled = raw.AddN(inputs=[popped, raw.TensorListResize(input_handle=popped, size=6)])
    stacked = raw.TensorListStack(input_handle=doubled, element_shape=shape, element_dtype=tf.float32)
    stacked *= 1.0 + tf.range(6.0)[:, None]
    parts = raw.TensorListSplit(tensor=table, element_shape=[-1, 2], lengths=np.array([1, 2], np.int64))
    part = raw.TensorListGetItem(input_handle=parts, index=1, element_shape=[-1, 2], element_dtype=tf.float32)
    length = raw.TensorListLength(input_handle=doubled)
    batch = raw.TensorListPushBackBatch(input_handles=tf.stack([made, doubled]), tensor=table[:2])
    second = raw.TensorListStack(
        input_handle=tf.unstack(batch)[1], element_shape=shape, element_dtype=tf.float32
    )
    total = tf.reduce_sum(stacked) * tf.cast(length, tf.float32) + tf.reduce_sum(last * part)
    tf.identity(total + tf.reduce_sum(tf.square(second)), name="result")
    return [1.0, -0.5]


GRAPHS = (
    defun,
    conditional,
    loop,
    cases,
    traced,
    stateful,
    arithmetic_loop,
    arrays,
    recurrence,
    list_operations,
)
FETCHES = {
    "arrays": ["result:0", "dx:0"],
    "recurrence": ["result:0", "dx:0"],
    "defun": ["total:0", "count:0", "dx:0"],
    "loop": ["count:0", "result:0"],
}


def write(build: Callable[[], list[float]]) -> list[Any]:
    """Writes a graph; returns [feed, values] pairs."""
    fetches = FETCHES.get(build.__name__, ["result:0"])
    with tf.Graph().as_default() as graph:
        feeds = build()
        message = graph.as_graph_def()
        if message.ByteSize() > 50_000:
            (FOLDER / f"{build.__name__}.pb").write_bytes(message.SerializeToString(deterministic=True))
        else:
            (FOLDER / f"{build.__name__}.pbtxt").write_text(text_format.MessageToString(message))
        with tf.Session() as session:
            if build in (recurrence, stateful):
                session.run("initialize")
            return [[feed, [float(v) for v in session.run(fetches, {"x:0": feed})]] for feed in feeds]


def check_export() -> None:
    message = text_format.Parse((FOLDER / "from_flowstone.pbtxt").read_text(), tf.GraphDef())
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(message, name="")
        found = session.run(["result:0", "gradient:0", "chosen:0"], {"x:0": 3.0})
    np.testing.assert_allclose(found, [29.0, 18.0, 5.0])


def programs() -> None:
    """Writes what the programs give."""
    modules = tf, function, functional_ops
    values = {name: function_programs.run(modules, name) for name in function_programs.PROGRAMS}
    refused = {}
    for name, (words, _) in function_programs.MISTAKES.items():
        refused[name], message = function_programs.refusal(modules, name)
        if words not in message:
            raise SystemExit(f"{name}: {words!r} is not in {refused[name]}: {message}")
    text = json.dumps({"programs": values, "mistakes": refused}, indent=1)
    (FOLDER / "programs.json").write_text(text + "\n")
    lines = []
    for name in function_programs.NAMED:
        lines += [f"# {name}", *function_programs.node_lines(modules, name)]
    (FOLDER / "nodes.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    tf.disable_v2_behavior()
    tf.enable_control_flow_v2()
    FOLDER.mkdir(exist_ok=True)
    values = {build.__name__: write(build) for build in GRAPHS}
    (FOLDER / "values.json").write_text(json.dumps(values, indent=1) + "\n")
    if (FOLDER / "from_flowstone.pbtxt").exists():
        check_export()
    tf.disable_control_flow_v2()
    programs()
