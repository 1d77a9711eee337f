"""`python -m tensorflow.python.tools.saved_model_cli`: its words and values are TensorFlow 1.15.5's."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.compat.module_paths import register
from flowstone.framework.names.alias_modules import alias_module

register()
CLI: Any = alias_module("tensorflow.python.tools.saved_model_cli")
WHOLE = ["--tag_set", "serve", "--signature_def", "serving_default"]

SIGNATURE = """\
The given SavedModel SignatureDef contains the following input(s):
  inputs['x'] tensor_info:
      dtype: DT_FLOAT
      shape: (-1, 2)
      name: x:0
  inputs['y'] tensor_info:
      dtype: DT_INT32
      shape: unknown_rank
      name: y:0
The given SavedModel SignatureDef contains the following output(s):
  outputs['w'] tensor_info:
      dtype: DT_INT32
      shape: unknown_rank
      name: w:0
  outputs['z'] tensor_info:
      dtype: DT_FLOAT
      shape: (-1, 2)
      name: z:0
Method name is: tensorflow/serving/predict
"""


def signature(inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
    infos = [
        {key: tf.saved_model.utils.build_tensor_info(x) for key, x in side.items()}
        for side in (inputs, outputs)
    ]
    return tf.saved_model.signature_def_utils.build_signature_def(*infos, "tensorflow/serving/predict")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("models") / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [None, 2], name="x"), tf.placeholder(tf.int32, name="y")
        texts = tf.placeholder(tf.string, [None], name="examples")
        kinds = {"a": (tf.float32, -1.0), "n": (tf.string, "q"), "i": (tf.int64, 0)}
        features = {key: tf.FixedLenFeature([1], *kind) for key, kind in kinds.items()}
        parsed = tf.parse_example(texts, features)
        v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        session.run(v.initializer)
        outputs = {"z": tf.matmul(x, v, name="z"), "w": tf.add(y, 1, name="w")}
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        signatures = {
            "serving_default": signature({"x": x, "y": y}, outputs),
            "parse": signature({"examples": texts}, parsed),
        }
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map=signatures)
        tf.write_file("nowhere", "nothing")
        builder.add_meta_graph(["serve", "gpu"])
        builder.save()
    return folder


def printed(capsys: pytest.CaptureFixture[str], command: str, folder: str, *arguments: str) -> str:
    capsys.readouterr()
    CLI.main([command, "--dir", folder, *arguments])
    return capsys.readouterr().out


def test_what_is_shown(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    tags = "The given SavedModel contains the following tag-sets:\nserve\ngpu, serve\n"
    assert printed(capsys, "show", model) == tags
    keys = "The given SavedModel MetaGraphDef contains SignatureDefs with the following keys:\n"
    found = printed(capsys, "show", model, "--tag_set", "serve")
    assert found == f'{keys}SignatureDef key: "parse"\nSignatureDef key: "serving_default"\n'
    assert printed(capsys, "show", model, "--tag_set", "gpu,serve") == keys
    assert printed(capsys, "show", model, *WHOLE) == SIGNATURE


def test_all_is_shown(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "show", model, "--all")
    heads = "\nMetaGraphDef with tag-set: '{}' contains the following SignatureDefs:\n".format
    indented = "".join(f"  {line}\n" for line in SIGNATURE.splitlines())
    assert found.startswith(heads("serve") + "\nsignature_def['parse']:\n  The given SavedModel")
    assert found.endswith(f"\nsignature_def['serving_default']:\n{indented}{heads('serve, gpu')}")


def test_ops_that_write_files_are_found(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    safe = "MetaGraph with tag set ['serve'] does not contain blacklisted ops.\n"
    unsafe = "MetaGraph with tag set ['serve', 'gpu'] contains the following blacklisted ops: {'WriteFile'}\n"
    assert printed(capsys, "scan", model) == safe + unsafe
    assert printed(capsys, "scan", model, "--tag_set", "serve") == safe


def test_outputs_are_printed_and_written(
    model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    given = [*WHOLE, "--input_exprs", "x=[[1,2]];y=np.array([3])", "--outdir", str(folder)]
    expected = (
        f"Result for output key w:\n[4]\nOutput w is saved to {folder}/w.npy\n"
        f"Result for output key z:\n[[ 7. 10.]]\nOutput z is saved to {folder}/z.npy\n"
    )
    assert printed(capsys, "run", model, *given) == expected
    assert np.load(folder / "z.npy").tolist() == [[7, 10]]
    with pytest.raises(RuntimeError, match=r'already exists\. Add "--overwrite"'):
        printed(capsys, "run", model, *given)
    assert printed(capsys, "run", model, *given, "--overwrite") == expected


def test_inputs_of_files(model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    np.savez(tmp_path / "several.npz", a=np.float32([[1, 2]]), b=np.int32([7]))
    np.savez(tmp_path / "one.npz", k=np.float32([[5, 6]]))
    np.save(tmp_path / "y.npy", np.int32([7, 8]))
    (tmp_path / "y.pkl").write_bytes(pickle.dumps(np.int32([9])))
    (tmp_path / "text").write_text("nothing")

    def of_files(inputs: str, *more: str) -> str:
        return printed(capsys, "run", model, *WHOLE, "--inputs", inputs.replace("@", f"{tmp_path}/"), *more)

    results = "Result for output key w:\n{}\nResult for output key z:\n{}\n".format
    assert of_files("x=@several.npz[a];y=@y.npy") == results("[8 9]", "[[ 7. 10.]]")
    assert of_files("x=@one.npz;y=@y.pkl") == results("[10]", "[[23. 34.]]")
    assert of_files("x=@one.npz;y=@y.pkl", "--input_exprs", "y=3").endswith(results("4", "[[23. 34.]]"))
    with pytest.raises(RuntimeError, match="contains more than one ndarrays"):
        of_files("x=@several.npz;y=@y.npy")
    with pytest.raises(RuntimeError, match='does not contain variable with name "q"'):
        of_files("x=@several.npz[q];y=@y.npy")
    with pytest.raises(OSError, match="Failed to interpret file"):
        of_files("x=@text;y=@y.npy")
    with pytest.raises(RuntimeError, match='--inputs "x" format is incorrect'):
        of_files("x")


def test_examples(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    parse = ["--tag_set", "serve", "--signature_def", "parse", "--input_examples"]
    found = printed(capsys, "run", model, *parse, 'examples=[{"a":[1.5],"i":[4]},{"n":["x"],"a":[2.5]}]')
    rows = {"a": "[[1.5]\n [2.5]]", "i": "[[4]\n [0]]", "n": "[[b'q']\n [b'x']]"}
    assert found == "".join(f"Result for output key {key}:\n{value}\n" for key, value in rows.items())
    for wrong, message in (
        ('examples={"a":[1.5]}', "must be a list of dictionaries"),
        ('examples=[{"a":1.5}]', "feature value must be a list"),
        ('examples=[{"a":[]}]', "must not be empty"),
        ('examples=[{"a":[[1.5]]}]', "is not supported for tf.train.Feature"),
    ):
        with pytest.raises(ValueError, match=message):
            printed(capsys, "run", model, *parse, wrong)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (WHOLE, AttributeError, "At least one of --inputs, --input_exprs or --input_examples must be"),
        ([*WHOLE, "--input_exprs", "q=1"], ValueError, '"q" is not a valid input key. Please choose from'),
        ([*WHOLE, "--input_exprs", "x"], RuntimeError, '--input_exprs "x" format is incorrect'),
        ([*WHOLE[:3], "absent", "--input_exprs", "x=1"], ValueError, 'Could not find signature "absent"'),
        (
            ["--tag_set", "absent", *WHOLE[2:], "--input_exprs", "x=1"],
            RuntimeError,
            "tag-set absent could not",
        ),
    ],
)
def test_what_is_refused(
    model: str, capsys: pytest.CaptureFixture[str], arguments: list[str], error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        printed(capsys, "run", model, *arguments)


def test_tools_are_programs(model: str, tmp_path: Path) -> None:
    """`flowstone run -m` runs the tools that have a command line; what is no program is refused."""

    def run(tool: str, *arguments: str) -> Any:
        command = [
            sys.executable,
            "-m",
            "flowstone",
            "run",
            "-m",
            f"tensorflow.python.tools.{tool}",
            *arguments,
        ]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    shown = run("saved_model_cli", "show", "--dir", model)
    assert (shown.returncode, shown.stdout.splitlines()[1:]) == (0, ["serve", "gpu, serve"]), shown.stderr
    prefix = f"{model}/variables/variables"
    inspected = run("inspect_checkpoint", f"--file_name={prefix}", "--all_tensors")
    assert inspected.stdout.endswith("[[1. 2.]\n [3. 4.]]\n# Total number of params: 4\n"), inspected.stderr
    frozen = run(
        "freeze_graph", f"--input_saved_model_dir={model}", "--output_node_names=z", "--output_graph=z.pb"
    )
    assert frozen.returncode == 0, frozen.stderr
    graph = tf.GraphDef.FromString((tmp_path / "z.pb").read_bytes())
    assert not any(node.op.startswith("Variable") for node in graph.node)
    assert run("saved_model_utils").returncode == 1
