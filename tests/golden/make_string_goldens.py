"""Ask TensorFlow for the hashes of the strings in `tests/ops/hashed_strings.py`.

Run with a Python that has TensorFlow 2: `python tests/golden/make_string_goldens.py`. Writes
`tests/golden/strings/hashes.npz`: `fingerprint`, `strong` and `old`, a number a string.
"""

from __future__ import annotations

import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))

import numpy as np
import tensorflow as tf

from hashed_strings import BUCKETS, KEY, STRINGS

FOLDER = pathlib.Path(__file__).parent / "strings"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    np.savez_compressed(
        FOLDER / "hashes.npz",
        fingerprint=tf.fingerprint(STRINGS).numpy().view("<u8").reshape(-1),
        strong=tf.strings.to_hash_bucket_strong(STRINGS, BUCKETS, KEY).numpy(),
        old=tf.strings.to_hash_bucket(STRINGS, BUCKETS).numpy(),
    )


if __name__ == "__main__":
    main()
