"""Cases of crosses of features."""

import numpy as np

from op_cases import case, listed, strings

INVALID = "InvalidArgumentError"


def rows(*values: object) -> np.ndarray:
    """Index rows, sizes, or values, in int64."""
    return np.array(values, np.int64)


SIZES = rows(3, 2)
WORDS = (rows([0, 0], [0, 1], [2, 0]), strings(["a", "bb", "c" * 70]), SIZES)
OTHERS = (rows([0, 0], [2, 0], [2, 1]), strings(["x", "", "z"]), SIZES)
NUMBERS = (rows([0, 0], [2, 0], [2, 1]), rows(5, -6, 2**40), SIZES)
LETTERS = strings([["p"], ["q"], ["r"]])
PAIRS = rows([1, 2], [3, 4], [5, 6])
NOTHING = (np.zeros((0, 2), np.int64), strings([]), SIZES)
TEXT = {"hashed_output": False, "num_buckets": 0, "hash_key": 0, "out_type": "string"}


def features(*sparse: tuple, dense: tuple = ()) -> list:
    """The four list arguments: indices, values and shapes of sparse features, and dense ones."""
    return [*(listed(*[each[part] for each in sparse]) for part in range(3)), listed(*dense)]


SETS = {
    "words": features(WORDS, OTHERS),
    "numbers": features(WORDS, NUMBERS),
    "dense": features(WORDS, dense=(LETTERS, PAIRS)),
    "dense alone": features(dense=(LETTERS,)),
    "three": features(WORDS, NUMBERS, OTHERS),
    "one": features(NUMBERS),
    "dense words": features(WORDS, dense=(LETTERS,)),
    "empty": features(WORDS, NOTHING),
}
WRONG = {
    "batch": features(WORDS, (WORDS[0], WORDS[1], rows(4, 2))),
    "dense batch": features(WORDS, dense=(strings([["p"]]),)),
    "count": features((WORDS[0], strings(["a"]), SIZES)),
    "vector": features((rows(0), strings(["a"]), SIZES)),
    "cube": features((rows([0, 0, 0]), strings(["a"]), rows(3, 2, 1))),
    "dense vector": features(WORDS, dense=(strings(["p", "q", "r"]),)),
}


def hashed(label: str, arguments: list, buckets: int = 0, strong: bool = False, **options: object) -> list:
    """A case of SparseCrossHashed."""
    more = (np.int64(buckets), np.bool_(strong), rows(137, -173))
    return case("SparseCrossHashed", *arguments, *more, label=f"{label} {buckets} {strong}", **options)


def keyed(label: str, arguments: list, internal: str = "int64", **options: object) -> list:
    """A case of SparseCross that hashes."""
    given = {"hashed_output": True, "num_buckets": 0, "hash_key": 956888297470, **options}
    return case("SparseCross", *arguments, label=label, out_type="int64", internal_type=internal, **given)


CASES = [
    [case("SparseCrossV2", *each, strings("_Y_"), label=label) for label, each in SETS.items()],
    case("SparseCrossV2", *SETS["words"], strings(""), label="joined closely"),
    [case("SparseCross", *each, internal_type="int64", label=label, **TEXT) for label, each in SETS.items()],
    case("SparseCross", *SETS["words"], internal_type="string", label="text inside", **TEXT),
    [keyed(label, each) for label, each in SETS.items()],
    keyed("words", SETS["words"], "string", num_buckets=10),
    keyed("numbers", SETS["numbers"], num_buckets=7, hash_key=-3),
    [
        hashed(label, each, buckets, strong)
        for label, each in SETS.items()
        for buckets, strong in ((0, False), (0, True), (9, False), (9, True), (-5, False))
        if label != "dense"  # whose integers the oracle takes for strings
    ],
    [case("SparseCrossV2", *each, strings("-"), label=label, error=INVALID) for label, each in WRONG.items()],
    [hashed(label, each, error=INVALID) for label, each in WRONG.items()],
    [keyed(label, each, error=INVALID) for label, each in WRONG.items()],
    keyed("numbers inside text", SETS["numbers"], "string", error=INVALID),
    keyed("dense numbers inside text", SETS["dense"], "string", error=INVALID),
    case(
        "SparseCrossHashed",
        *SETS["words"],
        np.int64(5),
        np.bool_(False),
        rows(1),
        label="salt",
        error=INVALID,
    ),
]
