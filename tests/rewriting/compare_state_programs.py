"""Runs the programs of `state_patterns.py` with Flowstone and with another way to compute them, and compares.

    python tests/rewriting/compare_state_programs.py 0 1000                        # seeds; against TensorFlow
    python tests/rewriting/compare_state_programs.py 0 1000 --against interpreter  # without any pass
    python tests/rewriting/compare_state_programs.py 17 18 --show                  # prints the program first

Against TensorFlow, `$TF_PYTHON` names a Python that has it; it runs beside, with its graph optimisers off
(they move reads of variables themselves). ``--check`` sets FLOWSTONE_CHECK=1. ``--without a,b`` switches
passes off. ``--low`` lowers the sizes at which passes think that they pay. Of each program that differs the
smallest is printed that still does (``--whole`` leaves that out), with both answers and the passes without
any one of which the difference goes. The exit status is 1 if there is any.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from state_patterns import program
from state_programs import Program, answers, as_data, from_data
from state_shrinking import smallest

MOST_SECONDS = 30
DIES = "the process dies"
_TOO_LONG = f"more than {MOST_SECONDS} s"
Answers = list[list[np.ndarray]] | str


# ---- TensorFlow


def serve() -> None:
    """Answers programs from the standard input, a line each, with arrays: a length and a NumPy file."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    tf = prepared()
    for line in sys.stdin:
        data = packed(computed(tf, from_data(json.loads(line)), plain_config(tf)))
        out.write(len(data).to_bytes(8, "little") + data)
        out.flush()


def prepared() -> Any:
    """TensorFlow as it was in version 1."""
    os.environ.update(
        CUDA_VISIBLE_DEVICES="",
        TF_CPP_MIN_LOG_LEVEL="3",
        TF_USE_LEGACY_KERAS="1",
        TF_ENABLE_ONEDNN_OPTS="0",  # whose fusion of convolutions and biases forgets control edges
    )
    import tensorflow.compat.v1 as tf

    tf.logging.set_verbosity(tf.logging.FATAL)
    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    return tf


def plain_config(tf: Any) -> Any:
    """TensorFlow's, without its own rewriting, on two CPU devices."""
    config = tf.ConfigProto(
        device_count={"CPU": 2}, allow_soft_placement=True, intra_op_parallelism_threads=1
    )
    config.operation_timeout_in_ms = 1000 * MOST_SECONDS
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


def computed(tf: Any, wanted: Program, config: Any) -> Answers:
    """The answers, or the name of the error."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(MOST_SECONDS)
    try:
        return answers(tf, wanted, config)
    except Exception as error:
        if os.environ.get("SHOW_ERRORS"):
            import traceback

            traceback.print_exc()
        return f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        signal.alarm(0)


def _too_long(*_: Any) -> None:
    raise TimeoutError(_TOO_LONG)


def packed(found: Answers) -> bytes:
    """As a NumPy file."""
    buffer = io.BytesIO()
    if isinstance(found, str):
        np.savez(buffer, error=np.array(found))
    else:
        np.savez(buffer, **{f"{i}.{j}": x for i, run in enumerate(found) for j, x in enumerate(run)})
    return buffer.getvalue()


def unpacked(data: bytes) -> Answers:
    """What `packed` packed."""
    with np.load(io.BytesIO(data)) as arrays:
        if "error" in arrays:
            return str(arrays["error"])
        found: list[list[np.ndarray]] = []
        for key in arrays.files:
            if int(key.split(".")[0]) == len(found):
                found.append([])
            found[-1].append(arrays[key])
        return found


class TensorFlow:
    """The other process."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        command = [os.environ["TF_PYTHON"], __file__, "--serve"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def __call__(self, wanted: Program) -> Answers:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write((json.dumps(as_data(wanted)) + "\n").encode())
        self.process.stdin.flush()
        size = self.process.stdout.read(8)
        if not size:
            self._start()
            return DIES
        return unpacked(self.process.stdout.read(int.from_bytes(size, "little")))


# ---- Flowstone


class Flowstone:
    """With all passes but `disabled`, and those `enabled` that are off by default; `seen`: those that changed
    something."""

    def __init__(self, disabled: frozenset[str] = frozenset(), enabled: frozenset[str] = frozenset()) -> None:
        self.disabled, self.enabled = disabled, enabled
        self.seen: set[str] = set()

    def __call__(self, wanted: Program) -> Answers:
        import flowstone as tf
        from state_sessions import passes

        devices = {"CPU": 2} if any(s.device for s in wanted.statements) else {}
        config = tf.ConfigProto(device_count=devices, allow_soft_placement=True)
        with passes(self.disabled, self.enabled, self.seen):
            return computed(tf, wanted, config)


def difference(found: Answers, expected: Answers, tolerance: float = 2e-4) -> str:
    """In words; empty if there is none."""
    if isinstance(found, str) or isinstance(expected, str):
        if _TOO_LONG in str(found) and _TOO_LONG in str(expected):
            return ""
        same = str(found).split(":")[0] == str(expected).split(":")[0] and type(found) is type(expected)
        return "" if same else f"{_short(found)}\n  instead of {_short(expected)}"
    for i, (values, wanted) in enumerate(zip(found, expected)):
        for j, (a, b) in enumerate(zip(values, wanted)):
            scale = tolerance * (1 + np.abs(b[np.isfinite(b)]).max(initial=0))
            if a.shape != b.shape or not np.allclose(a, b, tolerance, scale, equal_nan=True):
                return f"run {i}, value {j}: {a.ravel().tolist()}\n  instead of {b.ravel().tolist()}"
    return ""


def difference_that_counts(wanted: Program, found: Answers, expected: Answers, ours: Any, other: Any) -> str:
    """The same, but for what rounding explains: in 32 bits, numbers that are about as far from those in 64
    bits as the `other`'s are; and where numbers overflow, those in 64 bits are compared instead. Of a program
    that TensorFlow cannot place on two devices its answer on one is taken."""
    if isinstance(expected, str) and "Cannot place the graph" in expected:
        expected = other(without_devices(wanted))
    words = difference(found, expected)
    if not words or isinstance(found, str) or isinstance(expected, str) or wanted.dtype != "float32":
        return words
    wider = dataclasses.replace(wanted, dtype="float64")
    exact = other(wider)
    if isinstance(exact, str):  # an op that has no kernel for 64 bits
        return difference(found, expected, tolerance=1e-2)
    if not all(np.isfinite(x).all() for run in (*found, *expected) for x in run):
        return difference(ours(wider), exact)
    for values, others, exactly in zip(found, expected, exact):
        for a, b, c in zip(values, others, exactly):
            if _error(a, c) > 10 * _error(b, c) + 1e-4:
                return words
    return ""


def _error(x: np.ndarray, exact: np.ndarray) -> float:
    """The largest, as a part of the largest number."""
    known = np.isfinite(x) & np.isfinite(exact)
    return float(np.abs(x - exact)[known].max(initial=0) / (1 + np.abs(exact[known]).max(initial=0)))


def without_devices(wanted: Program) -> Program:
    """The same program on one device."""
    statements = [dataclasses.replace(each, device="") for each in wanted.statements]
    return dataclasses.replace(wanted, statements=tuple(statements))


def _short(found: Answers) -> str:
    return found if isinstance(found, str) else "numbers"


# ---- the command


def _without_passes() -> Flowstone:
    from flowstone.lowering.passes import NAMES

    return Flowstone(NAMES)


def suspects(wanted: Program, expected: Answers) -> list[str]:
    """The passes without any one of which the difference goes."""
    from flowstone.lowering.passes import NAMES

    with_all = Flowstone()
    if "more than" in str(with_all(wanted)):
        return ["a loop without end"]

    def differs(disabled: frozenset[str]) -> bool:
        return bool(difference(Flowstone(disabled)(wanted), expected))

    found = [name for name in sorted(with_all.seen) if not differs(frozenset([name]))]
    if found:
        return found
    return ["none, the plain graph differs"] if differs(NAMES) else ["several"]


def main() -> int:
    options = _options()
    if options.check:
        os.environ["FLOWSTONE_CHECK"] = "1"
    if options.low:
        from state_sessions import lower_sizes

        lower_sizes(setattr)
    found = Flowstone(frozenset(options.without.split(",")))
    other = TensorFlow() if options.against == "tensorflow" else _without_passes()
    start, count, compared = time.monotonic(), 0, 0
    for seed in range(options.first, options.last):
        wanted = program(seed)
        if options.show:
            print(f"--- seed {seed}\n{wanted}", flush=True)
        if wanted.is_alone and options.against == "tensorflow":
            continue
        expected = other(wanted)
        if expected == DIES:
            print(f"--- seed {seed}: TensorFlow's process dies")
            continue
        compared += 1
        words = difference_that_counts(wanted, found(wanted), expected, found, other)
        if isinstance(expected, str):
            print(f"--- seed {seed} is refused: {expected}")
        if words:
            count += 1
            print(f"--- seed {seed} differs: {words}", flush=True)
            for line in _explained(wanted, expected, None if options.whole else (found, other)):
                print(line, flush=True)
    seconds = time.monotonic() - start
    print(f"passes that changed something: {', '.join(sorted(found.seen))}")
    seeds = f"seeds {options.first} to {options.last - 1}"
    print(f"{seeds}: {count} of {compared} programs differ ({seconds:.0f} s)")
    return int(count > 0)


def _explained(wanted: Program, expected: Answers, both: Any) -> Iterator[str]:
    if both is not None:
        found, other = both
        sort = _sort(found(wanted), expected)
        wanted = smallest(wanted, lambda each: _sort(found(each), other(each)) == sort)
        expected = other(wanted)
        yield f"{wanted}\n=> {difference(found(wanted), expected)}"
    yield f"passes: {', '.join(suspects(wanted, expected))}"


def _sort(found: Answers, expected: Answers) -> tuple[str, str, bool]:
    """Of a difference: which errors, if any."""
    errors = [each.split(":")[0] if isinstance(each, str) else "" for each in (found, expected)]
    return errors[0], errors[1], bool(difference(found, expected))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--against", choices=["tensorflow", "interpreter"], default="tensorflow")
    parser.add_argument("--without", default="")
    for flag in ("--check", "--low", "--show", "--whole"):
        parser.add_argument(flag, action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve()
    else:
        raise SystemExit(main())
