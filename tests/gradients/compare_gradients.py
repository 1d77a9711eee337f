"""Random programs' gradients, of flowstone and of TensorFlow, compared.

`python tests/gradients/compare_gradients.py PYTHON --first 0 --count 5000` takes the Python that has
TensorFlow 2 and prints the seeds whose answers differ. Three kinds of them are TensorFlow's: in a loop's
gradient it merges the indices of rows of both branches, slices of a loop without iterations have no shape
(most such steps fail), and it refuses second derivatives that only zeros tie to a loop's gradient.

- ``only flowstone is right``: flowstone's gradients, which TensorFlow refuses or has other numbers for, are
  the difference quotients (those of the first call, if flowstone refuses the second);
- ``TensorFlow fails``: the same, where there are no quotients to prove it (`Program.exact`);
- ``static shapes known to one``: nothing else differs. TensorFlow says of a loop variable's gradient that it
  has the shape of the loop's result in all iterations, which need not be; flowstone knows the shape of a sum
  over iterations that starts with zeros of a known shape.

Ends with the number of seeds of each kind; the exit status is 1 if there are other differences.
`--answer PACKAGE` answers only, a line of JSON a seed.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

import numpy as np  # noqa: E402

import gradient_programs  # noqa: E402

PART = re.compile(r"([a-z0-9]+)(<unknown>|\[[^]]*\])")  # a type and its static shape


def package(name: str) -> tuple[Any, Any]:
    """The module ``tf``, and the configuration of its sessions."""
    if name == "flowstone":
        import flowstone

        return flowstone, None
    os.environ.update(CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3")
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.FATAL)
    options = tf.GraphOptions(optimizer_options=tf.OptimizerOptions(opt_level=-1))
    options.rewrite_options.disable_meta_optimizer = True
    return tf, tf.ConfigProto(graph_options=options, intra_op_parallelism_threads=1)


def print_answers(name: str, seeds: range) -> None:
    """A line of JSON a seed."""
    tf, config = package(name)
    for seed in seeds:
        print(json.dumps(gradient_programs.answer(tf, seed, config)), flush=True)


def agree(found: Any, expected: Any) -> bool:
    """Whether two answers are the same, but for the last digits."""
    return _alike(found, expected, lambda x, y: x == y)


def _alike(found: Any, expected: Any, facts_agree: Callable[[Any, Any], bool]) -> bool:
    if isinstance(found, str) or isinstance(expected, str) or len(found) != len(expected):
        return bool(found == expected)
    for x, y in zip(found, expected):
        if (x is None) != (y is None):
            return False
        if x is not None and not (facts_agree(x[:2], y[:2]) and _close(x[2], y[2])):
            return False
    return True


def _close(x: Any, y: Any) -> bool:
    return len(x) == len(y) and bool(np.allclose(x, y, rtol=1e-7, atol=1e-9))


def _known_to_one(x: Any, y: Any) -> bool:
    """Whether gradients are of the same kind and type, and one's static shapes have what the other's leave
    open.
    """
    if x[0] != y[0]:
        return False
    parts = [PART.findall(z[1]) for z in (x, y)]
    return all(a == b and _fit(c, d) for (a, c), (b, d) in zip(*parts, strict=True))


def _fit(shape: str, other: str) -> bool:
    if "<unknown>" in (shape, other):
        return True
    dims, others = (z[1:-1].split(", ") for z in (shape, other))
    return len(dims) == len(others) and all(a == b or "?" in (a, b) for a, b in zip(dims, others))


def kind_of_difference(tf: Any, seed: int, found: Any, expected: Any) -> str:
    """Whose mistake a difference is."""
    fails, again = isinstance(expected, str), True
    if isinstance(found, str):
        again = not found.endswith(gradient_programs.AGAIN)
        if again or not fails or expected.endswith(gradient_programs.AGAIN):
            return "different"
    elif _alike(found, expected, _known_to_one):
        return "static shapes known to one"
    elif not (fails or _differ_in_numbers_alone(found, expected)):
        return "different"
    quotients = gradient_programs.quotients(tf, seed, again)
    if quotients is None:
        return "TensorFlow fails" if fails else "different"
    alike = (x.shape == y.shape and np.allclose(x, y, rtol=1e-4, atol=1e-6) for x, y in zip(*quotients))
    return "only flowstone is right" if all(alike) else "different"


def _differ_in_numbers_alone(found: Any, expected: Any) -> bool:
    facts = [[y and y[:2] for y in x] for x in (found, expected)]
    return facts[0] == facts[1]


def compare(python: str, seeds: range) -> collections.Counter[str]:
    """Prints the differences; the number of seeds of each kind."""
    tf, config = package("flowstone")
    command = [python, __file__, "-", "--answer", "tensorflow"]
    command += ["--first", str(seeds.start), "--count", str(len(seeds))]
    counts: collections.Counter[str] = collections.Counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as other:
        assert other.stdout is not None
        for seed, line in zip(seeds, other.stdout):
            expected, found = json.loads(line), gradient_programs.answer(tf, seed, config)
            kind = "refused alike" if isinstance(found, str) else "alike"
            if not agree(found, expected):
                kind = kind_of_difference(tf, seed, found, expected)
                print(f"{kind}: seed {seed}\n  flowstone  {found}\n  TensorFlow {expected}", flush=True)
            counts[kind] += 1
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--answer")
    chosen = parser.parse_args()
    seeds = range(chosen.first, chosen.first + chosen.count)
    if chosen.answer:
        print_answers(chosen.answer, seeds)
        return 0
    counts = compare(chosen.python, seeds)
    print(
        f"seeds {seeds.start} to {seeds.stop - 1}: "
        + ", ".join(f"{n} {k}" for k, n in sorted(counts.items()))
    )
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
