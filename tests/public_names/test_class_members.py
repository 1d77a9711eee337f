"""Every public name, and every member of public classes, is called and gives what TensorFlow gives."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import flowstone as tf

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from class_calls import ClassCalls, answers, differs, table_modules  # noqa: E402
from left_names import ABSENT, COVERED, LEFT  # noqa: E402

GOLDEN = HERE.parent / "golden" / "public_names"
MODULES = table_modules(str(HERE))
TABLES = {module: importlib.import_module(module).TABLES for module in MODULES}
EXPECTED = {module: json.loads((GOLDEN / f"{module}.json").read_text()) for module in MODULES}
CASES = [(module, table) for module, tables in TABLES.items() for table in tables]


@pytest.mark.parametrize(
    ("module", "table"), CASES, ids=[f"{table.name}-{len(table.calls)}" for _, table in CASES]
)
def test_every_member_gives_what_tensorflow_gives(module: str, table: ClassCalls) -> None:
    found = answers(table, tf, np)
    wrong = {
        f"{table.name}.{member}": (each, EXPECTED[module][f"{table.name}.{member}"])
        for member, each in found.items()
        if differs(each, EXPECTED[module][f"{table.name}.{member}"])
    }
    assert not wrong, wrong


def test_every_public_name_is_called() -> None:
    called = {name for _, table in CASES for name in table.names()}
    rows = [row.split() for row in (GOLDEN / "class_names.txt").read_text().splitlines()]
    listed = [f"{owner}.{name}" for owner, *names in rows for name in names]
    missing = sorted({*listed} - called - covered_names() - absent_names())
    assert len(rows) > 170
    assert not missing, missing


def test_every_name_of_the_module_is_called() -> None:
    """Each name of `tf` itself that exists is in a table, or among those that are covered elsewhere."""
    called = {name for _, table in CASES for name in table.names()}
    members = {f"{table.name}.{member}" for _, table in CASES for member in table.calls}
    rows = [row.split() for row in (GOLDEN / "module_names.txt").read_text().splitlines()]
    left = {f"tf.{name}" for names in LEFT.values() for name in names.split()}
    listed = {f"{owner}.{name}" for owner, *names in rows for name in names}
    missing = [name for name in sorted(listed - called - left) if hasattr(tf, name.removeprefix("tf."))]
    assert len(listed) > 500
    assert left <= listed, left - listed
    assert not left & members, left & members
    assert not missing, missing


def absent_names() -> set[str]:
    return {f"{owner}.{name}" for owner, names in ABSENT.items() for name in names.split()}


def covered_names() -> set[str]:
    return {name for names in COVERED.values() for name in names.split()}


def names_of_namespaces() -> set[str]:
    rows = [row.split() for row in (GOLDEN / "namespace_names.txt").read_text().splitlines()]
    return {f"{owner}.{name}" for owner, *names in rows for name in names}


def exists(name: str) -> bool:
    value = tf
    for part in name.split(".")[1:]:
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def test_every_name_of_the_namespaces_is_called() -> None:
    """Each name of `tf.nn`, `tf.train` and so on that exists is in a table or in the test that is named."""
    called = {name for _, table in CASES for name in table.names()}
    covered, listed = covered_names(), names_of_namespaces()
    missing = sorted(name for name in listed - called - covered if exists(name))
    assert len(listed) > 600
    assert not covered & called, covered & called
    assert not missing, missing


@pytest.mark.parametrize("file", sorted(COVERED))
def test_the_file_that_covers_a_name_calls_it(file: str) -> None:
    text = (HERE.parent / file).read_text()
    for name in COVERED[file].split():
        last = name.rpartition(".")[2]  # alone, where the file loops over names or calls them through others
        assert re.search(rf"\b{last}\b", text), name


def test_the_absent_names_are_those_that_are_written_down() -> None:
    """A name that arrives is taken off the list, and then has to be called."""
    written = absent_names()
    assert {name for name in names_of_namespaces() if not exists(name)} == written & names_of_namespaces()
    assert not any(exists(name) for name in written)


def test_most_members_give_a_value() -> None:
    """An error is an answer only where TensorFlow raises it too, and few members raise."""
    all_answers = [each for answers_of in EXPECTED.values() for each in answers_of.values()]
    errors = [each for each in all_answers if isinstance(each, dict) and "error" in each]
    assert len(errors) < 0.1 * len(all_answers)


def test_differing_answers_are_told_apart() -> None:
    assert differs({"value": [1.0, 2.0]}, {"value": [1.0, 2.01]})
    assert (
        differs([1, 2], [1]) and differs(1, 1.0) and differs({"error": "ValueError"}, {"error": "TypeError"})
    )
    assert not differs([float("nan"), 1.0], [float("nan"), 1.00001])
