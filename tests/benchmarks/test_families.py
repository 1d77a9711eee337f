"""Families of models: every workload has its scripts, and Flowstone's runs and learns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ONE_OF_EACH = {  # family: a small case, the metrics
    "clustering": ("k-means 16 points", ["loop"]),
    "generative": ("DCGAN 32x32x3", ["step", "images"]),
    "q_network": ("one layer of 24, tanh, SGD", ["step", "action"]),
    "wide_and_deep": ("2 columns, one layer", ["step", "predict"]),
    "scalar_ops": ("curved", ["run", "with gradients"]),
    "recurrent_cells": ("normalised 32, batch 1", ["step", "forward"]),
}


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import compare

    return compare


def test_every_family_is_measured_on_all_implementations(compare) -> None:  # type: ignore[no-untyped-def]
    assert sorted(compare.FAMILIES) == sorted(ONE_OF_EACH)
    for workload, stem in compare.SCRIPTS.items():
        if stem in compare.FAMILIES:
            scripts = {compare.script(workload, name).name for name in compare.INTERPRETERS}
            assert scripts == {f"{stem}_{suffix}.py" for suffix in ("tf1", "torch", "jax")}
            assert all((BENCHMARKS / "workloads" / name).exists() for name in scripts)
            assert any(workload in names.split(",") for names in compare.RESULTS.values())


@pytest.mark.parametrize("family", ONE_OF_EACH)
def test_flowstone_learns(family: str) -> None:
    case, metrics = ONE_OF_EACH[family]
    known = {
        "WORKLOAD": f"{family}_neighbours",
        "BENCHMARK_CASE": case,
        "IMPLEMENTATION": "flowstone",
        "BENCHMARK_SECONDS": "0.01",
        "VARIANT": "",
    }
    program = BENCHMARKS / "workloads" / f"{family}_tf1.py"
    done = subprocess.run(
        [sys.executable, str(program)], env=os.environ | known, capture_output=True, text=True, check=True
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [line["metric"] for line in found] == [f"{metric}, {case}" for metric in metrics]
    assert all(line["value"] > 0 for line in found)
    (losses,) = [line for line in done.stdout.splitlines() if line.startswith("losses")]
    numbers = [float(word.strip("[],")) for word in losses.removeprefix(f"losses, {case}").split()]
    if family not in ("clustering", "scalar_ops", "generative"):
        assert numbers[0] > numbers[1] > numbers[2] > 0
