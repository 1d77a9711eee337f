"""Measures which kernels are fastest on this machine; later plans use the result.

    flowstone calibrate [--output FILE]

Takes a minute or two, during which nothing else should compute; a line says so if others did. The profile is
kept for this processor, build of torch and number of threads. With --output it is written to a file instead,
for FLOWSTONE_MACHINE. Results of programs do not depend on it, except for rounding. See docs/machine.md.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from flowstone.framework.machine import machine
from flowstone.tools.calibration import calibrated, others_share, processor_times

NAME = "calibrate"
SUMMARY = "measure which kernels are fastest on this machine"
_DISTURBED = 0.1  # of the processors, taken by other processes


def declare(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `flowstone calibrate`."""
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the profile there instead")


def execute(options: argparse.Namespace) -> int:
    """Measures, reports and writes the profile; returns the exit status."""
    kind, path = machine.processor(), options.output or machine.calibration_file()
    print(f"{kind}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    print("number                          from size       with / without the choice; * taken from there on")
    start, before = time.perf_counter(), processor_times()
    profile = calibrated(f"calibrated for {kind}", lambda line: print(line, flush=True))
    machine.save(profile, path)
    seconds = time.perf_counter() - start
    print(f"{seconds:.0f} s; written to {path}")
    share = others_share(before, seconds)
    if share > _DISTURBED:
        print(f"other processes took {share:.0%} of the processors meanwhile: measure again when they rest")
    return 0
