"""Records, events and an Example that TensorFlow wrote are read; what ours writes passes the same checks."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def goldens() -> Any:
    """The script that makes them."""
    sys.path.insert(0, str(GOLDEN))
    try:
        import make_record_goldens
    finally:
        sys.path.remove(str(GOLDEN))
    return make_record_goldens


def test_tensorflows_are_read(goldens: Any) -> None:
    goldens.check_records(tf, goldens.FOLDER)
    goldens.check_events(list(tf.train.summary_iterator(goldens.FOLDER / "events")))


def test_ours_are_the_same(goldens: Any, tmp_path: Path) -> None:
    goldens.ours(tmp_path)
    goldens.check_records(tf, tmp_path)
    (path,) = tmp_path.glob("events.out.tfevents.*")
    goldens.check_events(list(tf.train.summary_iterator(path)))
    assert (tmp_path / "records").read_bytes() == (goldens.FOLDER / "records").read_bytes()
    # Everything that names a time or the host is in the first event, and both versions in what follows it.
    assert path.read_bytes().endswith((goldens.FOLDER / "events").read_bytes()[-100:])


def test_which_releases_read_ours(goldens: Any) -> None:
    assert json.loads(goldens.NOTE.read_text()) == ["1.15.5", "2.21.0"]
