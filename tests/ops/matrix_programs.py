"""Calls of functions of matrices that the oracle and Flowstone both make; see `signal_programs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_random = np.random.RandomState(8)


def _matrices(*shape: int) -> np.ndarray:
    return np.round(_random.standard_normal(shape), 3)


SQUARE = _matrices(2, 3, 3) + 2 * np.eye(3)
COMPLEX = SQUARE + 1j * _matrices(2, 3, 3)
DEFINITE = np.round(SQUARE @ SQUARE.swapaxes(-1, -2), 3)
HERMITIAN = np.round(COMPLEX @ COMPLEX.conj().swapaxes(-1, -2), 3)
DEEP, WIDE = _matrices(2, 4, 2), _matrices(3, 5)
LOW = _matrices(2, 4, 1) @ _matrices(2, 1, 3)
SIDE = _matrices(2, 3, 2)
DIAGONALS = _matrices(2, 3, 6)

Program = tuple[Callable[[Any, Any], Any], np.ndarray]
PROGRAMS: dict[str, Program] = {}


def add(name: str, function: Callable[[Any, Any], Any], x: np.ndarray) -> None:
    """The program, also for unknown sizes."""
    PROGRAMS[name] = PROGRAMS[f"{name}?"] = function, x


def fixed(name: str, function: Callable[[Any, Any], Any], x: np.ndarray) -> None:
    PROGRAMS[name] = function, x


def side(tf: Any, x: Any) -> Any:
    return tf.constant(SIDE, x.dtype)


def three(tf: Any, x: Any) -> Any:
    return tf.constant([1.0, 2.0, 3.0], x.dtype)


def factors(tf: Any, x: Any) -> Any:
    return tf.linalg.lu(x)


for _name, _x in (("real", SQUARE), ("complex", COMPLEX)):
    add(f"inverse {_name}", lambda tf, x: tf.matrix_inverse(x), _x)
    add(f"adjoint {_name}", lambda tf, x: tf.linalg.adjoint(x), _x)
    add(f"slogdet {_name}", lambda tf, x: tf.linalg.slogdet(x)[1], _x)
    add(f"solve {_name}", lambda tf, x: tf.matrix_solve(x, side(tf, x), adjoint=True), _x)
    add(f"triangular {_name}", lambda tf, x: tf.matrix_triangular_solve(x, side(tf, x)), _x)
    add(
        f"lu_solve {_name}",
        lambda tf, x: tf.linalg.lu_solve(*factors(tf, x), side(tf, x)),
        _x,
    )
    add(f"lu_reconstruct {_name}", lambda tf, x: tf.linalg.lu_reconstruct(*factors(tf, x)), _x)
    add(f"lu_matrix_inverse {_name}", lambda tf, x: tf.linalg.lu_matrix_inverse(*factors(tf, x)), _x)
    fixed(f"expm {_name}", lambda tf, x: tf.linalg.expm(x), _x / 2)
    fixed(f"sqrtm {_name}", lambda tf, x: tf.linalg.sqrtm(x), _x @ _x)
for _name, _x in (("real", DEFINITE), ("complex", HERMITIAN)):
    add(f"cholesky {_name}", lambda tf, x: tf.cholesky(x), _x)
    add(
        f"cholesky_solve {_name}",
        lambda tf, x: tf.cholesky_solve(tf.cholesky(x), side(tf, x)),
        _x,
    )
    add(f"logdet {_name}", lambda tf, x: tf.linalg.logdet(x), _x)
    add(f"eigenvalues {_name}", lambda tf, x: tf.self_adjoint_eigvals(x), _x)
    add(f"eigenvalues of pairs {_name}", lambda tf, x: tf.self_adjoint_eig(x)[0], _x)
add("determinant", lambda tf, x: tf.matrix_determinant(x), SQUARE)
add("qr", lambda tf, x: tf.qr(x)[1], DEEP)
for _name, _x in (("deep", DEEP), ("wide", WIDE), ("low", LOW)):
    fixed(f"singular values {_name}", lambda tf, x: tf.svd(x, compute_uv=False), _x)
    add(f"pinv {_name}", lambda tf, x: tf.linalg.pinv(x), _x)
    add(f"rank {_name}", lambda tf, x: tf.linalg.matrix_rank(x), _x)
    add(f"rank by tolerance {_name}", lambda tf, x: tf.linalg.matrix_rank(x, tol=1.0), _x)
    add(f"pinv by condition {_name}", lambda tf, x: tf.linalg.pinv(x, rcond=0.5), _x)
    add(f"spectral norm {_name}", lambda tf, x: tf.norm(x, ord=2, axis=[-2, -1]), _x)
for _name, _x in (("deep", DEEP), ("wide", WIDE)):
    add(f"least squares {_name}", lambda tf, x: tf.matrix_solve_ls(x, tf.ones_like(x[..., :1])), _x)
    add(f"regularised {_name}", lambda tf, x: tf.matrix_solve_ls(x, tf.ones_like(x[..., :1]), 0.3), _x)
    fixed(f"orthogonal {_name}", lambda tf, x: tf.linalg.lstsq(x, tf.ones_like(x[..., :1]), fast=False), _x)
for _ord in ("euclidean", 1, np.inf, 3):
    add(f"normalize {_ord}", lambda tf, x, o=_ord: tf.linalg.normalize(x, o, -1)[0], DEEP)
    add(f"size of {_ord}", lambda tf, x, o=_ord: tf.linalg.normalize(x, o, 1)[1], DEEP)
add("matvec", lambda tf, x: tf.linalg.matvec(x, three(tf, x)), SQUARE)
add(
    "matvec adjoint",
    lambda tf, x: tf.linalg.matvec(x, three(tf, x), adjoint_a=True),
    COMPLEX,
)
add("diag of k", lambda tf, x: tf.linalg.diag(x, k=1), WIDE)
fixed(
    "diag of several", lambda tf, x: tf.linalg.diag(x, k=(-1, 1), padding_value=2, align="LEFT_RIGHT"), WIDE
)
fixed("diag of a size", lambda tf, x: tf.matrix_diag(x, num_rows=5, num_cols=7), WIDE)
add("diag_part of k", lambda tf, x: tf.linalg.diag_part(x, k=-1), WIDE)
add("diag_part of several", lambda tf, x: tf.matrix_diag_part(x, k=(-1, 2), padding_value=7), WIDE)
add("set_diag of k", lambda tf, x: tf.linalg.set_diag(x, x[..., :2, 0], k=-1), WIDE)
add("tridiagonal", lambda tf, x: tf.linalg.tridiagonal_solve(x, x[..., :2, :], transpose_rhs=True), DIAGONALS)
fixed("tridiagonal vector", lambda tf, x: tf.linalg.tridiagonal_solve(x, x[..., 0, :]), DIAGONALS)
fixed(
    "tridiagonal sequence",
    lambda tf, x: tf.linalg.tridiagonal_solve((x[:, 0, 1:], x[:, 1], x[:, 2, 1:]), x[..., 0, :], "sequence"),
    DIAGONALS,
)
fixed(
    "tridiagonal matrix",
    lambda tf, x: tf.linalg.tridiagonal_solve(x, tf.ones_like(x[..., :1]), "matrix", partial_pivoting=False),
    SQUARE,
)
fixed(
    "tridiagonal product",
    lambda tf, x: tf.linalg.tridiagonal_matmul(x, tf.ones([2, 6, 1], x.dtype)),
    DIAGONALS,
)
for _kind, _range in (("a", None), ("i", (1, 3)), ("v", (-0.5, 1.0))):
    fixed(
        f"eigenvalues tridiagonal {_kind}",
        lambda tf, x, k=_kind, r=_range: tf.linalg.eigh_tridiagonal(
            x[0], x[1, :-1], select=k, select_range=r
        ),
        DIAGONALS[0],
    )
