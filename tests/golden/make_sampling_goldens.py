"""Ask TensorFlow for the losses and gradients that `tests/ops/networks/test_sampled_losses.py` expects.

Run with a Python that has TensorFlow 2: `python tests/golden/make_sampling_goldens.py`. Writes
`tests/golden/sampling/losses.json`, which says of each case of `CASES` its loss, which of the gradients by
the partitions of the weights, the biases and the inputs are IndexedSlices, and their values.
"""

from __future__ import annotations

import itertools
import json
import pathlib
from typing import Any

import numpy as np

PATH = pathlib.Path(__file__).parent / "sampling" / "losses.json"
CASES = [
    f"{loss} hits={hits} {count} {strategy}"
    for loss, hits, (count, strategy) in itertools.product(
        ("nce_loss", "sampled_softmax_loss"), ("kept", "removed"), ((1, "mod"), (3, "mod"), (5, "div"))
    )
]


def evaluate(tf: Any, case: str) -> dict[str, Any]:
    """What the module `tf` finds: twelve classes, four examples with two of them, five candidates."""
    name, hits, count, strategy = case.split()
    random = np.random.RandomState(7)
    weights, biases, inputs = (random.randn(*shape).astype(np.float32) for shape in ((12, 3), (12,), (4, 3)))
    labels = np.int64([[0, 5], [7, 7], [11, 2], [3, 10]])
    counts = [(random.rand(*shape) + 0.1).astype(np.float32) for shape in ((4, 2), (5,))]
    parts = [weights[i :: int(count)] for i in range(int(count))]
    if strategy == "div":
        parts = np.array_split(weights, int(count))
    with tf.Graph().as_default(), tf.Session() as session:
        tables, b, x = [tf.constant(part) for part in parts], tf.constant(biases), tf.constant(inputs)
        loss = getattr(tf.nn, name)(
            tables if len(tables) > 1 else tables[0],
            b,
            tf.constant(labels),
            x,
            num_sampled=5,
            num_classes=12,
            num_true=2,
            sampled_values=tuple(map(tf.constant, (np.int64([2, 7, 9, 0, 2]), *counts))),
            remove_accidental_hits=hits == "hits=removed",
            partition_strategy=strategy,
        )
        gradients = tf.gradients(loss, [*tables, b, x])
        sparse = [isinstance(gradient, tf.IndexedSlices) for gradient in gradients]
        found = session.run([loss, *map(tf.convert_to_tensor, gradients)])
    return {
        "loss": found[0].tolist(),
        "sparse": sparse,
        "gradients": [gradient.tolist() for gradient in found[1:]],
    }


if __name__ == "__main__":
    import tensorflow.compat.v1 as tensorflow

    tensorflow.disable_v2_behavior()
    PATH.parent.mkdir(exist_ok=True)
    lines = [f"{json.dumps(case)}: {json.dumps(evaluate(tensorflow, case))}" for case in CASES]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
