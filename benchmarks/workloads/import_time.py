"""Seconds to import a library in a new process, files cached."""

import os
import statistics
import subprocess
import sys

import shapes  # noqa: F401 - makes `measuring` importable

from measuring import report

MODULE = {"tensorflow": "tensorflow.compat.v1"}.get(
    os.environ["IMPLEMENTATION"], os.environ["IMPLEMENTATION"]
)
CODE = f"import time; s = time.perf_counter(); import {MODULE}; print(time.perf_counter() - s)"
times = [
    float(subprocess.run([sys.executable, "-c", CODE], capture_output=True, check=True).stdout)
    for _ in range(8)
]
report("import", statistics.median(times[1:]), "s")
