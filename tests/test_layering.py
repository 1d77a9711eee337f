"""A package of flowstone imports only from the packages below it; what the imports say is read, not run.

Also: imports stand at the top of a file, but for the few named here; one file reads the environment; and
TensorFlow is never imported.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

# From the bottom up. Packages of one row may import each other.
LAYERS = [
    {"framework"},
    {"io"},
    {"ops"},
    {"gradients"},
    {"conversion"},
    {"functions"},
    {"rewriting"},
    {"placement"},
    {"partition"},
    {"native"},
    {"lowering"},
    {"runtime"},
    {"distributed"},
    {"client"},
    {"training", "data", "debugger", "distributions", "layers", "profiling", "saved_model", "testing"},
    {"contrib", "estimator"},
    {"compat", "serving"},
    {"keras"},
    {"tools"},
]
HEIGHT = {package: height for height, row in enumerate(LAYERS) for package in row}
# The same of the rooms inside two packages; files beside the rooms may be imported by all.
ROOMS = {
    "framework": [
        {"process"},
        {"names"},
        {"types", "machine"},
        {"tensors"},
        {"declarations"},
        {"graphs"},
        {"functions"},
    ],
    "native": [
        {"codegen"},
        {"numerics"},
        {"clusters"},
        {"products"},
        {"matrices", "randomness"},
        {"networks", "images", "arrays", "strings", "records"},
        {"programs"},
        {"updates"},
    ],
    "runtime": [{"steps"}, {"process"}, {"code"}, {"execution"}, {"plans"}, {"explaining"}],
    "distributed": [{"wire"}, {"workers"}, {"links"}, {"masters"}, {"servers"}, {"launchers"}],
}

# Imports inside functions: the module, what it imports there, and why not at the top.
SLOW = "slow to import and seldom needed"
GRPC = "it imports gRPC, which only programs with servers need"
IMPORTS_INSIDE_FUNCTIONS = {
    ("flowstone.app", "absl"): "it defines flags of its own",
    ("flowstone.client.session", "flowstone.client.remote_runs"): GRPC,
    ("flowstone.client.target", "flowstone.distributed.servers.session_client"): GRPC,
    ("flowstone.compat.older_python.generated_messages", "google.protobuf"): SLOW,
    ("flowstone.compat.older_python.generated_messages", "google.protobuf.internal"): SLOW,
    ("flowstone.contrib.learn.learn_io.dask_io", "dask"): "an optional dependency",
    ("flowstone.contrib.learn.learn_io.dask_io", "dask.dataframe"): "an optional dependency",
    ("flowstone.framework.types.shape", "tensorboard.compat.proto.tensor_shape_pb2"): SLOW,
    ("flowstone.io.stores", "fsspec"): SLOW,
    ("flowstone.native.codegen.compiler", "llvmlite"): "not on every machine",
    ("flowstone.ops.ragged.ragged_tensor", "flowstone.ops.ragged"): "the first ragged tensor needs it",
    ("flowstone.ops.summaries.pictures", "flowstone.io.image_files.png"): SLOW,
    ("flowstone.ops.forests.boosted_trees_ops", "flowstone.io.proto"): SLOW,
    ("flowstone.ops.forests.decision_tree", "flowstone.io.proto"): SLOW,
    ("flowstone.ops.forests.decision_tree", "google.protobuf.message"): SLOW,
    ("flowstone.ops.forests.forest_state", "flowstone.io.proto"): SLOW,
    ("flowstone.ops.forests.leaf_statistics", "flowstone.io.proto"): SLOW,
    ("flowstone.ops.forests.gradient_ensemble", "flowstone.io.proto"): SLOW,
    ("flowstone.ops.forests.gradient_ensemble", "google.protobuf.message"): SLOW,
    ("flowstone.ops.forests.gradient_tree_ops", "flowstone.io.proto"): SLOW,
    ("flowstone.ops.forests.gradient_tree_ops", "google.protobuf.message"): SLOW,
    ("flowstone.ops.forests.quantile_accumulators", "flowstone.io.proto"): SLOW,
    ("flowstone.ops.forests.split_ops", "flowstone.io.proto"): SLOW,
    ("flowstone.ops.forests.tree_ensemble", "flowstone.io.proto"): SLOW,
    ("flowstone.ops.forests.tree_ensemble", "google.protobuf.message"): SLOW,
    ("flowstone.ops.summaries.tensors", "google.protobuf"): SLOW,
    ("flowstone.placement.placement_report", "matplotlib.figure"): "an optional dependency",
    ("flowstone.placement.placement_report", "matplotlib.patches"): "an optional dependency",
    ("flowstone.testing.assertions", "google.protobuf"): SLOW,
    ("flowstone.tools.serve", "flowstone.serving.batching"): "with the server",
    ("flowstone.tools.serve", "flowstone.serving.server"): "it needs an optional dependency",
    ("flowstone.training.checkpoints.checkpoint_state", "flowstone.io.proto.checkpoint_state_pb2"): SLOW,
    ("flowstone.training.checkpoints.checkpoint_state", "google.protobuf"): SLOW,
    ("flowstone.training.checkpoints.meta_graph", "google.protobuf"): SLOW,
    ("flowstone.training.checkpoints.meta_graph_import", "google.protobuf"): SLOW,
}

# What programs import: `flowstone` itself and the namespaces assembled directly in it (nn.py, train.py, ...).
PUBLIC = "the public namespaces"
USERS_OF_PUBLIC = {PUBLIC, "compat", "contrib", "estimator", "keras", "tools"}
# These assemble names from every layer.
FREE = {PUBLIC}


def module_name(path: str) -> str:
    """`flowstone/ops/arrays/arrays.py` -> `flowstone.ops.arrays.arrays`; a package is named without
    `__init__`."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


@functools.cache
def noted(source: str) -> list[tuple[ast.Import | ast.ImportFrom | ast.Attribute, bool]]:
    """The imports of a file and what it takes from the module os, each with whether it is in a function. A
    file is parsed once for all tests."""
    found: list[tuple[ast.Import | ast.ImportFrom | ast.Attribute, bool]] = []
    stack: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while stack:
        node, is_inner = stack.pop()
        kept = isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute)
        if isinstance(node, ast.Attribute):
            kept = isinstance(node.value, ast.Name) and node.value.id == "os"
        if kept:
            found.append((node, is_inner))
        is_inner = is_inner or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        stack += [(child, is_inner) for child in ast.iter_child_nodes(node)]
    return found


def imported_modules(path: str, source: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) for each import anywhere in a file, `from a import b` as `a.b`."""
    package = module_name(path).split(".")
    if not path.endswith("__init__.py"):
        package = package[:-1]
    for node, _ in noted(source):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{stem}.{alias.name}") for alias in node.names)


def room(module: str) -> str:
    """The package of the house that a dotted name below `flowstone` belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in HEIGHT else PUBLIC


def import_faults(path: str, source: str) -> list[str]:
    """Every import in the file that the layering forbids, as `path:line: why`."""
    own = room(module_name(path))
    faults = []
    for line, name in imported_modules(path, source):
        root = name.partition(".")[0]
        if root == "tensorflow":
            faults.append(f"{path}:{line}: imports {name}")
        if root != "flowstone" or own in FREE:
            continue
        other = room(name)
        if other == PUBLIC:
            if own not in USERS_OF_PUBLIC:
                faults.append(f"{path}:{line}: {own} imports {name}, one of {PUBLIC}")
        elif HEIGHT[other] > HEIGHT[own]:
            faults.append(f"{path}:{line}: {own} imports {name}, which is above it")
    return faults


def environment_reads(path: str, source: str) -> list[str]:
    """Every use of the environment's variables in the file, as `path:line`."""
    names = {"environ", "environb", "getenv", "getenvb"}
    lines = []
    for node, _ in noted(source):
        if isinstance(node, ast.Attribute):
            used = node.attr in names
        else:
            used = isinstance(node, ast.ImportFrom) and node.module == "os"
            used = used and bool(names.intersection(alias.name for alias in node.names))
        if used:
            lines.append(f"{path}:{node.lineno}")
    return lines


def inner_imports(path: str, source: str) -> list[tuple[str, str]]:
    """(importing module, imported module) of every import inside a function of the file."""
    found = []
    for node, is_inner in noted(source):
        if is_inner and isinstance(node, ast.Import):
            found += [(module_name(path), alias.name) for alias in node.names]
        elif is_inner and isinstance(node, ast.ImportFrom):
            found.append((module_name(path), "." * node.level + (node.module or "")))
    return found


@functools.cache
def lines_for_types(source: str) -> set[int]:
    """The lines below `if TYPE_CHECKING`: what they import is never run."""
    blocks = (node for node in ast.parse(source).body if isinstance(node, ast.If))
    return {
        line
        for block in blocks
        if isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for line in range(block.lineno, (block.end_lineno or block.lineno) + 1)
    }


@functools.cache
def source_files() -> list[tuple[str, str]]:
    return [
        (path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted((SOURCE / "flowstone").rglob("*.py"))
    ]


def test_every_package_has_its_layer() -> None:
    packages = {path.parent.name for path in (SOURCE / "flowstone").glob("*/*.py")}
    assert packages, "no package found"
    assert packages <= set(HEIGHT), f"name the layer of {sorted(packages - set(HEIGHT))}"


def test_packages_import_only_from_below() -> None:
    faults = [fault for path, source in source_files() for fault in import_faults(path, source)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_of_a_package_import_only_from_below(package: str) -> None:
    heights = {room: height for height, row in enumerate(ROOMS[package]) for room in row}
    folders = {path.parent.name for path in (SOURCE / "flowstone" / package).glob("*/*.py")}
    assert folders == set(heights)
    faults = []
    for path, source in source_files():
        parents = path.split("/")[1:-1]
        if len(parents) < 2 or parents[0] != package:
            continue
        own = heights[parents[1]]
        for line, name in imported_modules(path, source):
            parts = name.split(".")
            if line in lines_for_types(source):
                continue
            if parts[:2] == ["flowstone", package] and heights.get(parts[2], 0) > own:
                faults.append(f"{path}:{line}: imports {name}, which is above it")
    assert not faults, "\n".join(faults)


def test_imports_inside_functions_are_named_here() -> None:
    found = {pair for path, source in source_files() for pair in inner_imports(path, source)}
    unnamed = found - set(IMPORTS_INSIDE_FUNCTIONS)
    assert not unnamed, f"import at the top, or give the reason here: {sorted(unnamed)}"
    gone = set(IMPORTS_INSIDE_FUNCTIONS) - found
    assert not gone, f"no longer there: {sorted(gone)}"


@pytest.mark.parametrize(
    ("library", "owners"),
    [
        ("grpc", {"serving/grpc_server.py", "distributed/wire/transport.py"}),
        ("waitress", {"serving/http_server.py"}),
    ],
)
def test_few_files_import_a_library_of_servers(library: str, owners: set[str]) -> None:
    importers = {
        path
        for path, source in source_files()
        for _, name in imported_modules(path, source)
        if name.partition(".")[0] == library
    }
    assert importers == {f"flowstone/{owner}" for owner in owners}


def test_one_file_reads_the_environment() -> None:
    reads = [read for path, source in source_files() for read in environment_reads(path, source)]
    assert {read.partition(":")[0] for read in reads} <= {"flowstone/framework/flags.py"}, "\n".join(reads)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("flowstone/framework/graphs/graph.py", "from flowstone.ops import arrays"),
        ("flowstone/framework/graphs/graph.py", "from flowstone.ops.arrays.arrays import constant"),
        ("flowstone/framework/graphs/graph.py", "def f():\n    import flowstone.runtime.plans.plan"),
        ("flowstone/ops/arrays/arrays.py", "from ...client import session"),
        ("flowstone/ops/__init__.py", "from ..client import session"),
        ("flowstone/ops/arrays/arrays.py", "import flowstone as tf"),
        ("flowstone/client/session.py", "from flowstone.nn import relu"),
        ("flowstone/client/session.py", "from flowstone import nn"),
        ("flowstone/training/checkpoints/saver.py", "from flowstone.tools import run"),
        ("flowstone/compat/text.py", "from flowstone.tools import run"),
        ("flowstone/tools/run.py", "import tensorflow.compat.v1 as tf"),
        ("flowstone/nn.py", "from tensorflow import nn"),
    ],
)
def test_the_check_sees_a_forbidden_import(path: str, source: str) -> None:
    assert len(import_faults(path, source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "flowstone/ops/arrays/arrays.py",
            "from flowstone.framework.types.shape import TensorShape\nfrom . import elementwise",
        ),
        (
            "flowstone/ops/arrays/arrays.py",
            "from flowstone.framework import dtypes\nimport torch, flowstone.io.records",
        ),
        ("flowstone/training/checkpoints/saver.py", "from flowstone.saved_model import loader"),
        (
            "flowstone/nn.py",
            "from flowstone.ops.networks.neural_net import relu\nfrom flowstone.client import session",
        ),
        (
            "flowstone/__init__.py",
            "from flowstone import nn\nfrom .compat.behaviour import executing_eagerly",
        ),
        ("flowstone/compat/behaviour.py", "import flowstone as tf"),
    ],
)
def test_the_check_allows_imports_from_below(path: str, source: str) -> None:
    assert import_faults(path, source) == []


@pytest.mark.parametrize(
    ("source", "imported"),
    [
        ("def f():\n    import torch", ["torch"]),
        ("class A:\n    def f(self):\n        if self:\n            from torch import nn", ["torch"]),
        ("async def f():\n    import torch, numpy", ["torch", "numpy"]),
        ("import torch\nif torch:\n    import numpy", []),
    ],
)
def test_the_check_sees_an_import_inside_a_function(source: str, imported: list[str]) -> None:
    found = inner_imports("flowstone/nn.py", source)
    assert found == [("flowstone.nn", name) for name in imported]


@pytest.mark.parametrize(
    "source", ["import os\nos.environ['A']", "import os\nos.getenv('A')", "from os import environ"]
)
def test_the_check_sees_a_read_of_the_environment(source: str) -> None:
    assert len(environment_reads("flowstone/ops/arrays/arrays.py", source)) == 1
