"""Cases of linear models by dual coordinate ascent: steps with one example, which TensorFlow takes in one way
only, and fingerprints of 128 bits.
"""

import numpy as np

from op_cases import case, listed, strings, variable

INVALID = "InvalidArgumentError"
LONG = [bytes((7 * n + i * i) % 251 for i in range(n)) for n in (15, 16, 17, 31, 32, 33, 48, 127)]
NONE = np.zeros((0, 2))
BEYOND = 128, 129, 144, 161, 255, 256, 400, 1000
LONGER = [bytes((5 * n + 3 * i * i) % 253 for i in range(n)) for n in BEYOND]


def state(*duals):
    return np.array([[dual, 0.5, 0.25, 2.0] for dual in duals], np.float32).reshape(-1, 4)


def step(
    loss="logistic_loss",
    dense=((2.0, 1.0),),
    target=1.0,
    dual=0.0,
    weight=1.0,
    nominal=((0.3, -0.2),),
    l1=0.0,
    l2=1.0,
    partitions=1,
    inner=1,
    examples=((0, 0),),
    ids=((5, 9),),
    values=((0.5, -1.5),),
    known=((9, 7, 5),),
    weights=(((0.1, 0.2, -0.4),),),
    **keywords,
):
    """A case of one example with two dense features, and two of the three of a sparse group."""

    def ints(lists):
        return listed(*(np.array(each, np.int64) for each in lists))

    def floats(lists):
        return listed(*(np.array(each, np.float32) for each in lists))

    return case(
        "SdcaOptimizer",
        ints(examples),
        ints(ids),
        floats(values),
        floats([dense]),
        np.atleast_1d(np.float32(weight)),
        np.atleast_1d(np.float32(target)),
        ints(known),
        floats(weights),
        floats([nominal]),
        keywords.pop("state", state(dual)),
        loss_type=loss,
        l1=l1,
        l2=l2,
        num_loss_partitions=partitions,
        num_inner_iterations=inner,
        **keywords,
    )


CASES = [
    case("SdcaFprint", strings([b"", b"a", b"abc", b"flow", b"stone", b"graphs", b"12345678", b"123456789"])),
    case("SdcaFprint", strings(LONG), label="long"),
    case("SdcaFprint", strings(LONGER), label="longer"),
    case("SdcaFprint", strings([]), label="empty"),
    case(
        "SdcaShrinkL1", listed(variable(np.float32([-3, -0.2, 2, 0.5])), variable([[0.25]])), l1=0.5, l2=2.0
    ),
    case("SdcaFprint", strings([[b"a"]]), label="matrix", error="ValueError"),
    [
        step(loss, target=target, dual=dual, weight=weight, l1=l1, l2=l2, partitions=partitions, label=label)
        for loss in ("hinge_loss", "smooth_hinge_loss", "logistic_loss", "squared_loss", "poisson_loss")
        for label, target, dual, weight, l1, l2, partitions in (
            ("first", 1.0, 0.0, 1.0, 0.0, 1.0, 1),
            ("zero", 0.0, 0.0, 2.0, 0.1, 2.0, 1),
            ("later", 1.0, 0.4, 0.5, 0.25, 0.5, 3),
            ("wrong", 0.0, 0.3, 3.0, 0.0, 4.0, 1),
            ("strong", 1.0, -0.2, 0.1, 0.0, 1000.0, 1),
            ("weak", 0.0, -0.5, 5.0, 0.0, 0.03125, 2),
        )
    ],
    [step(loss, target=4.5, dual=-2.0, label="more") for loss in ("squared_loss", "poisson_loss")],
    [
        step(loss, dense=((0.0, 0.0),), values=((0.0, 0.0),), label="nothing")
        for loss in ("hinge_loss", "smooth_hinge_loss", "logistic_loss", "squared_loss", "poisson_loss")
    ],
    step("squared_loss", inner=5, adaptative=True, l1=0.5, label="adaptive"),
    step("squared_loss", values=(), label="ones"),
    step("squared_loss", weights=((0.1, 0.2, -0.4),), nominal=(0.3, -0.2), label="vectors"),
    step("squared_loss", examples=((0, 1, 7),), ids=((5, 9, 7),), values=((1.0, 2.0, 3.0),), label="beyond"),
    step(examples=((), (0,)), ids=((), (3,)), values=((),), known=((), (3,)), weights=(((),), ((0.5,),))),
    step(dense=NONE, target=[], weight=[], state=state(), examples=((),), ids=((),), values=((),)),
    step(target=0.5, error=INVALID, label="half"),
    step("poisson_loss", target=-1.0, error=INVALID),
    step(target=[1.0, 0.0], error=INVALID),
    step(weight=[1.0, 1.0], error=INVALID),
    step(state=state(0.0, 0.0), error=INVALID),
    step(state=state(0.0)[:, :3], error=INVALID),
    step(state=state(0.0)[0], error=INVALID),
    step(dense=(2.0, 1.0), error=INVALID),
    step(ids=((5, 8),), error=INVALID),
    step(ids=((5, 5),), error=INVALID),
    step(examples=((0,),), error=INVALID),
    step("log_loss", error="ValueError"),
    step(partitions=0, error="ValueError"),
    step(inner=0, error="ValueError"),
]
