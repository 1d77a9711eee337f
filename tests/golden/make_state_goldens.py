"""Ask TensorFlow for the answers of the programs of `tests/rewriting/state_patterns.py`.

Run with a Python that has TensorFlow 2 (the file came from 2.21):
`python tests/golden/make_state_goldens.py`.
``tests/golden/state_programs.npz`` has the answers of the first `COUNT` programs, as float32, one behind the
other: ``seeds``, ``digests`` of the programs' texts, ``sizes`` of the answers and ``values``.
"""

from __future__ import annotations

import pathlib
import sys
import zlib

import numpy as np

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "rewriting"))

from compare_state_programs import computed, plain_config, prepared  # noqa: E402
from state_patterns import program  # noqa: E402

COUNT = 320


def main() -> None:
    tf = prepared()
    seeds, digests, sizes, values = [], [], [], []
    for seed in range(COUNT):
        wanted = program(seed)
        if wanted.is_alone:
            continue
        found = computed(tf, wanted, plain_config(tf))
        if isinstance(found, str):
            print(f"seed {seed} is left out: {found}")
            continue
        flat = [x.ravel() for run in found for x in run]
        seeds.append(seed)
        digests.append(zlib.crc32(str(wanted).encode()))
        sizes.append(sum(x.size for x in flat))
        values += flat
    answers = np.concatenate(values).astype(np.float32)
    numbers = {"seeds": np.array(seeds, np.int32), "digests": np.array(digests, np.uint32)}
    np.savez_compressed(
        FOLDER / "state_programs.npz", **numbers, sizes=np.array(sizes, np.int32), values=answers
    )


if __name__ == "__main__":
    main()
