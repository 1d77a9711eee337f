"""Where the source names ops: what is true of an op is told by its declaration, not by lists of names.

Outside `ops/` a file may quote an op's name if it matches or builds that op: it looks for a pattern, or adds
a node. `COUNTS` holds how many ops each file names; a file that names more than that fails.
"""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
from pathlib import Path

import pytest

import flowstone
from flowstone.framework.operation import registry

REASONS = {
    "lowering/": "matches patterns of ops and builds the private ones that replace them",
    "rewriting/": "matches patterns of ops and builds nodes",
    "partition/": "builds the control of loops on other devices",
    "gradients/": "builds gradients of loops",
    "framework/": "builds placeholders and constants; words of messages",
    "runtime/": "kernels of the executor's primitives; constants",
    "placement/": "stacks",
    "training/": "TensorFlow's own public lists of ops; words of messages and default names",
    "layers/": "default names of nodes, words of messages",
    "client/": "words of messages",
    "testing/": "words of messages, constants of GraphDefs",
}
"""Why files of a folder may name ops."""

ROOT = Path(flowstone.__file__).parent
for _module in pkgutil.walk_packages(flowstone.__path__, "flowstone."):
    if _module.name.split(".")[1] in ("ops", "rewriting", "partition", "lowering", "runtime"):
        importlib.import_module(_module.name)  # all ops are declared, whatever was imported before
OPS = frozenset(registry)
COUNTS: dict[str, int] = json.loads((Path(__file__).parent / "golden" / "op_names.json").read_text())
"""How many ops a file of the source, by its path below `flowstone`, may name."""


def quoted_ops(text: str) -> set[str]:
    """The names of ops among the words of strings that are not docstrings."""
    tree = ast.parse(text)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs]
    words = {word for node in strings if isinstance(node.value, str) for word in node.value.split()}
    return {word for word in words if word in OPS}


def files() -> list[str]:
    found = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
    return sorted(name for name in found if not name.startswith("ops/"))


def test_names_are_found_in_strings_and_not_in_docstrings():
    text = '"""Add"""\n\ndef f():\n    """MatMul"""\n    return {"Sub": "Mul Neg", "no op": 1}\n'
    assert quoted_ops(text) == {"Sub", "Mul", "Neg"}


@pytest.mark.parametrize("name", files())
def test_a_file_names_no_more_ops_than_its_patterns_have(name):
    named = quoted_ops((ROOT / name).read_text())
    assert len(named) <= COUNTS.get(name, 0), (
        f"{name} names {len(named)} ops, {COUNTS.get(name, 0)} are allowed: {', '.join(sorted(named))}. If a "
        "name states a fact about the op, declare a trait on the op (framework/operation.py) and ask it. If "
        "the file matches or builds that op, raise its count in tests/golden/op_names.json."
    )


def test_counts_are_of_files_that_exist():
    assert set(COUNTS) <= set(files())
    assert all(count > 0 for count in COUNTS.values())
    assert {name.partition("/")[0] + "/" for name in COUNTS} <= set(REASONS)


def test_costs_and_control_flow_are_named_nowhere_else():
    for name in (
        "placement/operation_cost.py",
        "placement/task_graph.py",
        "gradients/loop_gradients.py",
        "rewriting/analyses/frames.py",
    ):
        assert not quoted_ops((ROOT / name).read_text())
