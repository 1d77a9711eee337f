"""Compiles `src/flowstone/io/proto/*.proto`; with TensorFlow's Python, writes what TensorFlow's messages are.

    python -m venv /tmp/protoc && /tmp/protoc/bin/pip install grpcio-tools==1.62.3 tensorboard==2.16.2
    /tmp/protoc/bin/python tests/golden/make_proto_modules.py
    $TF_PYTHON -m pip install --no-deps --target /tmp/serving_api tensorflow-serving-api
    PYTHONPATH=/tmp/serving_api $TF_PYTHON tests/golden/make_proto_modules.py facts

The modules must come from protobuf 4.25, the oldest release that pyproject.toml allows. The facts are
`tests/golden/proto_facts.json`: for each message of TensorFlow, and of TensorFlow Serving, that we have
too, its fields.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROTOS = ROOT / "src/flowstone/io/proto"
FACTS = ROOT / "tests/golden/proto_facts.json"
# Where TensorFlow has the modules.
FAMILIES = (
    "tensorflow.core.example",
    "tensorflow.core.framework",
    "tensorflow.core.kernels.boosted_trees",
    "tensorflow.core.lib.core",
    "tensorflow.core.profiler",
    "tensorflow.core.protobuf",
    "tensorflow.core.util",
    "tensorflow.python.checkpoint",
    "tensorflow.python.training",
)
SERVING_FAMILIES = ("tensorflow_serving.apis",)


def tensorboard_messages() -> bytes:
    """The descriptors of tensorboard's messages and of those they need, as a FileDescriptorSet."""
    import tensorboard.compat.proto as package
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet()
    seen = set()

    def add(file: Any) -> None:
        if file.name not in seen:
            seen.add(file.name)
            for other in file.dependencies:
                add(other)
            file.CopyToProto(files.file.add())

    for module in pkgutil.iter_modules(package.__path__):
        if module.name.endswith("_pb2"):
            add(importlib.import_module(f"{package.__name__}.{module.name}").DESCRIPTOR)
    return files.SerializeToString()


def compile_protos() -> None:
    texts = [path.relative_to(ROOT / "src").as_posix() for path in sorted(PROTOS.rglob("*.proto"))]
    with tempfile.NamedTemporaryFile() as descriptors:
        descriptors.write(tensorboard_messages())
        descriptors.flush()
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--descriptor_set_in={descriptors.name}"]
        subprocess.run(
            [*command, "-I.", "--python_out=.", "--pyi_out=.", *texts], cwd=ROOT / "src", check=True
        )


def describe(message: Any) -> dict[str, Any]:
    """The fields of a message: number, type, repeated or not, the last part of their type's name."""
    from google.protobuf import descriptor_pb2

    proto = descriptor_pb2.DescriptorProto()
    message.CopyToProto(proto)
    fields = {
        f.name: [f.number, f.type, f.label == f.LABEL_REPEATED, f.type_name.rpartition(".")[2]]
        for f in proto.field
    }
    nested = {inner.name: describe(inner) for inner in message.nested_types}
    return {"fields": dict(sorted(fields.items())), "nested": dict(sorted(nested.items()))}


def write_facts() -> None:
    facts = {}
    for path in sorted(PROTOS.rglob("*.proto")):
        stem = path.relative_to(PROTOS).with_suffix("").as_posix()
        for family in SERVING_FAMILIES if stem.startswith("serving/") else FAMILIES:
            try:
                module = importlib.import_module(f"{family}.{path.stem}_pb2")
            except ImportError:
                continue
            messages = module.DESCRIPTOR.message_types_by_name
            facts[stem] = {name: describe(messages[name]) for name in sorted(messages)}
            break
        else:
            print("TensorFlow's Python package does not have", stem)
    FACTS.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    os.chdir(ROOT)
    write_facts() if "facts" in sys.argv else compile_protos()
