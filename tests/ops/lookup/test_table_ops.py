"""Programs with look-up tables give what TensorFlow's do, and fail as they do."""

from __future__ import annotations

import json
import pathlib

import pytest

import flowstone as tf
import table_programs
from flowstone.framework.declarations.operation import F, registry

GOLDEN = json.loads((pathlib.Path(__file__).parents[2] / "golden" / "lookup" / "programs.json").read_text())
OTHER_WORDS = {"Read less bytes than requested": "Finished reading 0 of lines"}


@pytest.mark.parametrize("name", sorted(table_programs.PROGRAMS))
def test_programs(name: str, tmp_path: pathlib.Path) -> None:
    table_programs.write_files(tmp_path)
    outcomes = table_programs.evaluate(tf, F, name, tmp_path)
    assert [outcome[:2] for outcome in outcomes if outcome[0] != "gives"] == [
        outcome[:2] for outcome in GOLDEN[name] if outcome[0] != "gives"
    ]
    for step, (outcome, expected) in enumerate(zip(outcomes, GOLDEN[name], strict=True)):
        if expected[0] == "gives":
            assert outcome == expected, step
        else:
            message = expected[2].replace("FOLDER", str(tmp_path))
            assert _words(OTHER_WORDS.get(message, message)) <= _words(outcome[2]), (step, outcome)


def _words(message: str) -> set[str]:
    """The words of a message, but for the names that tables without one are given."""
    return {word for word in message.split() if not word.startswith("_")}


def _later_dense_table(deleted: str) -> tf.GraphDef:
    """A graph of later versions, whose dense table has the deleted key as an input, from node `deleted`."""
    graph = tf.Graph()
    with graph.as_default():
        empty = tf.constant(-1, tf.int64, name="empty")
        tf.identity(tf.constant(-2, tf.int64, name="key"), name="same")
        tf.placeholder(tf.int64, [], name="open")
        table = F.MutableDenseHashTableV2(empty, value_dtype=tf.float32, name="table")
        keys = tf.constant([1, 2], tf.int64)
        insert = registry["LookupTableInsertV2"].operation(table, keys, [5.0, 6.0])
        with tf.control_dependencies([insert]):
            remove = registry["LookupTableRemoveV2"].operation(table, keys[1:])
        with tf.control_dependencies([remove]):
            F.LookupTableFindV2(table, keys, -9.0, name="found")
    message = graph.as_graph_def()
    node = next(node for node in message.node if node.name == "table")
    node.input.append(deleted)
    node.attr.pop("deleted_key", None)
    return message


@pytest.mark.parametrize("deleted", ["key", "same"])
def test_deleted_key_of_later_graphs(deleted: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.import_graph_def(_later_dense_table(deleted), return_elements=["found:0"])
        assert session.run(found)[0].tolist() == [5, -9]


def test_deleted_key_of_later_graphs_must_be_known() -> None:
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match=r"'table': input 1 \(deleted_key\) must be"),
    ):
        tf.import_graph_def(_later_dense_table("open"), name="")
