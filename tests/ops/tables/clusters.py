"""Cases of clusters: the centres nearest to points, and the choice of the first centres by a seed."""

import numpy as np

from op_cases import case, normal

POINTS = np.float32([[0, 0], [1, 0], [5, 5], [3, 1], [2, 4], [-3, 2], [0.5, 6]])
CENTERS = np.float32([[0, 0], [5, 5], [1, 1]])
DISTANCES = np.float32([0.4, 0.9, 0.1, 0.7, 0.3, 1.2, 0.8, 0.2, 0.6])
INVALID = "InvalidArgumentError"


def number(value):
    return np.array(value, np.int64)


ZERO = number(0)

CASES = [
    [case("NearestNeighbors", POINTS, CENTERS, number(k), label=f"k{k}") for k in (0, 1, 2, 5)],
    case("NearestNeighbors", normal(20, 3), normal(6, 3), number(1), label="many"),
    case("NearestNeighbors", POINTS, CENTERS[:0], number(1), label="no_centers"),
    case("NearestNeighbors", POINTS[0], CENTERS, number(1), label="vector", error=INVALID),
    case("NearestNeighbors", POINTS, CENTERS[:, :1], number(1), label="dimensions", error=INVALID),
    case("NearestNeighbors", POINTS[:0], CENTERS, number(1), label="no_points", error=INVALID),
    case("NearestNeighbors", POINTS, CENTERS, number([1]), label="ks", error=INVALID),
    [
        case(
            "KmeansPlusPlusInitialization", POINTS, number(count), number(seed), number(retries),
            label=f"{count}_of_seed{seed}_retries{retries}",
        )
        for count, seed, retries in ((1, 0, 0), (3, 1, 2), (5, 2**33 + 7, 1), (4, 5, 3), (7, 3, 2))
    ],
    case("KmeansPlusPlusInitialization", POINTS, number(8), number(0), ZERO, label="more", error=INVALID),
    case("KmeansPlusPlusInitialization", POINTS, number(0), number(0), ZERO, label="none", error=INVALID),
    case("KmeansPlusPlusInitialization", POINTS, number(1), number([0]), ZERO, label="seeds", error=INVALID),
    [case("KMC2ChainInitialization", DISTANCES, number(seed), label=f"seed{seed}") for seed in (0, 1, 2, 9)],
    case("KMC2ChainInitialization", DISTANCES[:0], number(1), label="none", error=INVALID),
    case("KMC2ChainInitialization", DISTANCES[None], number(1), label="matrix", error=INVALID),
]  # fmt: skip
