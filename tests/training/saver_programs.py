"""Graphs with Savers that flowstone and TensorFlow run alike."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

VALUES = np.arange(12, dtype=np.float32).reshape(4, 3)


def variables(tf: Any) -> dict[str, Any]:
    """Variables of both kinds, of several types, and a partitioned one."""
    made = {
        "w": tf.Variable(VALUES, name="w"),
        "count": tf.Variable(7, dtype=tf.int64, name="count", trainable=False),
        "text": tf.Variable(["a", "bc"], name="text"),
        "r": tf.get_variable("scope/r", [2], initializer=tf.constant_initializer(2.5), use_resource=True),
        "none": tf.Variable(np.zeros([0, 2], np.float64), name="none"),
    }
    made["parts"] = tf.get_variable(
        "parts", initializer=tf.constant(VALUES + 1), partitioner=tf.fixed_size_partitioner(2)
    )
    return made


SAVERS = {
    "plain": lambda tf, made: tf.train.Saver(),
    "sharded": lambda tf, made: tf.train.Saver(sharded=True),
    "renamed": lambda tf, made: tf.train.Saver({"other/w": made["w"], "r": made["r"], "p": made["count"]}),
    "listed": lambda tf, made: tf.train.Saver([made["w"], made["r"]], name="keeper", max_to_keep=3),
    "reshaped": lambda tf, made: tf.train.Saver([made["w"], made["r"]], reshape=True),
    "sequential": lambda tf, made: tf.train.Saver([made["count"], made["w"]], restore_sequentially=True),
    "first format": lambda tf, made: tf.train.Saver(
        [made["w"], made["count"], made["r"]], write_version=tf.train.SaverDef.V1
    ),
}


def save(tf: Any, name: str, folder: str) -> str:
    """Saves the variables as ``folder/model-3``."""
    with tf.Graph().as_default(), tf.Session() as session:
        made = variables(tf)
        saver = SAVERS[name](tf, made)
        tf.add_to_collection("result", tf.reduce_sum(made["w"]) + 0.0)
        session.run(tf.global_variables_initializer())
        tf.gfile.MakeDirs(folder)
        return saver.save(session, f"{folder}/model", global_step=3)


def restored(tf: Any, name: str, folder: str) -> dict[str, Any]:
    """The values that a Saver of a new graph restores, and what the checkpoint lists."""
    path = f"{folder}/model-3"
    if name == "first format":
        path = tf.train.latest_checkpoint(folder) or path
    with tf.Graph().as_default(), tf.Session() as session:
        made = variables(tf)
        saver = SAVERS[name](tf, made)
        session.run(tf.global_variables_initializer())
        kept = saved_names(name)
        for key in kept:
            each = made[key]
            session.run([part.assign(tf.zeros_like(part)) for part in (each if key == "parts" else [each])
                         if part.dtype.base_dtype != tf.string])  # fmt: skip
        saver.restore(session, path)
        values = {key: plain(session.run(tf.convert_to_tensor(made[key]))) for key in sorted(kept)}
    listed = [[key, list(shape)] for key, shape in tf.train.list_variables(path)]
    return {"values": values, "listed": listed}


def tables(tf: Any) -> tuple[Any, Any]:
    """Tables of both kinds that change, which Savers save."""
    later = getattr(tf.lookup, "experimental", None)
    made = later if hasattr(later, "MutableHashTable") else tf.contrib.lookup
    words = made.MutableHashTable(tf.string, tf.int64, -1, name="words")
    dense = made.MutableDenseHashTable if hasattr(made, "MutableDenseHashTable") else made.DenseHashTable
    options = {"empty_key": -1, "deleted_key": -2, "initial_num_buckets": 16, "name": "numbers"}
    numbers = dense(tf.int64, tf.float32, [0.0, 0.0], **options)
    return words, numbers


def save_tables(tf: Any, path: str) -> None:
    """Saves tables of three words and two numbers."""
    with tf.Graph().as_default(), tf.Session() as session:
        words, numbers = tables(tf)
        saver = tf.train.Saver()
        session.run(words.insert(tf.constant(["a", "bc", ""]), tf.constant([1, 2, 3], tf.int64)))
        session.run(numbers.insert(tf.constant([5, 7], tf.int64), tf.constant([[0.5, 1.0], [1.5, 2.0]])))
        saver.save(session, path, write_meta_graph=False)


def restored_tables(tf: Any, path: str) -> list[Any]:
    """What restored tables give for keys that they have and have not; they held others before."""
    with tf.Graph().as_default(), tf.Session() as session:
        words, numbers = tables(tf)
        saver = tf.train.Saver()
        session.run(words.insert(tf.constant(["old"]), tf.constant([9], tf.int64)))
        session.run(numbers.insert(tf.constant([9], tf.int64), tf.constant([[9.0, 9.0]])))
        saver.restore(session, path)
        found = session.run([
            words.lookup(tf.constant(["a", "bc", "", "old"])), words.size(),
            numbers.lookup(tf.constant([5, 7, 9], tf.int64)), numbers.size()])  # fmt: skip
    return [each.tolist() for each in found]


def saved_names(name: str) -> list[str]:
    return {
        "renamed": ["w", "r", "count"],
        "listed": ["w", "r"],
        "reshaped": ["w", "r"],
        "sequential": ["count", "w"],
        "first format": ["w", "count", "r"],
    }.get(name, ["w", "count", "text", "r", "none", "parts"])


def plain(value: Any) -> Any:
    found = value.tolist() if hasattr(value, "tolist") else value
    return [each.decode() for each in found] if isinstance(found, list) and found[:1] == [b"a"] else found


def names(tf: Any, name: str) -> list[str]:
    """A line for each operation of the Saver: name, type and inputs."""
    with tf.Graph().as_default() as graph:
        made = variables(tf)
        before = {op.name for op in graph.get_operations()}
        SAVERS[name](tf, made)
        return [
            f"{op.name} {op.type} {' '.join(x.name for x in op.inputs)} {op.device}".strip()
            for op in graph.get_operations()
            if op.name not in before
        ]


if __name__ == "__main__":
    import flowstone

    for each in SAVERS:
        save(flowstone, each, f"{sys.argv[1]}/{each}")
    save_tables(flowstone, f"{sys.argv[1]}/tables")
