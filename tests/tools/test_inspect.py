"""`flowstone inspect`: what it says of each kind of file, and of files that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.tools import inspect
from flowstone.tools.command_line import build_parser

GOLDEN = Path(__file__).parents[1] / "golden"


def inspected(*arguments: str) -> int:
    options = build_parser().parse_args(["inspect", *arguments])
    return int(options.execute(options))


def row(text: str, name: str) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.startswith(f"{name} "))


def layer() -> Any:
    """The GraphDef of a product with 6 parameters in a scope."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4, 2], name="x")
        with tf.variable_scope("layer"):
            w = tf.get_variable("w", [2, 3])
            tf.matmul(x, w, name="product")
        return graph.as_graph_def()


@pytest.mark.parametrize("as_text", [False, True])
def test_a_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str], as_text: bool) -> None:
    path = tf.train.write_graph(layer(), str(tmp_path), "graph", as_text=as_text)
    assert inspected(path, "--nodes", "--depth", "1") == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{path}: GraphDef\n")
    assert row(text, "MatMul") == ["MatMul", "1"]
    scope, _, parameters, size, operations = row(text, "layer")
    assert (scope, parameters, size) == ("layer", "6", "24")
    assert int(operations) >= 2 * 4 * 2 * 3
    assert row(text, "layer/product") == ["layer/product", "MatMul", "float32(4,", "3)"]


def test_scopes_of_more_levels() -> None:
    with tf.Graph().as_default() as graph, tf.name_scope("a"):
        tf.constant(1.0, name="c")
        with tf.name_scope("b"):
            tf.constant(1.0, name="c")
    one, two = (dict(inspect.scope_costs(graph, depth)) for depth in (1, 2))
    assert {name: costs.nodes for name, costs in one.items()} == {"a": 2, "in all": 2}
    assert {name: costs.nodes for name, costs in two.items()} == {"a": 1, "a/b": 1, "in all": 2}


def test_a_saved_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert inspected(str(GOLDEN / "saved_model")) == 0
    text = capsys.readouterr().out
    assert "tags: serve, again" in text
    assert "signature serving_default: tensorflow/serving/predict" in text
    assert "  input words: words_fed:0" in text
    assert row(text, "weights") != []
    assert "checkpoint " in text


def test_a_meta_graph_and_a_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    assert inspected(str(GOLDEN / "meta_graphs" / "conditionals.pb")) == 0
    assert "conditionals.pb: MetaGraphDef\n" in capsys.readouterr().out
    prefix = GOLDEN / "saved_model" / "variables" / "variables"
    for path in (prefix, prefix.with_suffix(".index")):
        assert inspected(str(path)) == 0
        assert row(capsys.readouterr().out, "weights") == ["weights", "float32", "[4]", "4"]


def test_what_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "noise").write_bytes(b"\xff\xfe\x00noise")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.pb").write_bytes(b"\xff\xff")
    unknown = layer()
    unknown.node.add(name="n", op="NoSuchOp")
    tf.train.write_graph(unknown, str(tmp_path), "unknown", as_text=False)
    cases = {
        "absent": "There is no file, folder or checkpoint",
        "noise": "holds no GraphDef, MetaGraphDef or checkpoint",
        "empty": "holds no GraphDef, MetaGraphDef or checkpoint",
        "model": "Cannot parse file",
        "unknown": "NoSuchOp",
        "": "has no SavedModel and no checkpoint",
    }
    for name, message in cases.items():
        assert inspected(str(tmp_path / name)) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"flowstone inspect: {tmp_path}")
        assert message in error
