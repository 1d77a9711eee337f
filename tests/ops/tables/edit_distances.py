"""Cases of edit distances."""

from op_cases import case, literal, strings

KINDS = "int32 int64 float32"
PLACES = literal([[0, 0], [0, 1], [0, 2], [1, 0], [3, 0]], "int64")
OTHERS = literal([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]], "int64")
SHAPE, OTHER_SHAPE = literal([4, 3], "int64"), literal([3, 2], "int64")
VALUES, OTHER_VALUES = literal([1, 2, 3, 4, 5], "T"), literal([1, 3, 4, 4, 6], "T")
WORDS, OTHER_WORDS = strings([b"a", b"b", b"c", b"d", b"e"]), strings([b"a", b"c", b"d", b"d", b"f"])


TRUTH = (OTHERS, OTHER_VALUES, OTHER_SHAPE)


def distance(*inputs, **how):
    return case("EditDistance", *inputs, **how)


CASES = [
    [
        distance(PLACES, VALUES, SHAPE, *TRUTH, normalize=n, dtypes="int32 int64 float32 bfloat16")
        for n in (True, False)
    ],
    distance(PLACES, WORDS, SHAPE, OTHERS, OTHER_WORDS, OTHER_SHAPE, dtypes="string"),
    distance(PLACES, VALUES, literal([4], "int64"), *TRUTH, label="ranks", error="ValueError"),
    distance(PLACES, VALUES, literal([2, 3], "int64"), *TRUTH, label="outside", error="InternalError"),
]
