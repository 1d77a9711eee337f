"""`flowstone calibrate`: thresholds from comparisons, every choice's programs, and the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.machine import load
from flowstone.framework.machine_profiles import Profile, generic
from flowstone.tools import calibrate, calibration
from flowstone.tools.calibration import Comparison, first_taken
from flowstone.tools.calibration_programs import CHOICES, Choice, Rung
from flowstone.tools.command_line import main


def comparisons(*ratios: float) -> list[Comparison]:
    """By the time without the choice over that with it."""
    return [Comparison(i, 1.0, ratio) for i, ratio in enumerate(ratios)]


@pytest.mark.parametrize(
    ("ratios", "first"),
    [
        ((0.5, 0.9, 1.5, 2.0), 2),
        ((0.5, 0.9, 1.5, 0.98, 2.0), 2),  # one bad measurement between good ones
        ((1.2, 1.3), 0),
        ((0.5, 0.9), 2),
        ((1.0, 1.01), 2),  # too little to be sure of
        ((), 0),
    ],
)
def test_the_threshold_that_gains_most(ratios: Any, first: int) -> None:
    assert first_taken(comparisons(*ratios)) == first


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.name)
def test_each_choice_runs_both_ways(choice: Choice) -> None:
    """The programs plan and run, and the fields are a profile's."""
    found = choice.chosen(choice.rungs[0].threshold)
    assert set(found) <= set(Profile._fields) and set(choice.never) <= set(Profile._fields)
    for fields in (choice.always, choice.never):
        with calibration.planning(generic()._replace(**fields)), tf.Graph().as_default() as graph:
            step = choice.rungs[0].program()
            with tf.Session(graph=graph) as session:
                session.run(tf.global_variables_initializer())
                assert session.run(step) is None


@pytest.mark.needs_onednn
def test_each_choice_changes_the_plan() -> None:
    # Code does not show how many threads there are, nor which of two kernels of one name it calls.
    unseen = {"team_alone", "team_by_element", "team_among_others", "band_channels", "sliding_maxima"}
    unseen |= {"tanh_by_exponentials", "tanh_by_onednn"}
    unchanged = []
    for choice in CHOICES:
        if choice.name in unseen:
            continue
        plans = set()
        for fields in (choice.always, choice.never):
            with calibration.planning(generic()._replace(**fields)), tf.Graph().as_default() as graph:
                step = choice.rungs[-1].program()
                with tf.Session(graph=graph) as session:
                    plans.add(session.explain(step))
        if len(plans) < 2:
            unchanged.append(choice.name)
    assert unchanged == []


def test_rungs_rise_or_fall() -> None:
    for choice in CHOICES:
        sizes = [rung.threshold for rung in choice.rungs]
        assert sizes in (sorted(set(sizes)), sorted(set(sizes), reverse=True))


@pytest.mark.needs_onednn
def test_the_command_keeps_what_it_found(monkeypatch: Any, tmp_path: Path, capsys: Any) -> None:
    tried = []

    def compare(rung: Rung, taken: Profile, left: Profile) -> Comparison:
        tried.append(rung)
        return Comparison(rung.threshold, 1.0, 2.0)

    monkeypatch.setattr(calibration, "compare", compare)
    path = tmp_path / "mine.json"
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", "--output", str(path)])
    assert ended.value.code == 0
    text, profile = capsys.readouterr().out, load(path)
    assert str(path) in text and "block_by_onednn" in text
    assert len(tried) >= len(CHOICES) - 3 and profile.call_us > 0 and profile.tanh_by_exponentials == 3_000
    assert profile.name.startswith("calibrated for ") and profile.narrow_columns == 32
    assert calibrate.SUMMARY in _help(capsys)


def _help(capsys: Any) -> str:
    with pytest.raises(SystemExit):
        main(["--help"])
    return capsys.readouterr().out
