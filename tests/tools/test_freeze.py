"""`flowstone freeze`: graphs without variables from models of each kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flowstone as tf
from flowstone.tools import model_files
from flowstone.tools.command_line import build_parser

GOLDEN = Path(__file__).parents[1] / "golden"


def freeze(*arguments: str) -> int:
    options = build_parser().parse_args(["freeze", *arguments])
    return int(options.execute(options))


@pytest.mark.parametrize("name", ["frozen.pb", "frozen.pbtxt"])
def test_a_graph_with_its_checkpoint(tmp_path: Path, name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [], name="x")
        tf.multiply(x, tf.Variable(3.0, name="v"), name="y")
        session.run(tf.global_variables_initializer())
        prefix = str(tf.train.Saver().save(session, str(tmp_path / "model")))
    assert freeze(f"{prefix}.meta", str(tmp_path / name), "--outputs", "y", "--checkpoint", prefix) == 0
    (meta,) = model_files.read(str(tmp_path / name)).graphs
    assert {node.op for node in meta.graph_def.node} == {"Placeholder", "Const", "Identity", "Mul"}
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(meta.graph_def, name="")
        np.testing.assert_array_equal(session.run("y:0", {"x:0": 2.0}), 6.0)


def test_a_saved_model_keeps_its_signatures_outputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert freeze(str(GOLDEN / "saved_model"), str(tmp_path / "frozen.pb")) == 0
    assert "frozen.pb: " in capsys.readouterr().out
    (meta,) = model_files.read(str(tmp_path / "frozen.pb")).graphs
    nodes = {node.name: node.op for node in meta.graph_def.node}
    assert nodes["weights"] == "Const"
    assert nodes["scaled"] == "Identity"
    assert not any(name.startswith("save/") for name in nodes)


def test_what_cannot_be_frozen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, model = str(GOLDEN / "meta_graphs" / "conditionals.pb"), str(GOLDEN / "saved_model")
    out = str(tmp_path / "out.pb")
    cases = [
        ((str(tmp_path / "absent"), out), "There is no file, folder or checkpoint"),
        ((model, out, "--signature", "other"), "it has no signature 'other'"),
        ((model, out, "--tags", "other"), "could not be found in SavedModel"),
        ((model, out, "--outputs", "nope"), "nope is not in graph"),
        ((graph, out, "--outputs", "y"), "its variables need --checkpoint"),
        ((f"{model}/variables/variables", out), "it holds no graph"),
    ]
    for arguments, message in cases:
        assert freeze(*arguments) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "out.pb").exists()
