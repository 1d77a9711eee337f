"""Cases of the candidate sampling family: types, static shapes, errors, hits.

`test_candidate_sampling.py` holds what is drawn.
"""

import numpy as np

from op_cases import case

INVALID = "InvalidArgumentError"
CLASSES = np.int64([[0, 3], [7, 19], [5, 5]])
ANY = {"values": False, "gradient": False}
DRAW = {"num_true": 2, "num_sampled": 4, "range_max": 20}


def by_range(op: str, **more: object) -> list:
    """Cases of a sampler with a range."""
    draw = {**DRAW, **more}
    return [
        case(op, CLASSES, unique=True, label="unique", **draw, **ANY),
        case(op, CLASSES, unique=False, label="repeating", **draw, **ANY),
        case(op, CLASSES + 1, unique=False, label="out of range", **draw, error=INVALID),
        case(op, CLASSES - 1, unique=True, label="negative", **draw, error=INVALID),
        case(op, CLASSES, unique=True, label="too many", **{**draw, "num_sampled": 21}, error=INVALID),
        case(op, CLASSES, unique=False, label="columns", **{**draw, "num_true": 1}, error=INVALID),
        case(op, CLASSES[0], unique=False, label="vector", **draw, error=INVALID),
    ]


UNIGRAMS = [float(k) for k in range(1, 21)]
SHARD = {"num_true": 1, "num_sampled": 2, "unique": False, "num_shards": 2, "num_reserved_ids": 1}

CASES = [
    *by_range("LogUniformCandidateSampler"),
    *by_range("UniformCandidateSampler"),
    *by_range("LearnedUnigramCandidateSampler"),
    *by_range("ThreadUnsafeUnigramCandidateSampler"),
    *by_range("FixedUnigramCandidateSampler", unigrams=UNIGRAMS),
    case(
        "FixedUnigramCandidateSampler",
        CLASSES,
        unique=False,
        label="neither weights nor file",
        **DRAW,
        error=INVALID,
    ),
    case(
        "FixedUnigramCandidateSampler",
        CLASSES,
        unique=False,
        unigrams=UNIGRAMS[:-1],
        label="too few weights",
        **DRAW,
        error=INVALID,
    ),
    case(
        "FixedUnigramCandidateSampler",
        np.int64([[0], [2]]),
        range_max=3,
        unigrams=[1.0, 2.0, 3.0, 4.0],
        label="shard 0",
        **SHARD,
        **ANY,
    ),
    case(
        "FixedUnigramCandidateSampler",
        np.int64([[0], [1]]),
        range_max=3,
        shard=1,
        unigrams=[1.0, 2.0, 3.0, 4.0],
        label="shard 1",
        **SHARD,
        error=INVALID,
    ),
    case("AllCandidateSampler", CLASSES, num_true=2, num_sampled=20, unique=True, gradient=False),
    case("AllCandidateSampler", CLASSES, num_true=2, num_sampled=19, unique=True, error=INVALID),
    case(
        "ComputeAccidentalHits",
        np.int64([[1, 2], [3, 3], [5, 1]]),
        np.int64([3, 1, 1, 5, 9]),
        num_true=2,
        gradient=False,
    ),
    case("ComputeAccidentalHits", np.int64([[1, 2]]), np.int64([7]), num_true=2, gradient=False),
    case("ComputeAccidentalHits", np.int64([[1, 2]]), np.int64([7]), num_true=1, error=INVALID),
    case("ComputeAccidentalHits", np.int64([[1, 2]]), np.int64([[7]]), num_true=2, error=INVALID),
]
