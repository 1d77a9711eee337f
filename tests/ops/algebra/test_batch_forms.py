"""The Batch… ops compute what the ops without that word do, and have no gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F, registry

_X = np.random.RandomState(0).standard_normal([2, 3, 3])
_DEFINITE = _X @ _X.swapaxes(-1, -2) + np.eye(3)
_RHS = np.random.RandomState(1).standard_normal([2, 3, 2])
_LOWER = np.tril(_DEFINITE)

CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "Cholesky": ((_DEFINITE,), {}),
    "CholeskyGrad": ((_LOWER, _X), {}),
    "MatrixBandPart": ((_X, np.int64(1), np.int64(0)), {}),
    "MatrixDeterminant": ((_X,), {}),
    "MatrixDiag": ((_RHS,), {}),
    "MatrixDiagPart": ((_X,), {}),
    "MatrixInverse": ((_X,), {"adjoint": True}),
    "MatrixSetDiag": ((_X, _RHS[:, :, 0]), {}),
    "MatrixSolve": ((_X, _RHS), {"adjoint": True}),
    "MatrixSolveLs": ((_X, _RHS, np.float64(0.1)), {"fast": True}),
    "MatrixTriangularSolve": ((_LOWER, _RHS), {"lower": True, "adjoint": True}),
    "SelfAdjointEig": ((_DEFINITE,), {}),
    "SelfAdjointEigV2": ((_DEFINITE,), {"compute_v": True}),
    "Svd": ((_X,), {"full_matrices": True}),
}


@pytest.fixture(autouse=True)
def old_graph() -> Iterator[None]:
    """A graph of a version that has these ops."""
    with tf.Graph().as_default() as graph:
        graph.producer = 10
        yield


@pytest.mark.parametrize("name", sorted(CALLS))
def test_same_result(name: str) -> None:
    arguments, attributes = CALLS[name]
    pair = [registry[op].several(*arguments, **attributes) for op in (name, f"Batch{name}")]
    with tf.Session() as session:
        one, other = session.run(pair)
    for a, b in zip(one if isinstance(one, tuple) else [one], other if isinstance(other, tuple) else [other]):
        np.testing.assert_array_equal(a, b)


def test_no_gradient() -> None:
    x = tf.constant(_X)
    with pytest.raises(LookupError):
        tf.gradients(F.BatchMatrixInverse(x), x)


def test_every_batch_form_is_called_here() -> None:
    declared = {name for name in registry if name.startswith(("BatchMatrix", "BatchChol", "BatchS"))}
    assert declared == {f"Batch{name}" for name in CALLS}
