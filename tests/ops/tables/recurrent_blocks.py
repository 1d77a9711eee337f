"""Cases of recurrent cells as single ops: a step, a sequence, and their gradients.

The oracle leaves steps behind a sequence's end as the memory happens to be, so that sequences have cases of
their full length. It gives the second version of the sequence the first one's gradients, and single steps
none: TensorFlow 1.15 had those in contrib, and `tests/contrib/rnn` compares them.
"""

import numpy as np

from op_cases import case, normal, uniform

INVALID = "InvalidArgumentError"
CELLS, INPUTS, ROWS, STEPS = 4, 3, 2, 5
STATE, VECTOR = normal(ROWS, CELLS), normal(CELLS)
WEIGHTS = (STATE, STATE, normal(INPUTS + CELLS, 4 * CELLS), VECTOR, VECTOR, VECTOR, normal(4 * CELLS))
GATES = (uniform(0.1, 0.9, (ROWS, CELLS)),) * 6
SEQUENCE = normal(STEPS, ROWS, CELLS)


def cells() -> list:
    """One step of an LSTM and of a GRU."""
    x, lstm, gru = normal(ROWS, INPUTS), "LSTMBlockCell", "GRUBlockCell"
    cases = []
    for peephole in (False, True):
        form = {"use_peephole": peephole}
        step = {**form, "gradient": False}
        cases += [
            case(lstm, x, *WEIGHTS, **step),
            case(lstm, x, *WEIGHTS, cell_clip=0.5, forget_bias=0.25, **step),
            case(lstm, x, *WEIGHTS, cell_clip=-1.0, **step),
            case(lstm + "Grad", x, *WEIGHTS, *GATES, STATE, STATE, **form),
        ]
    weights = (
        STATE, normal(INPUTS + CELLS, 2 * CELLS), normal(INPUTS + CELLS, CELLS), normal(2 * CELLS), VECTOR,
    )  # fmt: skip
    narrow = (STATE, STATE, normal(INPUTS + CELLS, 2 * CELLS), VECTOR, VECTOR, VECTOR, normal(4 * CELLS))
    return cases + [
        case(lstm, x, *WEIGHTS, dtypes="half", atol=2e-2, gradient=False),
        case(lstm, x, *narrow, label="weights", error=INVALID),
        case(gru, x, *weights, gradient=False),
        case(gru + "Grad", x, *weights, *GATES[:3], STATE),
        case(gru, x, *weights[:-1], normal(CELLS + 1), label="bias", error=INVALID),
    ]


def sequences() -> list:
    """Whole sequences, both orders of the gates."""
    x, length = normal(STEPS, ROWS, INPUTS), np.int64(STEPS)
    gates = (uniform(0.1, 0.9, (STEPS, ROWS, CELLS)),) * 6
    cases = []
    for version in ("", "V2"):
        op, grad = f"BlockLSTM{version}", f"BlockLSTMGrad{version}"
        flows = {} if not version else {"gradient": False}
        for peephole in (False, True):
            form = {"use_peephole": peephole}
            cases += [
                case(op, length, x, *WEIGHTS, **form, **flows),
                case(op, length, x, *WEIGHTS, cell_clip=0.5, **form, **flows),
                case(grad, length, x, *WEIGHTS, *gates, SEQUENCE, SEQUENCE, SEQUENCE, **form),
            ]
    return cases


CASES = [*cells(), *sequences()]
