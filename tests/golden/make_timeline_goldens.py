"""Ask TensorFlow how its Timeline shows steps.

Run with a Python that has TensorFlow 2 (`tests/golden/timelines.json` came from 2.21):
`python tests/golden/make_timeline_goldens.py`. The steps are those of `tests/client/step_stats_cases.py`.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "timelines.json"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "client"))

import step_stats_cases  # noqa: E402
from tensorflow.core.framework import step_stats_pb2  # noqa: E402
from tensorflow.python.client import timeline  # noqa: E402


def main() -> None:
    """Writes a list: the step's name, the options, the events, the allocators' maxima."""
    found = []
    for name, step in step_stats_cases.steps(step_stats_pb2.StepStats).items():
        for options in step_stats_cases.OPTIONS[name]:
            text = timeline.Timeline(step).generate_chrome_trace_format(**options)
            analysis = timeline.Timeline(step).analyze_step_stats(**{"show_memory": False, **options})
            maxima = {
                allocator: [most.timestamp, most.num_bytes, sorted(most.tensors)]
                for allocator, most in analysis.allocator_maximums.items()
            }
            found.append([name, options, json.loads(text)["traceEvents"], maxima])
    lines = ",\n".join(json.dumps(each) for each in found)
    GOLDEN.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
