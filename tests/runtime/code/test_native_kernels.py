"""Explanations of machine code: node lists, text, times beside ATen's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.client.feeds_fetches import FetchStructure
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.code.native_kernels import kernel_table, native_kernels

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "-")


SOURCE = Path(__file__).parents[3] / "src"
PROGRAM = """
import numpy as np
import flowstone as tf

x = tf.placeholder(tf.float32, [20, 30], name="x")
y = tf.nn.softmax(tf.multiply(x, 2.0, name="doubled"), name="shares")
with tf.Session() as session:
    for step in range(30):
        session.run(y, {x: np.ones((20, 30))})
"""


@pytest.fixture(autouse=True)
def tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)


def program() -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [20, 30], name="x")
    return x, tf.nn.softmax(tf.multiply(x, 2.0, name="doubled"), name="shares")


def test_a_session_explains_what_its_machine_code_computes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = program()
        text = session.explain(y, {x: np.ones((20, 30))})
    assert "shares as machine code\n  for doubled, shares\n  float32[20,30]" in text
    assert "%2 = Mul(%0, %1) : float32" in text and "Max(%2) over=row" in text


def test_a_measured_step_has_times_beside_those_of_aten() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = program()
        text = session.explain(y, {x: np.ones((20, 30))}, measure=True, steps=2)
    (row,) = [line for line in text.splitlines() if line.startswith("  shares Mul+Max")]
    assert row.split()[2] == "2" and row.endswith("%")
    assert "machine code beside ATen" in text


def test_a_program_is_explained_with_node_lists_and_llvms_text(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    record = tmp_path / "steps.json"
    environment = {**os.environ, "FLOWSTONE_NATIVE": "1", "PYTHONPATH": str(SOURCE)}
    arguments = ["explain", "--code", "--json", str(record), str(program)]
    command = [sys.executable, "-m", "flowstone", *arguments]
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert "shares as machine code" in text and "define ptr @new(ptr %self" in text
    (kernel,) = json.loads(record.read_text())["explanations"][0]["native_kernels"]
    assert kernel["members"] == ["doubled", "shares"] and kernel["cluster"].startswith("float32[20,30]")
    assert kernel["time_ms"] > 0 and kernel["aten_time_ms"] > 0
    assert "define internal void @run" in kernel["llvm"]


@pytest.mark.parametrize("dims", [[None, 30], [None, None, 30], [None, 2, None, 30]], ids=str)
def test_kernels_of_open_sizes_are_timed_for_some(dims: list[int | None]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, dims)
        y = tf.reduce_sum(tf.tanh(x) * 2.0 + tf.reduce_max(x, -1, keepdims=True), -1)
        plan = session.planner.plan(FetchStructure(session.graph, y), [x], None)
        (report,) = native_kernels(plan.subgraph.nodes, 1)
    assert report.ms > 0 and report.aten_ms > 0 and "float32[-1,30]" in str(report.cluster)


def test_plans_without_clusters_have_no_such_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 0)
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = program()
        assert "machine code" not in session.explain(y, {x: np.ones((20, 30))}, measure=True, steps=2)
    assert native_kernels(prune([y], [], [x]).nodes, 5) == [] and kernel_table([]) == ""
