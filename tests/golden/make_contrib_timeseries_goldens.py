"""Ask TensorFlow 1.15 what the programs of `tests/contrib/timeseries/series_programs.py` compute.

Run with a Python that has TensorFlow 1.15 and its contrib (the file came from 1.15.5):
`python tests/golden/make_contrib_timeseries_goldens.py`. It writes `contrib/timeseries.json`.
"""

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "contrib" / "timeseries"))

import series_programs
import tensorflow as tf

FILE = pathlib.Path(__file__).parent / "contrib" / "timeseries.json"


def main():
    """Writes what every program, or those named on the command line, computed."""
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in sys.argv[1:] or series_programs.PROGRAMS:
        found[name] = series_programs.PROGRAMS[name](tf)
        FILE.write_text(json.dumps(found, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
