"""What TensorFlow's clients get of their own servers: ``distributed/any_client.json``.

    python tests/golden/make_any_client_goldens.py $TF115_PYTHON $TF_PYTHON

The Pythons must agree; the first one's results are written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "distributed"))
import any_client


def main(pythons: list[str]) -> None:
    """Writes the golden file. ValueError where the Pythons' results differ."""
    found = []
    for python in pythons:
        with any_client.servers(python) as target:
            found.append(any_client.results([python], target))
        differs = any_client.difference(found[-1], found[0])
        if differs:
            raise ValueError(f"{python} differs: {differs}")
    any_client.GOLDEN.write_text(json.dumps(found[0], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
