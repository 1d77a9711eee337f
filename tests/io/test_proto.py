"""The messages of ours are TensorFlow's: every field of them, their bytes and their text."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, text_format
from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

import flowstone.io.proto
from flowstone.io.proto.control_flow_pb2 import WhileContextDef
from flowstone.io.proto.example_pb2 import Example
from flowstone.io.proto.saved_model_pb2 import SavedModel

FACTS = json.loads((Path(__file__).parents[1] / "golden/proto_facts.json").read_text())
FOLDER = Path(flowstone.io.proto.__file__).parent
PROTOS = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.proto"))


def module(name: str) -> Any:
    return importlib.import_module(f"flowstone.io.proto.{name.replace('/', '.')}_pb2")


def describe(message: Any) -> dict[str, Any]:
    proto = descriptor_pb2.DescriptorProto()
    message.CopyToProto(proto)
    fields = {
        f.name: [f.number, f.type, f.label == f.LABEL_REPEATED, f.type_name.rpartition(".")[2]]
        for f in proto.field
    }
    return {"fields": fields, "nested": {inner.name: describe(inner) for inner in message.nested_types}}


@pytest.mark.parametrize("name", sorted(FACTS))
def test_fields_are_tensorflows(name: str) -> None:
    messages = module(name).DESCRIPTOR.message_types_by_name
    assert {message: describe(messages[message]) for message in messages} == FACTS[name]


def test_which_messages_have_facts() -> None:
    """TensorFlow's package lacks contrib, the cluster's requests, pprof's messages, gRPC's health service."""
    forests = {"decision_trees", "fertile_stats", "tensor_forest_params"}
    forests |= {"learner", "quantiles", "split_info", "tree_config"}
    own = {"hparam", "manifest", "master", "pprof", "worker", "serving/health"}
    assert set(PROTOS) - set(FACTS) == own | forests


@pytest.mark.parametrize("name", PROTOS)
def test_modules_are_those_of_the_texts(name: str) -> None:
    """Each declaration of the text is in the module; protoc is not at hand."""
    text = (FOLDER / f"{name}.proto").read_text()
    lines = {line.strip() for line in text.splitlines()}
    descriptor = module(name).DESCRIPTOR
    for kind, message in descriptor.message_types_by_name.items():
        assert f"message {kind} {{" in lines
        for field in message.fields:
            assert any(
                line.split(" [")[0].rstrip(";").endswith(f" {field.name} = {field.number}") for line in lines
            )
    declared = sum(line.startswith("message ") for line in text.splitlines())
    assert declared == len(descriptor.message_types_by_name)


def test_fields_have_the_classes_of_tensorboard() -> None:
    model = SavedModel(saved_model_schema_version=1)
    graph = model.meta_graphs.add()
    assert type(graph) is MetaGraphDef
    graph.meta_info_def.tags.append("serve")
    graph.graph_def.versions.producer = 24
    assert SavedModel.FromString(model.SerializeToString()) == model


def test_bytes_and_text_of_an_example() -> None:
    example = Example()
    example.features.feature["a"].int64_list.value.extend([3, 300])
    wire = bytes.fromhex("0a0e0a0c0a016112071a050a0303ac02")
    assert example.SerializeToString() == wire
    text = text_format.MessageToString(example, as_one_line=True)
    assert text == 'features { feature { key: "a" value { int64_list { value: 3 value: 300 } } } }'
    assert text_format.Parse(text, Example()) == example


def test_a_loop_in_a_loop() -> None:
    outer = WhileContextDef(context_name="a", parallel_iterations=10)
    outer.nested_contexts.add().while_ctxt.context_name = "a/b"
    assert outer.SerializeToString().hex() == "0a016110" + "0a" + "62071205" + "0a03612f62"


def test_names_do_not_clash_with_tensorflows() -> None:
    """A pool may hold both: another owner of the package ``tensorflow`` adds its own after ours."""
    code = (
        "from flowstone.io.proto import example_pb2, saved_model_pb2, worker_pb2, tfprof_output_pb2\n"
        "from google.protobuf import descriptor_pb2, descriptor_pool\n"
        "pool = descriptor_pool.Default()\n"
        "for module in (example_pb2, saved_model_pb2):\n"
        "    proto = descriptor_pb2.FileDescriptorProto()\n"
        "    module.DESCRIPTOR.CopyToProto(proto)\n"
        "    proto.name, proto.package = 'tensorflow/' + proto.name, 'tensorflow'\n"
        "    pool.AddSerializedFile(proto.SerializeToString())\n"
        "print(pool.FindMessageTypeByName('tensorflow.Example').full_name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "tensorflow.Example\n"
