"""Cases of connectionist temporal classification: its loss and both decoders.

CTCLossV2 has no cases: the oracle has it on GPUs only. Nor have rows whose only label is a null label, of
which the oracle leaves out the last time step.
"""

import numpy as np

from op_cases import case, literal, normal

INVALID, PRECONDITION = "InvalidArgumentError", "FailedPreconditionError"
PLACES = [[0, 0], [0, 1], [1, 0]]
LABELS = [0, 1, 2]
NAN, INF = np.nan, np.inf


def loss(
    logits: object = None,
    places: object = PLACES,
    labels: object = LABELS,
    lengths: object = (5, 4),
    **kwargs,
) -> list:
    """A case of the loss: what is not given is two rows of five time steps and four classes."""
    logits = normal(5, 2, 4) if logits is None else logits
    indices = np.reshape(np.array(places, np.int64), (-1, 2))
    return case("CTCLoss", logits, indices, literal(list(labels), "int32"), np.int32(lengths), **kwargs)


def losses() -> list:
    """Rows of several lengths, repeats, the three attributes, infinities, and labels that do not fit."""
    repeated = [[0, 0], [0, 1], [0, 2], [1, 0]]
    single = {"rtol": 1e-6, "atol": 1e-7}  # the oracle computes float64 partly in float32
    impossible = np.zeros((3, 1, 3), np.float32)
    impossible[:, :, 0] = -INF
    cases = [
        loss(),
        loss(dtypes="float64", **single),
        loss(
            normal(9, 3, 6), [[0, 0], [1, 0], [1, 1], [1, 2], [2, 0], [2, 1]], [4, 0, 0, 3, 1, 2], (9, 7, 3)
        ),
        loss(places=[[0, 0], [0, 3], [1, 0]], label="gap"),
        loss(labels=[0, 3, 2], label="null label"),
        loss(labels=[0, 9, 2], label="label outside"),
        loss(lengths=(2, 1), label="just long enough"),
        loss(places=repeated, labels=[0, 0, 1, 2], label="repeats"),
        loss(np.float32(impossible), [[0, 0]], [0], (3,), label="infinite"),
        loss(np.float32([[[NAN, 0, 1]], [[0, 1, 2]]]), [[0, 0]], [0], (2,), label="nan", gradient=False),
        loss(lengths=(2, 4), labels=[0, 0, 2], label="no time to repeat"),
        loss(lengths=(1, 4), ignore_longer_outputs_than_inputs=True),
        loss(lengths=(0, 4), ignore_longer_outputs_than_inputs=True, label="no time"),
        loss(places=repeated, labels=[0, 0, 1, 2], preprocess_collapse_repeated=True),
        loss(places=repeated, labels=[0, 0, 1, 2], ctc_merge_repeated=False),
        loss(places=repeated, labels=[0, 0, 1, 2], lengths=(3, 1), ctc_merge_repeated=False, label="tight"),
        loss(
            normal(8, 2, 3), PLACES, [1, 1, 0], (8, 5), ctc_merge_repeated=False, dtypes="float64", **single
        ),
    ]
    for label, change in {
        "too long": {"lengths": (1, 4)},
        "collapsed too late": {
            "places": repeated,
            "labels": [0, 0, 1, 2],
            "lengths": (2, 4),
            "preprocess_collapse_repeated": True,
        },
        "no labels": {"places": PLACES[:2], "labels": LABELS[:2]},
        "label after null": {"labels": [3, 0, 2]},
        "negative label": {"labels": [-1, 0, 2]},
        "length outside": {"lengths": (6, 4)},
        "negative length": {"lengths": (-1, 4)},
        "unordered": {"places": [[1, 0], [0, 0], [0, 1]]},
        "twice": {"places": [[0, 0], [0, 0], [1, 0]]},
        "row outside": {"places": [[0, 0], [0, 1], [2, 0]]},
        "negative row": {"places": [[-1, 0], [0, 1], [1, 0]]},
        "labels differ": {"labels": LABELS[:2]},
        "lengths differ": {"lengths": (5,)},
        "matrix": {"logits": normal(5, 2)},
        "no rows": {"logits": normal(5, 0, 4), "places": [], "labels": [], "lengths": ()},
        "no times": {"logits": normal(0, 2, 4), "lengths": (0, 0)},
    }.items():
        cases.append(loss(label=label, error=INVALID, **change))
    return cases


def decoders() -> list:
    """Both decoders, with and without merging, of rows that end early, ties and what they refuse."""
    greedy, beam = "CTCGreedyDecoder", "CTCBeamSearchDecoder"
    lengths = np.int32([5, 4])
    runs = np.float32([[3, 0, 0], [3, 0, 0], [0, 0, 3], [3, 0, 0]])[:, None]
    cases = [
        case(greedy, np.float32([[[NAN, 1, 0]], [[1, NAN, 0]]]), np.int32([2]), label="nan"),
        case(greedy, np.zeros((2, 1, 3), np.float32), np.int32([2]), label="ties"),
    ]
    for merge in (True, False):
        cases += [
            case(greedy, normal(5, 2, 4), lengths, dtypes="float32 float64", merge_repeated=merge),
            case(greedy, normal(12, 3, 3), np.int32([12, 0, 7]), merge_repeated=merge),
            case(greedy, normal(5, 2, 4), lengths, merge_repeated=merge, blank_index=0),
            case(greedy, normal(5, 2, 4), lengths, merge_repeated=merge, blank_index=-2),
        ]
        paths = {"beam_width": 10, "top_paths": 3, "merge_repeated": merge}
        cases += [
            case(beam, normal(5, 2, 4), lengths, **paths),
            case(beam, normal(5, 2, 4), lengths, dtypes="float64", rtol=1e-6, **paths),
            case(beam, normal(12, 3, 3), np.int32([12, 3, 7]), **paths),
            case(beam, runs, np.int32([4]), **paths),
        ]
    wide = {"beam_width": 30, "top_paths": 2}
    for op, kwargs in ((greedy, {}), (beam, {"beam_width": 4, "top_paths": 1})):
        cases += [
            case(op, normal(5, 2, 1), np.int32([5, 0]), label="blanks", **kwargs),
            case(op, normal(5, 2, 4), np.int32([6, 4]), label="too long", error=PRECONDITION, **kwargs),
            case(op, normal(5, 2, 4), np.int32([5]), label="lengths differ", error=PRECONDITION, **kwargs),
            case(op, normal(5, 2), np.int32([5, 5]), label="matrix", error=INVALID, **kwargs),
            case(op, normal(0, 2, 4), np.int32([0, 0]), label="empty", error=INVALID, **kwargs),
        ]
    return cases + [
        case(greedy, normal(5, 2, 4), lengths, blank_index=4, label="no class", error=INVALID),
        case(beam, normal(20, 2, 5), np.int32([20, 14]), **wide),
        case(beam, normal(7, 2, 12), np.int32([7, 5]), **wide),
        case(beam, normal(9, 1, 40), np.int32([9]), **wide),
        [  # extensions are left out of beams that fall out before their turn
            case(beam, normal(30, 3, classes), np.int32([30, 21, 8]), beam_width=width, top_paths=3)
            for classes, width in ((5, 3), (12, 10), (40, 20))
        ],
        case(beam, normal(15, 2, 4), np.int32([15, 9]), beam_width=1, top_paths=1),
        case(beam, normal(15, 2, 4), np.int32([15, 9]), beam_width=2, top_paths=2),
        case(
            beam,
            np.float32([[[0, -INF, 1, 2]]]),
            np.int32([1]),
            beam_width=9,
            top_paths=3,
            label="impossible",
        ),
        case(beam, normal(1, 1, 4), np.int32([1]), beam_width=9, top_paths=5, label="few", error=INVALID),
        case(beam, normal(5, 1, 4), np.int32([5]), beam_width=1, top_paths=2, label="paths", error=INVALID),
    ]


CASES = [*losses(), *decoders()]
