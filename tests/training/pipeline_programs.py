"""Programs that build input pipelines, run by Flowstone in tests and by TensorFlow for the goldens.

Each takes a module that speaks the TensorFlow 1 API and returns the tensors whose static shapes matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

FILES = ["a", "b", "c"]
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


def _examples(tf: Any) -> list[Any]:
    return [tf.constant([1.0, 2.0]), tf.constant(3)]


def _sparse(tf: Any, value: float = 1.0) -> Any:
    return tf.SparseTensor(
        indices=tf.constant([[0, 0], [1, 2]], tf.int64),
        values=tf.constant([value, 2.0]),
        dense_shape=tf.constant([3, 4], tf.int64),
    )


def _keep(tf: Any) -> Any:
    return tf.placeholder(tf.bool, [], name="keep")


def _keep_some(tf: Any) -> Any:
    return tf.placeholder(tf.bool, [3], name="keep")


def _many(tf: Any) -> list[Any]:
    return [tf.constant(ROWS), tf.constant([1, 2, 3])]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    # producers
    "input_producer": lambda tf: tf.train.input_producer(tf.constant(ROWS)).dequeue(),
    "input_producer, no shuffling": lambda tf: tf.train.input_producer(
        tf.constant(ROWS), shuffle=False, capacity=7
    ).dequeue(),
    "input_producer, named": lambda tf: tf.train.input_producer(
        ROWS, num_epochs=2, seed=4, shared_name="shared", summary_name="filled", name="producer"
    ).dequeue(),
    "input_producer, element shape": lambda tf: tf.train.input_producer(
        tf.placeholder(tf.float32), element_shape=[2]
    ).dequeue(),
    "string_input_producer": lambda tf: tf.train.string_input_producer(FILES).dequeue(),
    "string_input_producer, epochs": lambda tf: tf.train.string_input_producer(
        FILES, num_epochs=1, shuffle=False, seed=3, capacity=5, name="files"
    ).dequeue(),
    "string_input_producer, tensor": lambda tf: tf.train.string_input_producer(
        tf.placeholder(tf.string, [None])
    ).dequeue(),
    "string_input_producer, matched once": lambda tf: tf.train.string_input_producer(
        tf.train.match_filenames_once("*.txt")
    ).dequeue(),
    "range_input_producer": lambda tf: tf.train.range_input_producer(5).dequeue(),
    "range_input_producer, named": lambda tf: tf.train.range_input_producer(
        tf.constant(5), num_epochs=3, shuffle=False, capacity=4, shared_name="s", name="numbers"
    ).dequeue(),
    "slice_input_producer": lambda tf: tf.train.slice_input_producer([ROWS, tf.constant([1, 2, 3])]),
    "slice_input_producer, named": lambda tf: tf.train.slice_input_producer(
        [ROWS], num_epochs=2, shuffle=False, seed=1, capacity=3, shared_name="s", name="slices"
    ),
    "limit_epochs": lambda tf: tf.train.limit_epochs(tf.constant([1, 2]), num_epochs=2),
    "limit_epochs, named": lambda tf: tf.train.limit_epochs(tf.constant([1, 2]), 3, name="limited"),
    "match_filenames_once": lambda tf: tf.train.match_filenames_once(["b*", "a*"]),
    # batch
    "batch": lambda tf: tf.train.batch(_examples(tf), 4),
    "batch, one tensor": lambda tf: tf.train.batch([tf.constant(1.0)], batch_size=4),
    "batch, tensor batch size": lambda tf: tf.train.batch(
        _examples(tf), tf.placeholder(tf.int32, [], name="size")
    ),
    "batch, dict": lambda tf: tf.train.batch(
        {"x": tf.constant([1.0, 2.0]), "label": tf.constant(3)}, 4, num_threads=3, capacity=20
    ),
    "batch, many": lambda tf: tf.train.batch(_many(tf), 4, enqueue_many=True, name="many"),
    "batch, smaller final": lambda tf: tf.train.batch(
        _examples(tf), 4, allow_smaller_final_batch=True, shared_name="shared"
    ),
    "batch, padded": lambda tf: tf.train.batch(
        [tf.placeholder(tf.float32, [None, 2]), tf.constant(1)], 4, dynamic_pad=True
    ),
    "batch, shapes": lambda tf: tf.train.batch(
        [tf.placeholder(tf.float32), tf.placeholder(tf.int32)], 4, shapes=[[2], []]
    ),
    "batch, sparse": lambda tf: tf.train.batch([_sparse(tf), tf.constant(1)], 2),
    "batch, sparse many": lambda tf: tf.train.batch([_sparse(tf)], 2, enqueue_many=True),
    "batch, two sparse": lambda tf: tf.train.batch(
        [_sparse(tf), _sparse(tf), tf.constant(1), tf.constant(2)], 2
    ),
    "batch, arrays": lambda tf: tf.train.batch([ROWS, 5], 2),
    "batch, nested": lambda tf: tf.train.batch([tf.constant(1.0)], 2, capacity=64, name="outer/inner"),
    "maybe_batch": lambda tf: tf.train.maybe_batch(_examples(tf), _keep(tf), 4),
    "maybe_batch, Python": lambda tf: tf.train.maybe_batch(_examples(tf), True, 4),
    "maybe_batch, constant": lambda tf: tf.train.maybe_batch([tf.constant(1)], tf.constant(True), 2),
    "maybe_batch, never": lambda tf: tf.train.maybe_batch([tf.constant(1)], False, 2),
    "maybe_batch, list": lambda tf: tf.train.maybe_batch(
        [tf.constant([1, 2])], [True, False], 2, enqueue_many=True
    ),
    "maybe_batch, many": lambda tf: tf.train.maybe_batch(_many(tf), _keep_some(tf), 4, enqueue_many=True),
    "maybe_batch, many or none": lambda tf: tf.train.maybe_batch(_many(tf), _keep(tf), 4, enqueue_many=True),
    "maybe_batch, sparse": lambda tf: tf.train.maybe_batch([_sparse(tf)], _keep(tf), 4),
    "maybe_batch, sparse many": lambda tf: tf.train.maybe_batch(
        [_sparse(tf)], _keep_some(tf), 4, enqueue_many=True
    ),
    "maybe_batch, sparse many or none": lambda tf: tf.train.maybe_batch(
        [_sparse(tf)], _keep(tf), 4, enqueue_many=True
    ),
    "maybe_batch, sparse and dense": lambda tf: tf.train.maybe_batch(
        [_sparse(tf), tf.constant([1, 2, 3])], _keep_some(tf), 2, enqueue_many=True
    ),
    "batch_join": lambda tf: tf.train.batch_join([_examples(tf), _examples(tf)], 4),
    "batch_join, dicts": lambda tf: tf.train.batch_join([{"x": tf.constant(1)}, {"x": tf.constant(2)}], 4),
    "batch_join, padded": lambda tf: tf.train.batch_join(
        [[tf.placeholder(tf.float32, [None, 3])], [tf.zeros([5, 3])]], 4, dynamic_pad=True,
        allow_smaller_final_batch=True,
    ),
    "batch_join, sparse": lambda tf: tf.train.batch_join([[_sparse(tf)], [_sparse(tf)]], 4),
    "maybe_batch_join": lambda tf: tf.train.maybe_batch_join(
        [_examples(tf), _examples(tf)], _keep(tf), 4, capacity=9, name="joined"
    ),
    # shuffled
    "shuffle_batch": lambda tf: tf.train.shuffle_batch(_examples(tf), 4, 50, 10),
    "shuffle_batch, dict": lambda tf: tf.train.shuffle_batch(
        {"b": tf.constant(1), "a": tf.constant(2.0)}, 4, capacity=50, min_after_dequeue=10, num_threads=2,
        seed=7, allow_smaller_final_batch=True, name="shuffled",
    ),
    "shuffle_batch, many": lambda tf: tf.train.shuffle_batch(
        _many(tf), 4, 50, 10, enqueue_many=True, shapes=[[2], []], shared_name="shared"
    ),
    "shuffle_batch, sparse": lambda tf: tf.train.shuffle_batch([_sparse(tf)], 4, 50, 10),
    "maybe_shuffle_batch": lambda tf: tf.train.maybe_shuffle_batch(_examples(tf), 4, 50, 10, _keep(tf)),
    "shuffle_batch_join": lambda tf: tf.train.shuffle_batch_join([_examples(tf), _examples(tf)], 4, 50, 10),
    "shuffle_batch_join, dicts": lambda tf: tf.train.shuffle_batch_join(
        [{"x": tf.constant(1)}, {"x": tf.constant(2)}], 4, 50, 10, seed=2
    ),
    "shuffle_batch_join, sparse": lambda tf: tf.train.shuffle_batch_join(
        [{"b": _sparse(tf), "a": tf.constant(1)}, {"b": _sparse(tf), "a": tf.constant(2)}], 2, 50, 10
    ),
    "maybe_shuffle_batch_join": lambda tf: tf.train.maybe_shuffle_batch_join(
        [_examples(tf), _examples(tf)], 4, 50, 10, _keep(tf)
    ),
    "a reader's pipeline": lambda tf: tf.train.shuffle_batch(
        [tf.train.string_input_producer(FILES, num_epochs=2).dequeue()], 2, 100, 10
    ),
}  # fmt: skip


def described(tf: Any, name: str) -> list[str]:
    """What a program builds, line by line: nodes, results, summaries, local variables and queue runners.

    Nodes are sorted: which of a conditional's nodes comes first is free. Identities that nobody uses are
    left out."""
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(11)
        results = _results(PROGRAMS[name](tf))
    used = {tensor.op for op in graph.get_operations() for tensor in op.inputs}
    nodes = [op for op in graph.get_operations() if op in used or op.type != "Identity" or _in(op, results)]
    lines = sorted(_node(op) for op in nodes)
    lines += [f"-> {result}" for result in results]
    lines += [f"summary {summary.name}" for summary in graph.get_collection("summaries")]
    lines += [f"local {variable.name}" for variable in graph.get_collection("local_variables")]
    for runner in graph.get_collection("queue_runners"):
        operations = " ".join(op.name for op in [*runner.enqueue_ops, runner.close_op, runner.cancel_op])
        types = " ".join(error.__name__ for error in runner.queue_closed_exception_types)
        lines.append(f"runner {runner.name}: {operations}, closed by {types}")
    return lines


def _in(op: Any, results: list[str]) -> bool:
    return any(f"{op.name}:0 " in result for result in results)


def _results(result: Any) -> list[str]:
    """The name and static shape of each tensor of a nested result."""
    if isinstance(result, dict):
        return [f"{key} {line}" for key in sorted(result) for line in _results(result[key])]
    if hasattr(result, "dense_shape"):
        return _results([result.indices, result.values, result.dense_shape])
    if isinstance(result, (list, tuple)):
        return [line for item in result for line in _results(item)]
    return [f"{result.name} {result.shape}"]


_ATTRIBUTES = ("N", "T", "capacity", "component_types", "container", "dtype", "limit", "min_after_dequeue",
               "num_partitions", "seed", "shapes", "shared_name", "squeeze_dims")  # fmt: skip


def _node(op: Any) -> str:
    inputs = [tensor.name for tensor in op.inputs] + sorted(f"^{other.name}" for other in op.control_inputs)
    found = op.node_def.attr
    attributes = [f"{key}={_as_text(found[key])}" for key in _ATTRIBUTES if key in found]
    return f"{op.name} = {op.type}({', '.join(inputs)}) {' '.join(attributes)}".rstrip()


def _as_text(message: Any) -> str:
    return " ".join(str(message).split())
