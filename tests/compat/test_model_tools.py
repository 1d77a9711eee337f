"""The modules of tensorflow.python.tools: frozen graphs, and what checkpoints and models hold."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import flowstone as tf
from flowstone.compat.module_paths import register
from flowstone.framework.names.alias_modules import alias_module

register()
FREEZE: Any = alias_module("tensorflow.python.tools.freeze_graph")
INSPECT: Any = alias_module("tensorflow.python.tools.inspect_checkpoint")
MODELS: Any = alias_module("tensorflow.python.tools.saved_model_utils")
NOT_USED = ("save/restore_all", "save/Const:0")


class Files(NamedTuple):
    """What a program has written: y = x · w + b."""

    folder: Path
    checkpoint: str

    def __call__(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("model")
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(tf.float32, [None, 2], name="x"), tf.Variable([[1.0], [2.0]], name="w")
        b = tf.Variable(3.0, name="b")
        tf.get_variable("h", initializer=np.int64([1, 2]))
        with tf.device("/cpu:0"):
            y = tf.add(tf.matmul(x, w), b, name="y")
        saver = tf.train.Saver()
        session.run(tf.global_variables_initializer())
        checkpoint = saver.save(session, str(folder / "m"))
        tf.train.write_graph(session.graph, str(folder), "g.pbtxt")
        tf.train.write_graph(session.graph, str(folder), "g.pb", as_text=False)
        tf.saved_model.simple_save(session, str(folder / "sm"), {"x": x}, {"y": y})
        (folder / "saver.pbtxt").write_text(str(saver.as_saver_def()))
    return Files(folder, checkpoint)


def frozen(files: Files, graph: str | None, *, binary: bool = True, outputs: str = "y", **named: Any) -> Any:
    """The frozen graph, as a program calls the function."""
    saver = named.pop("saver", "")
    checkpoint, clear = named.pop("checkpoint", files.checkpoint), named.pop("clear_devices", False)
    return FREEZE.freeze_graph(
        graph and files(graph), saver and files(saver), binary, checkpoint, outputs, *NOT_USED,
        named.pop("output", files("frozen.pb")), clear, named.pop("run", ""), **named,
    )  # fmt: skip


def types(graph: Any) -> dict[str, str]:
    return {node.name: node.op for node in graph.node}


@pytest.mark.parametrize(
    "given",
    [
        {"graph": "g.pb"},
        {"graph": "g.pbtxt", "binary": False},
        {"graph": "g.pbtxt", "binary": False, "saver": "saver.pbtxt"},
        {"graph": None, "input_meta_graph": "m.meta"},
        {"graph": None, "input_saved_model_dir": "sm", "checkpoint": None},
        {"graph": "g.pb", "run": "w/Assign, b/Assign"},
    ],
)
def test_a_graph_is_frozen(files: Files, given: dict[str, Any]) -> None:
    for name in ("input_meta_graph", "input_saved_model_dir"):
        if name in given:
            given = {**given, name: files(given[name])}
    graph = frozen(files, **given)
    assert set(types(graph)) == {"x", "w", "w/read", "b", "b/read", "MatMul", "y"}
    assert types(graph)["w"] == types(graph)["b"] == "Const"
    with tf.Graph().as_default(), tf.Session() as session:
        written = tf.GraphDef()
        written.ParseFromString((files.folder / "frozen.pb").read_bytes())
        (y,) = tf.import_graph_def(written, return_elements=["y:0"], name="")
        assert session.run(y, {"x:0": [[1, 1]]}).tolist() == [[6]]


def test_what_is_kept(files: Files) -> None:
    assert {n.device for n in frozen(files, "g.pb").node} == {"", "/device:CPU:0"}
    assert {n.device for n in frozen(files, "g.pb", clear_devices=True).node} == {""}
    assert types(frozen(files, "g.pb", variable_names_whitelist="w"))["b"] == "VariableV2"
    assert types(frozen(files, "g.pb", variable_names_blacklist="w"))["w"] == "VariableV2"
    assert types(frozen(files, "g.pb", output="", outputs="MatMul, b/read")).keys() >= {"b/read", "MatMul"}
    definition = tf.GraphDef.FromString((files.folder / "g.pb").read_bytes())
    graph = FREEZE.freeze_graph_with_def_protos(
        definition, None, files.checkpoint, "y", *NOT_USED, "", True, ""
    )
    assert types(graph)["w"] == "Const"


@pytest.mark.parametrize(
    ("graph", "given", "error"),
    [
        ("g.pb", {"checkpoint": "elsewhere"}, ValueError),
        ("g.pb", {"outputs": ""}, ValueError),
        ("nothing.pb", {}, OSError),
        ("g.pb", {"saver": "nothing"}, OSError),
        ("g.pb", {"outputs": "nothing"}, AssertionError),
    ],
)
def test_what_cannot_be_frozen(files: Files, graph: str, given: dict[str, Any], error: type) -> None:
    with pytest.raises(error):
        frozen(files, graph, **given)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("w", False), "tensor_name:  w\n[[1.]\n [2.]]\n# Total number of params: 5\n"),
        (
            ("", False, True),
            "tensor_name:  b\ntensor_name:  h\ntensor_name:  w\n# Total number of params: 5\n",
        ),
        (
            ("", True),
            "tensor_name:  b\n3.0\ntensor_name:  h\n[1 2]\n"
            "tensor_name:  w\n[[1.]\n [2.]]\n# Total number of params: 5\n",
        ),
        (
            ("", False, False, "w"),
            "b (DT_FLOAT) []\nh (DT_INT64) [2]\nw (DT_FLOAT) [2,1]\n\n"
            "# Excluding 1 tensors (2 params) that match w when counting.\n# Total number of params: 3\n",
        ),
    ],
)
def test_a_checkpoint_is_printed(files: Files, capsys: Any, arguments: Any, printed: str) -> None:
    INSPECT.print_tensors_in_checkpoint_file(files.checkpoint, *arguments)
    assert capsys.readouterr().out == printed  # TensorFlow 1.15's


def test_what_a_checkpoint_lacks_is_said(files: Files, capsys: Any) -> None:
    INSPECT.print_tensors_in_checkpoint_file(files.checkpoint, "nothing", False)
    assert "Key nothing not found in checkpoint" in capsys.readouterr().out
    INSPECT.print_tensors_in_checkpoint_file(files("nothing"), "", True)
    assert files("nothing") in capsys.readouterr().out


def test_print_options() -> None:
    with np.printoptions():
        INSPECT.parse_numpy_printoption("precision=3")
        assert np.get_printoptions()["precision"] == 3
    for text in ("precisio=3", "precision", "precision=x"):
        with pytest.raises(argparse.ArgumentTypeError):
            INSPECT.parse_numpy_printoption(text)


def test_messages_of_a_saved_model(files: Files) -> None:
    assert MODELS.get_saved_model_tag_sets(files("sm")) == [["serve"]]
    assert list(MODELS.get_meta_graph_def(files("sm"), "serve").signature_def) == ["serving_default"]
    assert len(MODELS.read_saved_model(files("sm")).meta_graphs) == 1
    with pytest.raises(RuntimeError, match="train"):
        MODELS.get_meta_graph_def(files("sm"), "train")
    with pytest.raises(OSError, match="does not exist"):
        MODELS.read_saved_model(files("nothing"))


def test_optimize_for_inference_is_a_program(files: Files) -> None:
    tool: Any = alias_module("tensorflow.python.tools.optimize_for_inference")
    frozen(files, "g.pb")
    named = ["--input_names=x", "--output_names=y"]
    tool.main([f"--input={files('frozen.pb')}", f"--output={files('small.pb')}", *named])
    graph = tf.GraphDef.FromString(Path(files("small.pb")).read_bytes())
    assert {node.name for node in graph.node} >= {"x", "y"}
    text = ["--frozen_graph=false", f"--output={files('small.pbtxt')}", *named]
    Path(files("frozen.pbtxt")).write_text(str(graph))
    tool.main([f"--input={files('frozen.pbtxt')}", *text])
    assert 'name: "y"' in Path(files("small.pbtxt")).read_text()
    with pytest.raises(tf.errors.NotFoundError):
        tool.main([f"--input={files('absent.pb')}", *text])
