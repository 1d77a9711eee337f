"""Seconds that a session takes until the first training step of a new process is done: its making, the
variables' first values, planning, and the step; and what a step takes in the mean of those that come next, 50
or as many as end within three seconds. One program of this folder after another; `FIRST_RUN=a,b` picks some.
Each runs with the machine code that is kept on this machine, and with none: where nothing is kept, both
figures are of one run.
"""

import json
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import shapes  # noqa: F401 - makes `measuring` importable

from measuring import once, report

HERE = Path(__file__).resolve().parent
PROGRAMS = {  # workload, and what VARIANT picks of its program: the program
    "softmax_regression": "network",
    "perceptron": "network",
    "skip_gram": "skip_gram",
    "lenet": "convolutional",
    "alexnet": "convolutional",
    "googlenet": "convolutional",
    "resnet50": "convolutional",
    "mobilenet": "convolutional",
    "vgg_a": "convolutional",
    "transformer_block": "transformer_block",
    "gru_language_model": "gru_language_model",
    "language_model_small static": "language_model",
    "language_model_small dynamic": "language_model",
    "language_model_large static": "language_model",
    "language_model_large dynamic": "language_model",
}


MOST_STEPS, MOST_S = 50, 3.0  # after the first


def run_first_steps(program: str) -> None:
    """Runs a program's first training steps, which are its runs of lists; prints the seconds up to the end of
    the first, and of one of the next."""
    from tf1 import tf

    spent, ends = 0.0, []
    make, run = tf.Session.__init__, tf.Session.run

    def timed(function, *arguments, **named):
        nonlocal spent
        results = []
        spent += once(lambda: results.append(function(*arguments, **named)))
        return results[0]

    def tell():
        print(json.dumps([ends[0], (ends[-1] - ends[0]) / max(len(ends) - 1, 1)]), flush=True)

    def timed_run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        values = timed(run, self, fetches, feed_dict, options, run_metadata)
        if isinstance(fetches, list):
            ends.append(spent)
            if len(ends) > MOST_STEPS or (len(ends) > 1 and spent - ends[0] > MOST_S):
                tell()
                os._exit(0)
        return values

    tf.Session.__init__ = lambda self, *arguments, **named: timed(make, self, *arguments, **named)
    tf.Session.run = timed_run
    runpy.run_path(str(HERE / f"{program}_tf1.py"), run_name="__main__")
    tell()  # fewer steps were made


def seconds(case: str, **changes: str) -> list[float]:
    """The figures of one case, from a process of its own, with changes of its environment."""
    workload, _, variant = case.partition(" ")
    environment = dict(os.environ, WORKLOAD=workload, VARIANT=variant, **changes)
    command = [sys.executable, __file__, PROGRAMS[case]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if len(sys.argv) > 1:
    run_first_steps(sys.argv[1])
else:
    for case in filter(None, os.environ.get("FIRST_RUN", ",".join(PROGRAMS)).split(",")):
        with_code = without = seconds(case)
        if os.environ["IMPLEMENTATION"] == "flowstone":
            with tempfile.TemporaryDirectory() as folder:
                without = seconds(case, XDG_CACHE_HOME=folder)
        for what, value, value_without in zip(("", ", a step of the next"), with_code, without):
            report(f"{case}{what}", value, "s")
            report(f"{case}{what}, empty cache", value_without, "s")
