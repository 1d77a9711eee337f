"""The README's figures are those of the committed results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.readme_table import README, ROWS, Row, cell, medians, replaced, table


def test_the_readme_has_the_table_of_the_committed_results() -> None:
    made = table(medians())
    text = README.read_text(encoding="utf-8")
    assert made in text, "python benchmarks/readme_table.py --write"
    assert replaced(text, made) == text


def test_flowstones_figures_are_all_there() -> None:
    found = medians()
    missing = [f for row in ROWS for f in row.figures if (*f, "flowstone") not in found]
    assert not missing


def test_cells(tmp_path: Path) -> None:
    figures = {
        "a|x|ms|torch": [3.0, 1.0, 2.04],
        "a|y|ms|torch": [234.4],
        "a|z|s|torch": [0.2],
        "b|x|us/example|jax": [0.0351],
    }
    (tmp_path / "one.json").write_text(json.dumps({"figures": figures}))
    (tmp_path / "two.json").write_text(json.dumps({"machine": "none"}))
    found = medians(tmp_path)
    both = Row("", (("a", "x"), ("a", "y")), {"torch": "noted"})
    assert cell(both, "torch", found) == "2.0 / 234 ms (noted)"
    assert cell(Row("", (("a", "x"), ("a", "z"), ("a", "w"))), "torch", found) == "2.0 ms / 0.20 s / –"
    assert cell(Row("", (("b", "x"),)), "jax", found) == "0.035 µs"
    assert cell(both, "jax", found) == "–"


def test_a_readme_without_a_table() -> None:
    with pytest.raises(ValueError, match="no table"):
        replaced("# Flowstone\n", "| a |")
