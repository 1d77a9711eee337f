"""The same program computes the same bits in every process on a machine, with its machine code in the cache
or not, and whatever the hashes of its strings are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("seeded_programs.py")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What processes print: with an empty cache, with what that left there, and with an empty one again, in
    which the thread that compiles comes late."""
    found = []
    first, second = (tmp_path_factory.mktemp("cache") for _ in range(2))
    for cache, hashes, late in ((first, "1", ""), (first, "2", ""), (second, "3", "late")):
        environment = dict(os.environ, FLOWSTONE_NATIVE="1", XDG_CACHE_HOME=str(cache), PYTHONHASHSEED=hashes)
        command = [sys.executable, str(PROGRAMS), late]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert not done.stderr
        found.append(done.stdout)
    return found


def test_losses_are_the_same_in_every_process(answers: list[str]) -> None:
    cold, warm, late = ([line.split() for line in text.splitlines()] for text in answers)
    assert [words[0] for words in cold] == ["perceptron", "convolution", "recurrent", "loop", "embedding"]
    assert cold == warm
    assert cold == late


def test_predictions_are_the_same_in_every_run(answers: list[str]) -> None:
    for text in answers:
        for line in text.splitlines():
            name, different, *losses, _ = line.split()
            assert different == "1", name
            assert len(set(losses)) > 1, name
