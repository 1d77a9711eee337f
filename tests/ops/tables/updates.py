"""Cases of the update family: one step of every optimiser, dense and sparse, on both sorts of variables.

`CASES` is read by the op table test and by the golden generator. An op `ApplyX` gives four families of cases:
`ApplyX`, `ResourceApplyX`, `SparseApplyX` and `ResourceSparseApplyX` share their hyper-parameters.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from op_cases import case, literal, normal, positive, resource, variable

INVALID = "InvalidArgumentError"
FLOATS = "float32 float64"
SHAPE = (4, 3)


def number(value: float) -> Any:
    """A hyper-parameter: a scalar of the variable's dtype."""
    return literal(value, "T")


GRADIENT = "gradient"  # the place of the gradient; the sparse forms put gradient rows and their indices there
STEP = np.int64(5)

# The slots' values after the variable, then the arguments in the order of the op, then attributes to vary.
DENSE: dict[str, tuple[tuple, list, list[dict]]] = {
    "GradientDescent": ((), [number(0.1), GRADIENT], [{}, {"use_locking": True}]),
    "ProximalGradientDescent": ((), [number(0.1), number(0.2), number(0.3), GRADIENT], [{}]),
    "Momentum": ((normal,), [number(0.1), GRADIENT, number(0.9)], [{}, {"use_nesterov": True}]),
    "Adagrad": ((positive,), [number(0.1), GRADIENT], [{}, {"update_slots": False}]),
    "AdagradV2": ((positive,), [number(0.1), number(1e-3), GRADIENT], [{}, {"update_slots": False}]),
    "AdagradDA": ((normal, positive), [GRADIENT, number(0.1), number(0.2), number(0.3), STEP], [{}]),
    "Adadelta": ((positive, positive), [number(0.5), number(0.9), number(1e-6), GRADIENT], [{}]),
    "ProximalAdagrad": ((positive,), [number(0.1), number(0.2), number(0.3), GRADIENT], [{}]),
    "Adam": (
        (normal, positive),
        [number(0.729), number(0.997), number(0.01), number(0.9), number(0.999), number(1e-8), GRADIENT],
        [{}, {"use_nesterov": True}, {"use_locking": True}],
    ),
    "AdaMax": (
        (normal, positive),
        [number(0.729), number(0.01), number(0.9), number(0.999), number(1e-8), GRADIENT],
        [{}],
    ),
    "RMSProp": ((positive, normal), [number(0.1), number(0.9), number(0.5), number(1e-5), GRADIENT], [{}]),
    "CenteredRMSProp": (
        ("mean", positive, normal),
        [number(0.1), number(0.9), number(0.5), number(1e-2), GRADIENT],
        [{}],
    ),
    "Ftrl": ((positive, normal), [GRADIENT, number(0.1), number(0.2), number(0.3), number(-0.5)], [{}]),
    "FtrlV2": (
        (positive, normal),
        [GRADIENT, number(0.1), number(0.2), number(0.3), number(0.1), number(-0.5)],
        [{}],
    ),
    "AddSign": ((normal,), [number(0.1), number(1.0), number(0.7), number(0.9), GRADIENT], [{}]),
    "PowerSign": ((normal,), [number(0.1), number(2.0), number(0.7), number(0.9), GRADIENT], [{}]),
}
RESOURCE_ONLY: dict[str, tuple[tuple, list, list[dict]]] = {
    "KerasMomentum": ((normal,), [number(0.1), GRADIENT, number(0.9)], [{}, {"use_nesterov": True}]),
    "AdamWithAmsgrad": (
        (normal, positive, positive),
        [number(0.729), number(0.997), number(0.01), number(0.9), number(0.999), number(1e-8), GRADIENT],
        [{}],
    ),
}
NOT_SPARSE = {"GradientDescent", "Adam", "AdaMax", "AddSign", "PowerSign", "AdamWithAmsgrad"}


def slots(kinds: tuple, shape: tuple[int, ...], wrap: Any) -> list:
    """The variable and its slots; a centred mean is small: its square stays below the mean of squares."""
    held = [normal(*shape)]
    for kind in kinds:
        held.append(literal(np.full(shape, 0.01), "T") if kind == "mean" else kind(*shape))
    return [wrap(value) for value in held]


def arguments(order: list, gradient: list) -> list:
    """The arguments of an op, the gradient in its place."""
    return [item for one in order for item in (gradient if isinstance(one, str) else [one])]


def tolerance(name: str) -> float | None:
    """Ftrl divides a difference of near square roots by the learning rate."""
    return 2e-5 if name.startswith("Ftrl") else None


def dense_updates(name: str, row: tuple[tuple, list, list[dict]], wrap: Any, prefix: str) -> Iterator:
    """A dense update for several shapes, types, attributes, and a gradient of another shape."""
    kinds, order, variants = row
    op = f"{prefix}Apply{name}"

    def update(shape: tuple[int, ...], **settings: Any) -> Any:
        given = arguments(order, [normal(*shape)])
        return case(op, *slots(kinds, shape, wrap), *given, gradient=False, atol=tolerance(name), **settings)

    for attributes in variants:
        yield update(SHAPE, dtypes=FLOATS, **attributes)
    yield update(())
    yield update((0, 2))
    wrong = arguments(order, [normal(3, 3)])
    yield case(op, *slots(kinds, SHAPE, wrap), *wrong, gradient=False, label="mismatch", error=INVALID)


def sparse_updates(name: str, row: tuple[tuple, list, list[dict]], wrap: Any, prefix: str) -> Iterator:
    """A sparse update of some rows, without and with a row named twice, of a vector, of none, and errors."""
    kinds, order, variants = row
    op = f"{prefix}SparseApply{name}"

    def update(shape: tuple[int, ...], indices: np.ndarray, **settings: Any) -> Any:
        rows = [normal(len(indices), *shape[1:]), indices]
        given = arguments(order, rows)
        return case(op, *slots(kinds, shape, wrap), *given, gradient=False, atol=tolerance(name), **settings)

    for attributes in variants:
        yield update(SHAPE, np.int32([2, 0]), dtypes=FLOATS, **attributes)
    yield update(SHAPE, np.int64([1, 3, 1]), label="repeated")
    yield update((4,), np.int32([3]))
    yield update(SHAPE, np.zeros(0, np.int32), label="none")
    yield update(SHAPE, np.int32([4]), label="outside", error=INVALID)


def updates() -> Iterator:
    """All families on both sorts of variables."""
    for wrap, prefix in ((variable, ""), (resource, "Resource")):
        table = DENSE if wrap is variable else {**DENSE, **RESOURCE_ONLY}
        for name, row in table.items():
            yield from dense_updates(name, row, wrap, prefix)
            if name not in NOT_SPARSE:
                yield from sparse_updates(name, row, wrap, prefix)


def special_updates() -> Iterator:
    """Thresholds and powers that take other branches: no regularisation, other powers, half precision."""
    for wrap, prefix in ((variable, ""), (resource, "Resource")):
        trio = slots((positive, normal), SHAPE, wrap)
        for power, l1 in ((-0.5, 0.0), (-0.7, 0.1)):
            yield case(
                f"{prefix}ApplyFtrl",
                *trio,
                normal(*SHAPE),
                number(0.1),
                number(l1),
                number(0.0),
                number(power),
                gradient=False,
                label=f"power{power}",
            )
        yield case(
            f"{prefix}ApplyProximalGradientDescent",
            wrap(normal(*SHAPE)),
            number(0.1),
            number(0.0),
            number(0.3),
            normal(*SHAPE),
            gradient=False,
            label="no l1",
        )
        yield case(
            f"{prefix}ApplyGradientDescent",
            wrap(normal(*SHAPE)),
            number(0.1),
            normal(*SHAPE),
            gradient=False,
            dtypes="half bfloat16",
        )
        yield case(
            f"{prefix}ApplyMomentum",
            *slots((normal,), SHAPE, wrap),
            number(0.1),
            normal(*SHAPE),
            number(0.9),
            gradient=False,
            dtypes="half",
        )


CASES = [*updates(), *special_updates()]
