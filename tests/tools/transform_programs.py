"""What `TransformGraph` makes of two small graphs, as JSON can hold it; runs over TensorFlow and flowstone.

`tests/golden/make_graph_transform_goldens.py` asks TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["answers"]

WEIGHTS = ("w", "neg", "one", "z", "pos", "e15")
PRINTS = (
    "op=Relu,show_op=true", "op=Relu,show_name=true,message=hi", "op=Relu,first_n=3,summarize=2",
    "prefix=m,message=ho", "op=Relu,show_op=1,show_name=1", "op=Relu,prefix=m", "op=Const,prefix=w",
)  # fmt: skip


def _constants(tf: Any) -> Any:
    numbers = np.random.RandomState(0)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        values = {
            "w": np.round(numbers.randn(4, 8), 2), "neg": -np.ones(16), "one": np.full(16, 3.0),
            "z": np.zeros(16), "pos": np.round(np.abs(numbers.randn(4, 4)) + 1, 2), "e15": np.arange(15.0),
        }  # fmt: skip
        made = {name: tf.constant(value.astype(np.float32), name=name) for name, value in values.items()}
        h = tf.nn.relu(tf.matmul(x, made["w"], name="mm"), name="h")
        both = tf.concat([h, h], 1, name="c")
        tf.add_n([tf.reduce_sum(each) for each in (*made.values(), both)], name="out")
    return graph.as_graph_def()


def _chain(tf: Any) -> Any:
    with tf.Graph().as_default() as graph:
        x = y = tf.placeholder(tf.float32, [], name="a")
        for i in range(70):
            y = tf.identity(y, name=f"n{i}")
        with tf.control_dependencies([y]):
            tf.identity(x, name="1")
    return graph.as_graph_def()


def _numbers(tf: Any, node: Any) -> list[Any]:
    value = tf.make_ndarray(node.attr["value"].tensor)
    plain = value.view(np.uint8) if value.dtype.itemsize == 1 else value
    found: list[Any] = np.ravel(plain).tolist()
    return found


def answers(tf: Any, transform: Callable[..., Any]) -> dict[str, Any]:
    """Values of constants, and the nodes that are new, by transform."""
    graph, found = _constants(tf), {}
    for text in ("round_weights(num_steps=4)", "quantize_weights(minimum_size=16)", "quantize_weights"):
        made = transform(graph, ["x"], ["out"], [text])
        found[text] = [
            [node.name, node.op, list(node.input), node.op == "Const" and _numbers(tf, node)]
            for node in made.node
            if node.name.split("_quantized")[0] in WEIGHTS
        ]
    for text in PRINTS:
        made = transform(graph, ["x"], ["out"], [f"insert_logging({text})"])
        found[text] = [
            [node.name, list(node.input), str(node.attr["message"].s), node.attr["first_n"].i,
             node.attr["summarize"].i, list(node.attr["U"].list.type), node.attr["T"].type]
            for node in made.node if node.op == "Print" or any("print" in name for name in node.input)
        ]  # fmt: skip
    made = transform(graph, ["x"], ["out"], ["backport_concatv2"])
    found["concat"] = [[x.op, list(x.input), sorted(x.attr)] for x in made.node if x.op.startswith("Concat")]
    for node in graph.node:
        if node.op == "Sum":
            del node.attr["keep_dims"]
    made = transform(graph, ["x"], ["out"], ["add_default_attributes"])
    found["defaults"] = [[x.op, sorted(x.attr)] for x in made.node if x.name in ("x", "w", "Sum", "h")]
    made = transform(_chain(tf), ["a"], ["1"], ["obfuscate_names"])
    found["names"] = [[node.name, *node.input] for node in made.node]
    return found
