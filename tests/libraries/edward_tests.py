"""Edward 1.3.5 over flowstone: `python tests/libraries/edward_tests.py`.

Edward's archive has no tests. The mean of ten numbers is inferred by each kind of inference, and the inferred
one must be near the posterior's mean, which is known.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from environment import Library, set_up

PACKAGES = ("progressbar2", "six", "observations", "pandas", "requests")
LIBRARY = Library("edward", "edward==1.3.5", tests=(), expected=6, packages=PACKAGES)
PROGRAM = """
import numpy as np
import tensorflow as tf
import edward as ed
from edward.models import Empirical, Normal, PointMass

numbers = np.linspace(0.0, 2.0, 10).astype(np.float32)
KNOWN = numbers.sum() / (1 + len(numbers))  # of the posterior, before which the mean is drawn from N(0, 1)


def drawn():
    return Empirical(tf.get_variable("drawn", [2000]))


def normal():
    return Normal(tf.get_variable("mean", []), tf.nn.softplus(tf.get_variable("deviation", [])))


KINDS = {
    "KLqp": (normal, lambda given, data: ed.KLqp(given, data), {"n_iter": 500, "n_samples": 20}),
    "KLpq": (normal, lambda given, data: ed.KLpq(given, data), {"n_iter": 500, "n_samples": 20}),
    "MAP": (lambda: PointMass(tf.get_variable("point", [])), lambda g, d: ed.MAP(g, d), {"n_iter": 300}),
    "HMC": (drawn, lambda given, data: ed.HMC(given, data), {"step_size": 0.1, "n_steps": 5}),
    "SGLD": (drawn, lambda given, data: ed.SGLD(given, data), {"step_size": 0.05}),
    "Metropolis-Hastings": (drawn, None, {}),
}
for name, (posterior, inference, options) in KINDS.items():
    with tf.Graph().as_default(), tf.Session().as_default():
        ed.set_seed(1)
        mean = Normal(0.0, 1.0)
        data = Normal(mean, 1.0, sample_shape=len(numbers))
        inferred = posterior()
        if inference is None:
            run = ed.MetropolisHastings({mean: inferred}, {mean: Normal(mean, 0.5)}, {data: numbers})
        else:
            run = inference({mean: inferred}, {data: numbers})
        run.run(**options)
        if isinstance(inferred, Empirical):
            found = inferred.params.eval()[500:].mean()
        else:
            found = inferred.mean().eval()
        print("RESULT", name, abs(found - KNOWN) < 0.15, found, KNOWN)
"""


def main() -> int:
    """Runs the program, says how many kinds of inference found the mean; 1 if fewer than all."""
    set_up(LIBRARY)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inference.py"
        path.write_text(PROGRAM)
        command = [LIBRARY.python, "-m", "flowstone", "run", str(path)]
        result = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    lines = [line for line in result.stdout.splitlines() if "RESULT" in line]
    print(*lines, result.stderr[-2000:] if result.returncode else "", sep="\n")
    passed = sum(" True " in line for line in lines)
    print(f"{LIBRARY.requirement}: {passed} of {LIBRARY.expected} passed")
    return 0 if passed >= LIBRARY.expected else 1


if __name__ == "__main__":
    raise SystemExit(main())
