"""Measures which kernels are fastest on this machine; later plans use the result.

    flowstone calibrate [--output FILE]

Takes a minute or two, during which nothing else should compute. The profile is kept for this processor, build
of torch and number of threads. With --output it is written to a file instead, for FLOWSTONE_MACHINE. Results
of programs do not depend on it, except for rounding. See docs/machine.md.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from flowstone.framework import machine
from flowstone.tools.calibration import calibrated

NAME = "calibrate"
SUMMARY = "measure which kernels are fastest on this machine"


def declare(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `flowstone calibrate`."""
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the profile there instead")


def execute(options: argparse.Namespace) -> int:
    """Measures, reports and writes the profile; returns the exit status."""
    kind, path = machine.processor(), options.output or machine.calibration_file()
    print(f"{kind}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    print("number                          from size       with / without the choice; * taken from there on")
    start = time.perf_counter()
    profile = calibrated(f"calibrated for {kind}", lambda line: print(line, flush=True))
    machine.save(profile, path)
    print(f"{time.perf_counter() - start:.0f} s; written to {path}")
    return 0
