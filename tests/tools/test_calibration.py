"""`flowstone calibrate`: thresholds from comparisons, every choice's programs, and the command."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine import load
from flowstone.framework.machine.machine_profiles import Profile, generic
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
        ((0.2, 0.4, 10.0, 8.0, 0.5, 0.3, 0.5), 7),  # a team of threads that waited twice
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


def test_a_cache_that_a_whole_processor_shares_counts_in_part(monkeypatch: Any, tmp_path: Path) -> None:
    """A hypervisor tells its guest of 480 MiB, which a hundred other cores use as well."""

    def caches(*sizes: str) -> dict[str, Any]:
        for i, size in enumerate(sizes):
            (tmp_path / f"index{i}").mkdir(exist_ok=True)
            (tmp_path / f"index{i}" / "size").write_text(size + "\n")
        monkeypatch.setattr(calibration, "_CACHES", tmp_path)
        return calibration._caches()

    assert caches("48K", "2048K", "480M") == {"core_cache": 4 << 20, "all_caches": 32 << 20}
    assert caches("32K", "1024K", "16384K") == {"core_cache": 2 << 20, "all_caches": 16 << 20}


@pytest.mark.parametrize(("others", "share"), [(0.0, 0.0), (1.0, 0.25)])
def test_what_other_processes_took(monkeypatch: Any, others: float, share: float) -> None:
    """Of two processors in two seconds, of which this process took three."""
    monkeypatch.setattr(calibration, "processor_times", lambda: (13.0 + others, 8.0))
    monkeypatch.setattr(calibration, "_processors", lambda: {0, 1})
    assert calibration.others_share((10.0, 5.0), 2.0) == share


def test_times_of_processors_include_this_process() -> None:
    before = calibration.processor_times()
    while time.process_time() - before[1] < 0.05:
        pass
    after = calibration.processor_times()
    assert after == (0.0, 0.0) or (after[0] > before[0] and after[1] >= before[1] + 0.05)


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
    assert (
        profile.name.startswith("calibrated for ")
        and profile.narrow_columns == machine.of_this_processor().narrow_columns
    )
    assert calibrate.SUMMARY in _help(capsys)


def _help(capsys: Any) -> str:
    with pytest.raises(SystemExit):
        main(["--help"])
    return capsys.readouterr().out
