"""Ask TensorFlow for graphs to read, and have it read one of Flowstone's.

Run with a Python that has TensorFlow 2 (the files came from 2.21):
`python tests/golden/make_graph_goldens.py`. Writes `tests/golden/graphs/*.pbtxt`, GraphDefs with the static
shapes that TensorFlow infers, and imports and runs `tests/golden/graphs/from_flowstone.pbtxt`, which
`tests/framework/graphs/test_graph_def.py` holds Flowstone's export to. Ends with an error if TensorFlow does
not accept that file.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")

import numpy as np
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

FOLDER = pathlib.Path(__file__).parent / "graphs"


def variables() -> None:
    """State, control edges, devices and colocation."""
    with tf.device("/device:CPU:0"):
        count = tf.Variable([1.0, 2.0], use_resource=False, name="count")
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    with tf.control_dependencies([count.initializer]):
        total = tf.add(x, count, name="total")
    with tf.colocate_with(count.op):
        tf.group(tf.identity(total, name="again"), name="done")


def constants() -> None:
    """Every way in which a TensorProto holds values."""
    tf.constant(7, shape=[2, 3], name="one_value")
    tf.constant([1, 2], shape=[2, 3], name="last_repeats")
    tf.constant([[True], [False]], name="truth")
    tf.constant([b"a", b"\xff\x00"], name="bytes")
    tf.constant([1 + 2j, 3], dtype=tf.complex64, name="complex")
    tf.constant([1.5, -2], dtype=tf.float16, name="half")
    tf.constant(1.5, dtype=tf.bfloat16, name="brain")
    tf.constant(np.arange(3, dtype=np.uint64), name="unsigned")
    tf.constant([], name="nothing")


def loop() -> None:
    """The one legal cycle."""
    start = tf.constant(0, name="start")
    tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), [start, tf.ones([2])])


def several_outputs() -> None:
    """Lists of outputs, and inputs with an index."""
    parts = tf.split(tf.ones([4, 2]), 2, name="parts")
    tf.matmul(parts[0], parts[1], transpose_b=True, name="product")


def write(build: Callable[[], None]) -> None:
    with tf.Graph().as_default() as graph:
        build()
        text = text_format.MessageToString(graph.as_graph_def(add_shapes=True))
    (FOLDER / f"{build.__name__}.pbtxt").write_text(text)


def check_export() -> None:
    message = text_format.Parse((FOLDER / "from_flowstone.pbtxt").read_text(), tf.GraphDef())
    with tf.Graph().as_default(), tf.Session() as session:
        total, ready = tf.import_graph_def(message, name="", return_elements=["total:0", "count/Assign"])
        assert total.shape.as_list() == [None, 2], total
        session.run(ready)
        np.testing.assert_array_equal(session.run(total, {"x:0": [[1.0, 1.0]]}), [[2.0, 3.0]])


if __name__ == "__main__":
    tf.disable_v2_behavior()
    FOLDER.mkdir(exist_ok=True)
    for graph in (variables, constants, loop, several_outputs):
        write(graph)
    if (FOLDER / "from_flowstone.pbtxt").exists():
        check_export()
