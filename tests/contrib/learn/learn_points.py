"""Calls of `make_dataset` for TensorFlow and for flowstone.

It keeps to Python 3.7, on which TensorFlow 1.15 runs.
"""

CASES = [
    ("circles", {"n_samples": 7, "n_classes": 3, "factor": 0.5, "seed": 3}),
    ("circles", {"n_samples": 8, "noise": 0.1, "seed": 3}),
    ("circles", {"n_samples": 11, "n_classes": 4, "noise": 0.5, "seed": 9}),
    ("circles", {"n_samples": 4, "n_classes": 1}),
]
for mode in ("archimedes", "bernoulli", "fermat"):
    CASES += [
        ("spirals", {"mode": mode, "n_samples": 7, "seed": 3}),
        ("spirals", {"mode": mode, "n_samples": 8, "noise": 0.1}),
        ("spirals", {"mode": mode, "n_samples": 11, "noise": 0.5, "seed": 9, "n_loops": 1}),
    ]


def answer(make, case):
    name, arguments = CASES[case]
    found = make(name, **arguments)
    return found.data.tolist(), found.target.tolist()
