"""SavedModels of TensorFlow 1 by `load_v2`: signatures and parts of the graph as functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def written(path: Path, use_resource: bool) -> Path:
    """A model of a matrix and a vocabulary."""
    words = path / "words.txt"
    words.write_text("a\nb\n")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        with tf.variable_scope("all", use_resource=use_resource):
            w = tf.get_variable("w", initializer=[[1.0], [2.0]], partitioner=None)
            parts = tf.get_variable(
                "parts", [2], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(2)
            )
        y = tf.identity(tf.matmul(x, w) + tf.reduce_sum(parts), name="y")
        s = tf.placeholder(tf.string, [None], name="s")
        table = tf.contrib.lookup.index_table_from_file(str(words))
        ids = table.lookup(s)
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        builder = tf.saved_model.Builder(str(path / "model"))
        define = tf.saved_model.predict_signature_def
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {"serving_default": define({"x": x}, {"y": y}), "ids": define({"s": s}, {"ids": ids})},
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            main_op=tf.tables_initializer(),
        )
        builder.add_meta_graph(["serve", "other"], {"serving_default": define({"x": x}, {"y": y})})
        builder.save()
    words.unlink()
    return path / "model"


@pytest.mark.parametrize("use_resource", [True, False])
def test_signatures_and_parts_are_functions(tmp_path: Path, use_resource: bool) -> None:
    model: Any = tf.saved_model.load_v2(written(tmp_path, use_resource), tags=["serve"])
    part = model.prune("x:0", "y:0")
    sums = model.prune(["x:0"], {"y": "y:0", "done": "y"})
    row = tf.constant([[1.0, 1.0]])
    fetches = [model.signatures["serving_default"](x=row)["y"], part(row), sums(2 * row)["y"]]
    ids = model.signatures["ids"](tf.constant(["b", "z"]))["ids"]
    gradients = tf.gradients(fetches[1], model.variables[0])
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        assert [value.tolist() for value in session.run(fetches)] == [[[5]], [[5]], [[8]]]
        assert session.run(ids).tolist() == [1, -1]
        assert session.run(gradients)[0].tolist() == [[1], [1]]
    assert [each.op.name for each in model.variables] == ["all/w", "all/parts/part_0", "all/parts/part_1"]
    assert model.graph.get_operation_by_name("y").type == "Identity"


def test_tags_choose_the_graph(tmp_path: Path) -> None:
    path = written(tmp_path, use_resource=True)
    assert list(tf.saved_model.load_v2(path, tags=["other", "serve"]).signatures) == ["serving_default"]
    with pytest.raises(ValueError, match="requires a 'tags=' argument"):
        tf.saved_model.load_v2(path)
    with pytest.raises(RuntimeError, match="associated with tags 'a' could not be found"):
        tf.saved_model.load_v2(path, tags="a")
    function = tf.saved_model.load_v2(path, tags=["serve"]).signatures["serving_default"]
    with pytest.raises(TypeError, match="Expected argument names"):
        function(z=tf.constant([[1.0, 1.0]]))
