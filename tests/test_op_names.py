"""Where the source names ops: what is true of an op is told by its declaration, not by lists of names.

Outside `ops/` and the rooms that are users of the public names, a file may quote the ops of a pattern that it
looks for, those that it makes, and those that it declares. `golden/op_names.json` lists them, file by file,
with a reason. A file that quotes another op fails.
"""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flowstone
from flowstone.framework.declarations.operation import registry

ROOT = Path(flowstone.__file__).parent
for _module in pkgutil.walk_packages(flowstone.__path__, "flowstone."):
    if _module.name.split(".")[1] in ("ops", "rewriting", "partition", "lowering", "runtime"):
        importlib.import_module(_module.name)  # all ops are declared, whatever was imported before
OPS = frozenset(registry)
ALLOWED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "golden" / "op_names.json").read_text()
)
"""By the file's path below `flowstone`: the `names` of ops that it may quote, and `why`."""

# These rooms make and look for nodes as programs do, through the public names.
USERS = ("compat/", "contrib/", "debugger/", "estimator/", "keras/")

HOW_TO_PROCEED = """
Does the file say something that is true of the op? Then give the op's declaration a trait
(docs/adding_an_op.md has a table of them) and ask the declaration.
Does the file match the op as part of a pattern, or make it? Then add it to the names of the file in
tests/golden/op_names.json; a new file needs a reason there, too."""


def quoted_ops(text: str) -> set[str]:
    """The names of ops among the words of strings, but for docstrings, messages and names of nodes."""
    found: set[str] = set()
    for string in _strings(ast.parse(text)):
        words = re.split(r"[\s|]+", string)
        if not any(word[:1].islower() for word in words):  # those are messages
            found.update(OPS.intersection(words))
    return found


def _strings(tree: ast.AST) -> Iterator[str]:
    """The strings of a file, formatted ones whole."""
    nodes = list(ast.walk(tree))
    left_out = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    left_out |= {id(node.value) for node in nodes if isinstance(node, ast.keyword) and node.arg == "name"}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [part for part in node.values if isinstance(part, ast.Constant)]
            left_out |= {id(part) for part in parts}
            yield " ".join(str(part.value) for part in parts)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


def files() -> list[str]:
    found = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
    return sorted(name for name in found if not name.startswith(("ops/", *USERS)))


def allowed(name: str) -> set[str]:
    return set(ALLOWED[name]["names"]) if name in ALLOWED else set()


def test_names_are_found_in_strings_and_not_in_docstrings():
    text = '"""Add"""\n\ndef f():\n    """MatMul"""\n    return {"Sub": "Mul|Neg Exp", "no op": 1}\n'
    assert quoted_ops(text) == {"Sub", "Mul", "Neg", "Exp"}


def test_names_are_not_found_in_messages_and_in_names_of_nodes():
    text = (
        """fail("Shape is wrong", f"Shape {x} has no rank"); F.AddV2(x, y, name="Add"); f(f"BiasAdd|{x}")"""
    )
    assert quoted_ops(text) == {"BiasAdd"}


@pytest.mark.parametrize("name", files())
def test_a_file_names_the_ops_of_its_patterns_alone(name: str):
    more = sorted(quoted_ops((ROOT / name).read_text()) - allowed(name))
    assert not more, f"{name} names the ops {', '.join(more)}, which are not listed for it.{HOW_TO_PROCEED}"


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_what_is_listed_is_there(name: str):
    assert (ROOT / name).exists(), f"tests/golden/op_names.json lists {name}, which does not exist"
    gone = sorted(allowed(name) - quoted_ops((ROOT / name).read_text()))
    assert not gone, f"{name} names {', '.join(gone)} no more: take them out of tests/golden/op_names.json"
    assert ALLOWED[name]["names"] == sorted(allowed(name))
    assert ALLOWED[name]["why"].split()[0] in ("declares", "makes", "matches", "names"), "a reason is wanted"


def test_rooms_that_ask_facts_name_no_ops():
    makes_feeds = "runtime/execution/segment_copies.py"
    rooms = ("placement/", "runtime/")
    named = {name for name in files() if name.startswith(rooms) and quoted_ops((ROOT / name).read_text())}
    assert named == {makes_feeds}
