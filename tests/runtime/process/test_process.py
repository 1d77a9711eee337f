"""What is set for the whole process, when it is left alone, and how it is undone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# A program that says how long OpenMP's threads spin (OpenMP does, itself), what of that its children would
# inherit, whether objects are frozen, and whether a freed buffer of 64 MB stays with the process: at first,
# with a session, and after each call.
PROGRAM = """
import gc, os, sys
{first}
import flowstone as tf
import torch

def stays():
    held = resident()
    buffer = torch.ones(1 << 24)
    del buffer
    return resident() - held > 32e6

def resident():
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

print("inherited", os.environ.get("GOMP_SPINCOUNT"))
print("frozen", gc.get_freeze_count() > 0)
print("young", gc.get_threshold()[0])
print("stays", stays())
tf.Session()
print("stays", stays())
tf.config.tune_process(False)
print("frozen", gc.get_freeze_count() > 0)
print("young", gc.get_threshold()[0])
tf.Session()
print("stays", stays())
print("tuned", tf.config.tune_process(True))
print("stays", stays())
"""
INITIAL = "2000" if sys.version_info >= (3, 13) else "700"
NOT_GLIBC = not (sys.platform == "linux" and os.confstr("CS_GNU_LIBC_VERSION"))
pytestmark = pytest.mark.skipif(NOT_GLIBC, reason="the allocator's settings are glibc's")


def said(first: str = "", **environment: str) -> dict[str, list[str]]:
    """What the program prints after `first`, by its first words; `spins`: what OpenMP says."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(first=first)],
        env={**own, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_DISPLAY_ENV": "verbose", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        word, value = line.split()
        found.setdefault(word, []).append(value)
    spins = [line.split("'")[1] for line in done.stderr.splitlines() if "GOMP_SPINCOUNT =" in line]
    return {**found, "spins": spins}


def test_what_is_set_and_undone() -> None:
    assert said() == {
        "spins": ["10000"],
        "inherited": ["None"],
        "frozen": ["True", "False"],
        "young": ["10000", INITIAL],
        "stays": ["False", "True", "False", "True"],
        "tuned": ["True"],
    }


def test_what_the_environment_has_set_is_left_alone() -> None:
    assert said(GOMP_SPINCOUNT="77", MALLOC_MMAP_THRESHOLD_="1000000") == {
        "spins": ["77"],
        "inherited": ["77"],
        "frozen": ["True", "False"],
        "young": ["10000", INITIAL],
        "stays": ["False"] * 4,
        "tuned": ["False"],
    }


def test_what_the_program_has_set_is_left_alone() -> None:
    own = "import torch; gc.freeze(); gc.set_threshold(600)"
    found = said(own, GLIBC_TUNABLES="glibc.malloc.mmap_threshold=1000000")
    assert found["spins"] == ["300000"] and found["inherited"] == ["None"]
    assert found["frozen"] == ["True", "True"] and found["young"] == ["600", "600"]
    assert found["stays"] == ["False"] * 4


def test_the_switch_of_the_environment() -> None:
    found = said(FLOWSTONE_TUNE_PROCESS="0", OMP_NUM_THREADS="2")
    assert found["spins"] == ["300000"]
    assert found["frozen"] == ["False", "False"] and found["young"] == [INITIAL, INITIAL]
    assert found["stays"] == ["False", "False", "False", "True"]
