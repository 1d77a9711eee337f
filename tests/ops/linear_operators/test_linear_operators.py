"""Linear operators: what they say of themselves is TensorFlow's, all else is that of the dense matrix."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import operator_programs
from operator_programs import HINTS, PROGRAMS

GOLDEN = pathlib.Path(__file__).parents[2] / "golden"
SAID = json.loads((GOLDEN / "operators.json").read_text())
DENSE = dict(np.load(GOLDEN / "operators.npz"))
NAMES = sorted(PROGRAMS)


def run(tensor: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensor)


def tolerance(dense: np.ndarray) -> float:
    return 2e-4 if dense.dtype in (np.float32, np.complex64) else 1e-9


def close(actual: np.ndarray, expected: np.ndarray, dense: np.ndarray) -> None:
    assert actual.dtype == dense.dtype
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=tolerance(dense), atol=tolerance(dense))


def argument(dense: np.ndarray, *shape: int) -> np.ndarray:
    random = np.random.RandomState(4)
    values = random.standard_normal(shape)
    if np.iscomplexobj(dense):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dense.dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    return x.conj().swapaxes(-1, -2)


def is_square(name: str) -> bool:
    return DENSE[name].shape[-1] == DENSE[name].shape[-2]


def is_regular(name: str) -> bool:
    return is_square(name) and "zeros" not in name


def test_answers_are_those_of_the_programs() -> None:
    assert set(SAID) == set(DENSE) == set(PROGRAMS)


@pytest.mark.parametrize("name", NAMES)
def test_what_it_says_of_itself(name: str) -> None:
    expected = SAID[name]
    if name == "block lower":  # the oracle forms the blocks of the inverse, which here are never formed
        expected = {**expected, "inverse": "LinearOperatorInversion"}
    assert operator_programs.facts(PROGRAMS[name](tf)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_shapes(name: str) -> None:
    operator, dense = PROGRAMS[name](tf), DENSE[name]
    assert operator.tensor_rank == dense.ndim
    assert operator.batch_shape.as_list() == list(dense.shape[:-2])
    assert operator.range_dimension == dense.shape[-2] and operator.domain_dimension == dense.shape[-1]
    found = run(
        [
            operator.shape_tensor(),
            operator._shape_tensor(),
            operator.batch_shape_tensor(),
            operator.tensor_rank_tensor(),
            operator.range_dimension_tensor(),
            operator.domain_dimension_tensor(),
        ]
    )
    expected = [dense.shape, dense.shape, dense.shape[:-2], dense.ndim, *dense.shape[-2:]]
    for actual, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(actual, right)


@pytest.mark.parametrize("name", NAMES)
def test_dense(name: str) -> None:
    operator, dense = PROGRAMS[name](tf), DENSE[name]
    close(run(operator.to_dense()), dense, dense)
    x = argument(dense, *dense.shape)
    close(run(operator.add_to_tensor(x)), dense + x, dense)
    close(run(operator.diag_part()), np.diagonal(dense, 0, -2, -1), dense)
    if is_square(name):
        close(run(operator.trace()), np.trace(dense, axis1=-2, axis2=-1), dense)


@pytest.mark.parametrize("name", NAMES)
def test_products(name: str) -> None:
    operator, dense = PROGRAMS[name](tf), DENSE[name]
    rows, columns = dense.shape[-2:]
    for batch in ((), dense.shape[:-2], (3, *([1] * (dense.ndim - 2)))):
        x, y = argument(dense, *batch, columns, 2), argument(dense, *batch, rows, 2)
        close(run(operator.matmul(x)), dense @ x, dense)
        close(run(operator.matmul(adjoint(x), adjoint_arg=True)), dense @ x, dense)
        close(run(operator.matmul(y, adjoint=True)), adjoint(dense) @ y, dense)
        close(run(operator.matvec(x[..., 0])), (dense @ x)[..., 0], dense)
        close(run(operator.matvec(y[..., 0], adjoint=True)), (adjoint(dense) @ y)[..., 0], dense)
    close(run(operator @ x), dense @ x, dense)


@pytest.mark.parametrize("name", [name for name in NAMES if is_regular(name)])
def test_solutions(name: str) -> None:
    operator, dense = PROGRAMS[name](tf), DENSE[name]
    inverse = np.linalg.inv(dense)
    for batch in ((), dense.shape[:-2], (3, *([1] * (dense.ndim - 2)))):
        x = argument(dense, *batch, dense.shape[-1], 2)
        close(run(operator.solve(x)), inverse @ x, dense)
        close(run(operator.solve(adjoint(x), adjoint_arg=True)), inverse @ x, dense)
        close(run(operator.solve(x, adjoint=True)), adjoint(inverse) @ x, dense)
        close(run(operator.solvevec(x[..., 0])), (inverse @ x)[..., 0], dense)
        close(run(operator.solvevec(x[..., 0], adjoint=True)), (adjoint(inverse) @ x)[..., 0], dense)


@pytest.mark.parametrize("name", [name for name in NAMES if is_square(name)])
def test_numbers(name: str) -> None:
    operator, dense = PROGRAMS[name](tf), DENSE[name]
    close(run(operator.determinant()), np.linalg.det(dense), dense)
    if is_regular(name):
        close(run(operator.log_abs_determinant()), np.linalg.slogdet(dense)[1].astype(dense.dtype), dense)
        singular = np.linalg.svd(dense, compute_uv=False)
        if operator.is_self_adjoint or "triangular" not in name:
            condition = (singular[..., 0] / singular[..., -1]).astype(dense.dtype)
            close(run(operator.cond()), condition, dense)
    if operator.is_self_adjoint:
        found = run(operator.eigvals())
        expected = np.sort(np.linalg.eigvalsh(dense))
        np.testing.assert_allclose(
            np.sort(found.real), expected, rtol=tolerance(dense), atol=tolerance(dense)
        )


@pytest.mark.parametrize("name", NAMES)
def test_operators_of_it(name: str) -> None:
    operator, dense = PROGRAMS[name](tf), DENSE[name]
    close(run(operator.adjoint().to_dense()), adjoint(dense), dense)
    close(run(operator.H.to_dense()), adjoint(dense), dense)
    square = tf.linalg.LinearOperatorFullMatrix(argument(dense, dense.shape[-1], 2))
    close(run(operator.matmul(square).to_dense()), dense @ run(square.to_dense()), dense)
    close(run(operator.matmul(operator, adjoint=True).to_dense()), adjoint(dense) @ dense, dense)
    close(run(operator.matmul(operator, adjoint_arg=True).to_dense()), dense @ adjoint(dense), dense)
    if is_regular(name):
        inverse = np.linalg.inv(dense)
        made = operator.inverse()
        close(run(made.to_dense()), inverse, dense)
        close(run(made.matmul(dense)), dense @ inverse, dense)
        close(run(made.solve(dense)), dense @ dense, dense)
        close(run(made.determinant()), np.linalg.det(inverse), dense)
        close(run(made.inverse().to_dense()), dense, dense)
        close(run(operator.solve(operator).to_dense()), inverse @ dense, dense)
    if SAID[name]["cholesky"] != "ValueError":
        factor = run(operator.cholesky().to_dense())
        close(factor @ adjoint(factor), dense, dense)


@pytest.mark.parametrize("name", NAMES)
def test_checks(name: str) -> None:
    operator, dense = PROGRAMS[name](tf), DENSE[name]
    if is_regular(name):
        run(operator.assert_non_singular())
    if is_square(name):
        hermitian = np.allclose(dense, adjoint(dense), atol=1e-12)
        if SAID[name]["is_self_adjoint"] or hermitian:
            run(operator.assert_self_adjoint())
        elif name not in ("circulant",):
            with pytest.raises(tf.errors.InvalidArgumentError):
                run(operator.assert_self_adjoint())
    if SAID[name]["is_positive_definite"]:
        run(operator.assert_positive_definite())


@pytest.mark.parametrize(
    "name", ["full definite", "diag", "update", "kronecker", "circulant", "toeplitz", "tridiag"]
)
def test_gradients_flow(name: str) -> None:
    """The gradient of a product and a solution, compared with a difference along a direction."""
    operator = PROGRAMS[name](tf)
    (parent, *_) = operator.graph_parents
    x = argument(DENSE[name], DENSE[name].shape[-1], 1)
    total = tf.reduce_sum(tf.abs(operator.solve(x))) + tf.reduce_sum(tf.abs(operator.matmul(x)))
    (gradient,) = tf.gradients(total, [parent])
    value = run(parent)
    direction = np.random.RandomState(9).standard_normal(value.shape)
    if name == "full definite":
        direction = direction + direction.swapaxes(-1, -2)
    with tf.Session() as session:
        found = np.sum(session.run(gradient).real * direction)
        up, down = (session.run(total, {parent: value + step * direction}) for step in (1e-5, -1e-5))
    np.testing.assert_allclose(found, (up - down) / 2e-5, rtol=1e-4, atol=1e-5)


# ---- unknown sizes

UNKNOWN: dict[str, Callable[[Any], Any]] = {
    "full": tf.linalg.LinearOperatorFullMatrix,
    "triangular": tf.linalg.LinearOperatorLowerTriangular,
    "kronecker": lambda x: tf.linalg.LinearOperatorKronecker(
        [tf.linalg.LinearOperatorFullMatrix(x), tf.linalg.LinearOperatorFullMatrix(x, is_square=True)]
    ),
    "block diag": lambda x: tf.linalg.LinearOperatorBlockDiag([tf.linalg.LinearOperatorFullMatrix(x)] * 2),
    "composition": lambda x: tf.linalg.LinearOperatorComposition([tf.linalg.LinearOperatorFullMatrix(x)] * 2),
    "update": lambda x: tf.linalg.LinearOperatorLowRankUpdate(tf.linalg.LinearOperatorFullMatrix(x), x / 2),
    "adjoint": lambda x: tf.linalg.LinearOperatorFullMatrix(x).adjoint(),
    "inversion": lambda x: tf.linalg.LinearOperatorFullMatrix(x).inverse(),
    "diag": lambda x: tf.linalg.LinearOperatorDiag(x[..., 0, :]),
    "circulant": lambda x: tf.linalg.LinearOperatorCirculant(0 * x[..., 0, :] + [6.0, 1, 1], tf.float64),
    "toeplitz": lambda x: tf.linalg.LinearOperatorToeplitz(x[..., 0, :], x[..., 0, :]),
    "householder": lambda x: tf.linalg.LinearOperatorHouseholder(x[..., 0, :]),
    "identity": lambda x: tf.linalg.LinearOperatorIdentity(tf.shape(x)[-1], tf.shape(x)[:-2], tf.float64),
    "scaled": lambda x: tf.linalg.LinearOperatorScaledIdentity(tf.shape(x)[-1], x[..., 0, 0]),
}


@pytest.mark.parametrize("sizes", [None, [None, None, None]], ids=["rank", "sizes"])
@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_unknown_sizes(name: str, sizes: Any) -> None:
    if sizes is None and name not in ("full", "triangular", "adjoint", "inversion"):
        sizes = [2, None, None]
    given = tf.placeholder(tf.float64, sizes)
    operator = UNKNOWN[name](given)
    value = operator_programs.DEFINITE
    with tf.Session() as session:
        dense, shape = session.run([operator.to_dense(), operator.shape_tensor()], {given: value})
        np.testing.assert_array_equal(dense.shape, shape)
        x = argument(dense, *dense.shape[:-1], 2)
        held = tf.placeholder(tf.float64, None if sizes is None else [None, None, None])
        found = session.run([operator.matmul(held), operator.solve(held)], {given: value, held: x})
    close(found[0], dense @ x, dense)
    close(found[1], np.linalg.solve(dense, x), dense)


# ---- blocks as lists


@pytest.mark.parametrize("name", ["block diag", "block lower"])
def test_lists_of_blocks(name: str) -> None:
    operator, dense = PROGRAMS[name](tf), DENSE[name]
    x = argument(dense, 2, dense.shape[-1], 2)
    first, second = x[:, :3], x[:, 3:]
    for adjoint_self in (False, True):
        matrix = adjoint(dense) if adjoint_self else dense
        product = run(operator.matmul([first, second], adjoint=adjoint_self))
        np.testing.assert_allclose(np.concatenate(product, -2), matrix @ x, atol=1e-10)
        solution = run(operator.solve([first, second], adjoint=adjoint_self))
        np.testing.assert_allclose(np.concatenate(solution, -2), np.linalg.solve(matrix, x), atol=1e-9)
        vector = run(operator.matvec([first[..., 0], second[..., 0]], adjoint=adjoint_self))
        np.testing.assert_allclose(np.concatenate(vector, -1), (matrix @ x)[..., 0], atol=1e-10)
        found = run(operator.solvevec([first[..., 0], second[..., 0]], adjoint=adjoint_self))
        np.testing.assert_allclose(np.concatenate(found, -1), np.linalg.solve(matrix, x)[..., 0], atol=1e-9)


# ---- what only one class has


def test_properties() -> None:
    update = PROGRAMS["update two sides"](tf)
    assert update.base_operator.name == "LinearOperatorFullMatrix"
    np.testing.assert_array_equal(run(update.u), operator_programs.TALL)
    np.testing.assert_array_equal(run(update.v), operator_programs.TALL[0] / 2)
    np.testing.assert_array_equal(run(update.diag_update), operator_programs.ROW[:, :2])
    assert update.is_diag_update_positive is None
    assert isinstance(update.diag_operator, tf.linalg.LinearOperatorDiag)
    plain = PROGRAMS["update"](tf)
    assert plain.diag_update is None and plain.is_diag_update_positive is True
    np.testing.assert_array_equal(run(PROGRAMS["full"](tf).matrix), operator_programs.SQUARE)
    np.testing.assert_array_equal(run(PROGRAMS["diag"](tf).diag), operator_programs.ROW)
    np.testing.assert_array_equal(run(PROGRAMS["triangular"](tf).tril), np.tril(operator_programs.SQUARE))
    np.testing.assert_array_equal(run(PROGRAMS["scaled"](tf).multiplier), operator_programs.ROW[:, 0])
    np.testing.assert_array_equal(run(PROGRAMS["householder"](tf).reflection_axis), operator_programs.ROW)
    np.testing.assert_array_equal(run(PROGRAMS["permutation"](tf).perm), [2, 0, 1])
    np.testing.assert_array_equal(run(PROGRAMS["toeplitz"](tf).col), operator_programs.ROW + 3)
    assert run(PROGRAMS["toeplitz"](tf).row).shape == (2, 3)
    tridiag = PROGRAMS["tridiag matrix"](tf)
    assert tridiag.diagonals_format == "matrix" and tridiag.diagonals is operator_programs.TRIDIAGONAL
    assert [each.name for each in PROGRAMS["composition"](tf).operators] == ["LinearOperatorFullMatrix"] * 2
    assert len(PROGRAMS["block lower"](tf).operators[1]) == 2
    assert PROGRAMS["adjoint"](tf).operator.dtype is tf.complex128
    assert PROGRAMS["inversion"](tf).operator.shape.as_list() == [2, 3, 3]
    assert sorted(PROGRAMS["full"](tf).parameters) == ["matrix"]


def test_circulant_operators() -> None:
    operator = PROGRAMS["circulant 2d"](tf)
    assert operator.block_depth == 2 and operator.block_shape.as_list() == [3, 4]
    np.testing.assert_array_equal(run(operator.block_shape_tensor()), [3, 4])
    np.testing.assert_allclose(run(operator.spectrum), operator_programs.SPECTRUM)
    kernel = run(operator.convolution_kernel())
    np.testing.assert_allclose(kernel.reshape(2, 12), DENSE["circulant 2d"][..., 0], atol=1e-12)
    run(PROGRAMS["circulant real"](tf).assert_hermitian_spectrum())
    with pytest.raises(tf.errors.InvalidArgumentError, match="not Hermitian"):
        run(operator.assert_hermitian_spectrum())
    found = run(PROGRAMS["circulant"](tf).eigvals())
    np.testing.assert_allclose(found, operator_programs.SPECTRUM[:, 0])


def test_diagonal_and_triangular_products_stay_so() -> None:
    diagonal = PROGRAMS["diag"](tf)
    both = diagonal.matmul(diagonal)
    assert isinstance(both, tf.linalg.LinearOperatorDiag)
    np.testing.assert_allclose(run(both.diag), operator_programs.ROW**2)
    identity = tf.linalg.LinearOperatorIdentity(3, dtype=tf.float64)
    assert identity.matmul(diagonal) is diagonal
    lower = PROGRAMS["triangular"](tf)
    assert isinstance(lower.matmul(lower), tf.linalg.LinearOperatorLowerTriangular)


def test_conjugate_gradients() -> None:
    operator = PROGRAMS["full definite"](tf)
    rhs = operator_programs.ROW
    solve = tf.linalg.experimental.conjugate_gradient
    expected = np.linalg.solve(operator_programs.DEFINITE, rhs[..., None])[..., 0]
    state = run(solve(operator, rhs, tol=1e-10))
    assert 0 < state.i <= 20
    np.testing.assert_allclose(state.x, expected, atol=1e-8)
    near = tf.linalg.LinearOperatorDiag(
        1 / np.diagonal(operator_programs.DEFINITE, 0, -2, -1), is_positive_definite=True
    )
    state = run(solve(operator, rhs, near, tf.constant(expected), tol=1e-6))
    assert state.i == 0
    np.testing.assert_allclose(run(solve(operator, rhs, near, tol=1e-10)).x, expected, atol=1e-8)
    assert run(solve(operator, rhs, max_iter=1)).i == 1
    with pytest.raises(ValueError, match="self-adjoint, positive definite"):
        solve(PROGRAMS["full"](tf), rhs)


# ---- hints and errors


def test_hints_follow_from_others() -> None:
    operator = tf.linalg.LinearOperatorFullMatrix(np.eye(2), is_positive_definite=True)
    assert [getattr(operator, hint) for hint in HINTS] == [True, True, None, True]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: tf.linalg.LinearOperator(tf.float32, is_positive_definite=True, is_non_singular=False),
            "always non-",
        ),
        (
            lambda: tf.linalg.LinearOperator(tf.float32, is_non_singular=True, is_square=False),
            "always square",
        ),
        (
            lambda: tf.linalg.LinearOperator(tf.float32, is_self_adjoint=True, is_square=False),
            "always square",
        ),
        (
            lambda: tf.linalg.LinearOperatorFullMatrix(np.eye(2), is_square=False).is_square,
            "operator was square",
        ),
        (lambda: tf.linalg.LinearOperatorFullMatrix(np.ones(2)), "at least 2 dimensions"),
        (lambda: tf.linalg.LinearOperatorDiag(1.0), "at least 1 dimension"),
        (lambda: tf.linalg.LinearOperatorDiag([1.0], is_self_adjoint=False), "always self adjoint"),
        (lambda: tf.linalg.LinearOperatorDiag([1.0], is_square=False), "Only square"),
        (lambda: tf.linalg.LinearOperatorLowerTriangular(np.eye(2), is_square=False), "Only square"),
        (lambda: tf.linalg.LinearOperatorIdentity(2, is_self_adjoint=False), "always self adjoint"),
        (lambda: tf.linalg.LinearOperatorIdentity(-2), "non-negative"),
        (lambda: tf.linalg.LinearOperatorIdentity([2]), "0-D"),
        (lambda: tf.linalg.LinearOperatorIdentity(2, [-1]), "non-negative"),
        (lambda: tf.linalg.LinearOperatorIdentity(2, [[1]]), "1-D"),
        (lambda: tf.linalg.LinearOperatorZeros(2, 3), "num_rows != num_columns"),
        (lambda: tf.linalg.LinearOperatorZeros(2, is_non_singular=True), "always singular"),
        (lambda: tf.linalg.LinearOperatorZeros(2).assert_non_singular(), "non-invertible"),
        (lambda: tf.linalg.LinearOperatorComposition([]), "non-empty"),
        (lambda: tf.linalg.LinearOperatorComposition([PROGRAMS["full wide"](tf)] * 2), "do not compose"),
        (
            lambda: tf.linalg.LinearOperatorComposition([PROGRAMS["triangular"](tf)], is_non_singular=False),
            "always non-singular",
        ),
        (
            lambda: tf.linalg.LinearOperatorBlockLowerTriangular([[PROGRAMS["full"](tf)]] * 2),
            "row 1 must have 2",
        ),
        (
            lambda: tf.linalg.LinearOperatorHouseholder([1.0], is_positive_definite=True),
            "non-positive definite",
        ),
        (lambda: tf.linalg.LinearOperatorCirculant([[1.0]], is_square=False), "always square"),
        (lambda: tf.linalg.LinearOperatorCirculant2D([1.0]), "at least 2 dimensions"),
        (lambda: tf.linalg.LinearOperatorToeplitz(1.0, [1.0]), "at least 1 dimension"),
        (
            lambda: tf.linalg.LinearOperatorAdjoint(PROGRAMS["full definite"](tf), is_self_adjoint=False),
            "contradicts",
        ),
        (lambda: tf.linalg.LinearOperatorInversion(PROGRAMS["full wide"](tf)), "singular"),
        (lambda: PROGRAMS["full wide"](tf).inverse(), "non square"),
        (lambda: PROGRAMS["zeros"](tf).inverse(), "singular matrix"),
        (lambda: PROGRAMS["full"](tf).cholesky(), "Cholesky"),
        (lambda: PROGRAMS["full"](tf).matmul(np.ones([4, 1])), "Dimensions 3 and 4 are not compatible"),
        (lambda: PROGRAMS["full"](tf).solve(np.ones([4, 1])), "Dimensions 3 and 4 are not compatible"),
        (lambda: PROGRAMS["full"](tf).matmul(PROGRAMS["full wide"](tf).adjoint()), "not compatible"),
        (
            lambda: tf.linalg.LinearOperatorLowRankUpdate(PROGRAMS["full"](tf), np.ones([4, 2])),
            "do not fit",
        ),
    ],
)
def test_value_errors(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PROGRAMS["full wide"](tf).determinant(), "expected to not be square"),
        (lambda: PROGRAMS["full wide"](tf).solve(np.ones([3, 1])), "expected to not be square"),
        (lambda: PROGRAMS["zeros"](tf).solvevec(np.ones([3])), "expected to be singular"),
        (lambda: PROGRAMS["full"](tf).eigvals(), "Only self-adjoint"),
        (lambda: PROGRAMS["full"](tf).assert_positive_definite(), "assert_positive_definite"),
        (lambda: tf.linalg.LinearOperator(tf.float32).shape, "_shape"),
        (lambda: tf.linalg.LinearOperator(tf.float32).shape_tensor(), "_shape"),
    ],
)
def test_what_cannot_be_said(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(NotImplementedError, match=message):
        make()


def test_types_that_differ() -> None:
    with pytest.raises(TypeError):
        tf.linalg.LinearOperatorFullMatrix(np.eye(2, dtype=np.int32))
    with pytest.raises(TypeError, match="float32"):
        PROGRAMS["full"](tf).matmul(tf.ones([3, 1]))
    with pytest.raises(TypeError, match="same dtype"):
        tf.linalg.LinearOperatorComposition([PROGRAMS["full"](tf), tf.linalg.LinearOperatorIdentity(3)])
    with pytest.raises(TypeError, match="integer"):
        tf.linalg.LinearOperatorIdentity(2.0)
    with pytest.raises(TypeError, match="integers"):
        tf.linalg.LinearOperatorPermutation([1.0, 0.0])


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            lambda: tf.linalg.LinearOperatorFullMatrix(np.zeros([2, 2])).assert_non_singular(),
            "Singular matrix",
        ),
        (lambda: tf.linalg.LinearOperatorDiag([1.0, 0.0]).assert_non_singular(), "zero values"),
        (
            lambda: tf.linalg.LinearOperatorDiag([1.0, -1.0]).assert_positive_definite(),
            "non-positive real part",
        ),
        (lambda: tf.linalg.LinearOperatorDiag([1.0, 1j]).assert_self_adjoint(), "imaginary"),
        (lambda: tf.linalg.LinearOperatorScaledIdentity(2, 0.0).assert_non_singular(), "singular"),
        (lambda: tf.linalg.LinearOperatorScaledIdentity(2, -1.0).assert_positive_definite(), "not positive"),
        (lambda: tf.linalg.LinearOperatorCirculant([1.0, 0.0]).assert_non_singular(), "zero values"),
        (
            lambda: tf.linalg.LinearOperatorCirculant([1.0, -1.0]).assert_positive_definite(),
            "not all positive",
        ),
        (lambda: tf.linalg.LinearOperatorCirculant([1.0, 1j]).assert_self_adjoint(), "not real"),
        (lambda: tf.linalg.LinearOperatorPermutation([1, 1]).assert_non_singular(), "no permutation"),
        (
            lambda: tf.linalg.LinearOperatorFullMatrix(
                -np.eye(2), is_self_adjoint=True
            ).assert_positive_definite(),
            "Cholesky",
        ),
    ],
)
def test_checks_that_fail(check: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(check())


def test_proper_shapes_are_checked_in_the_step() -> None:
    rows = tf.placeholder(tf.int32, [])
    operator = tf.linalg.LinearOperatorIdentity(rows, assert_proper_shapes=True)
    with tf.Session() as session:
        assert session.run(operator.to_dense(), {rows: 2}).shape == (2, 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="non-negative"):
            session.run(operator.to_dense(), {rows: -2})


def test_names_of_nodes() -> None:
    with tf.Graph().as_default():
        operator = tf.linalg.LinearOperatorFullMatrix(np.eye(2), name="A")
        assert operator.matmul(np.eye(2)).op.name.startswith("A/matmul/")
        assert operator.determinant().op.name.startswith("A/det/")
