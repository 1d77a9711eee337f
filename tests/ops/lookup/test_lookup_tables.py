"""The classes of look-up tables build what TensorFlow 1.15 builds, and give what it gives."""

from __future__ import annotations

import importlib
import json
import pathlib
from types import SimpleNamespace

import pytest

import flowstone as tf
import table_class_programs
import table_programs
from flowstone.compat.module_paths import find_sources

GOLDEN = json.loads((pathlib.Path(__file__).parents[2] / "golden" / "lookup" / "classes.json").read_text())

# What programs find in TensorFlow's internal module.
SOURCES = [importlib.import_module(name) for name in find_sources("tensorflow.python.ops.lookup_ops") or ()]
lookup_ops = SimpleNamespace(
    **{name: getattr(source, name) for source in SOURCES[::-1] if source is not tf for name in source.__all__}
)


@pytest.mark.parametrize("name", sorted(table_class_programs.PROGRAMS))
def test_programs(name: str, tmp_path: pathlib.Path) -> None:
    table_programs.write_files(tmp_path)
    found = table_class_programs.evaluate(tf, lookup_ops, name, tmp_path)
    expected = GOLDEN["programs"][name]
    assert found["nodes"] == expected["nodes"]
    assert found["values"] == expected["values"]
    assert (found["files"], found["tables"]) == (expected["files"], expected["tables"])


@pytest.mark.parametrize("name", sorted(table_class_programs.MISTAKES))
def test_mistakes(name: str) -> None:
    kind, _ = GOLDEN["mistakes"][name]
    found_kind, found_message = table_class_programs.mistake(tf, lookup_ops, name)
    assert found_kind == kind, found_message
