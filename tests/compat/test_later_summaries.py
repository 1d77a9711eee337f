"""`tf.compat.v2.summary` in graphs, with what TensorFlow 1.15 writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.compat.later_summary_programs import written

import flowstone as tf
from flowstone.compat import version_two

ANSWERS = json.loads((Path(__file__).parents[1] / "golden" / "later_summaries.json").read_text())
SUMMARY: Any = version_two.namespace().summary  # type: ignore[union-attr]


def test_the_files_are_those_of_tensorflow(tmp_path: Path) -> None:
    found = json.loads(json.dumps(written(tf, SUMMARY, str(tmp_path))))
    for name, (results, events) in ANSWERS.items():
        assert found[name][0] == results
        for own, wanted in zip(found[name][1], events, strict=True):
            if wanted[2:3] == ["images"]:  # of another compressor
                assert own[6][:2] == wanted[6][:2] and len(own[6]) == len(wanted[6])
                own, wanted = own[:6], wanted[:6]
            assert own[:6] == wanted[:6]
            if wanted != "graph" and wanted[2] == "histograms":
                assert own[6] == pytest.approx(wanted[6])
            else:
                assert own[6:] == wanted[6:]


def test_writers(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with SUMMARY.create_noop_writer().as_default():
            assert not session.run(SUMMARY.scalar("x", 1.0, step=1))
        with SUMMARY.create_file_writer(str(tmp_path)).as_default():
            with pytest.raises(ValueError, match=r"shape.*\(2,\)|scalar"):
                SUMMARY.scalar("x", [1.0, 2.0], step=1)
            with pytest.raises(ValueError, match="encoding"):
                SUMMARY.audio("x", [[[1.0]]], 8000, step=1, encoding="mp3")
            with pytest.raises(tf.errors.NotFoundError, match="does not exist"):
                session.run(SUMMARY.scalar("x", 1.0, step=1))
    with pytest.raises(RuntimeError, match="No default"):
        tf.summary.initialize()
