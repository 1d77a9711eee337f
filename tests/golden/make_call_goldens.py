"""Ask TensorFlow what the calls of `tests/golden/calls.jsonl` give.

Run with a Python that has TensorFlow 2 (the file came from 2.21): `python tests/golden/make_call_goldens.py`.
Each line is a call, as `tests/ops/random_calls.py` writes it, with its answer; all are answered anew. Given
numbers, it adds the random calls of these seeds: `python tests/golden/make_call_goldens.py 17 4711`. Calls
whose answer is long are left out, and those that TensorFlow has no kernel for.
"""

from __future__ import annotations

import json
import pathlib
import sys

PATH = pathlib.Path(__file__).parent / "calls.jsonl"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))

import compare_calls  # noqa: E402
import random_calls  # noqa: E402
from random_calls import Call  # noqa: E402

LONGEST = 900  # characters of a line


def main() -> None:
    """Writes the file."""
    calls = [random_calls.random_call(int(seed)) for seed in sys.argv[1:]]
    if PATH.exists():
        calls += [Call.from_json(json.loads(line)) for line in PATH.read_text().splitlines()]
    tf, op = compare_calls.package("tensorflow")
    lines = set()
    for call in calls:
        answer = random_calls.without_messages(random_calls.answer(tf, op, call))
        line = json.dumps(call.to_json() | {"answer": answer}, separators=(",", ":"))
        if len(line) <= LONGEST and random_calls.NO_KERNEL not in line:
            lines.add(line)
    PATH.write_text("\n".join(sorted(lines)) + "\n")
    print(f"{len(lines)} calls, {PATH.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
