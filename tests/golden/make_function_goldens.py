"""Ask TensorFlow for graphs with functions, and have it run one of Flowstone's.

Run with a Python that has TensorFlow 2 (the files came from 2.21):
`python tests/golden/make_function_goldens.py`. Writes `tests/golden/functions/*.pbtxt`, GraphDefs with a
library, and `values.json`: by graph, for each feed, what its fetches are; of the programs in
`tests/ops/function_programs.py` what they give (`programs.json`) and their nodes (`nodes.txt`). Then imports
and runs `from_flowstone.pbtxt`, which `tests/ops/test_functions.py` holds Flowstone's export to; ends with an
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


GRAPHS = (defun, conditional, loop, cases, traced, stateful, arithmetic_loop)
FETCHES = {"defun": ["total:0", "count:0", "dx:0"], "loop": ["count:0", "result:0"]}


def write(build: Callable[[], list[float]]) -> list[Any]:
    """Writes a graph; returns [feed, values] pairs."""
    fetches = FETCHES.get(build.__name__, ["result:0"])
    with tf.Graph().as_default() as graph:
        feeds = build()
        text = text_format.MessageToString(graph.as_graph_def())
        (FOLDER / f"{build.__name__}.pbtxt").write_text(text)
        with tf.Session() as session:
            if build is stateful:
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
