"""`tf.contrib.factorization.WALSModel`: updates, projections, losses; the numbers are TensorFlow 1.15's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

random = np.random.RandomState(0)
MATRIX = random.rand(7, 5).round(2) * (random.rand(7, 5) < 0.5)
U, V = (random.randn(size, 3).astype(np.float32).round(2) for size in (7, 5))

SHARDS: dict[str, Any] = {
    "num_row_shards": 2,
    "num_col_shards": 3,
    "regularization": 0.05,
    "row_weights": [[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 0.5]],
    "col_weights": [[1.0, 2.0], [3.0, 1.0], [2.0]],
}
# What two sweeps give: of each the loss, the regularisation and the sum of weights of the rows 0 to 2, of all
# rows and of all columns, then the first two factors of a projected row and of a projected column.
CASES: list[tuple[dict[str, Any], list[list[float]]]] = [
    (
        {},
        [
            [5.862, 0, 28, 5.404, 0, 28, 0.6526, 0, 24.5, 0.4749, 0.07028, 0.5909, 0.7146],
            [0.4636, 0, 28, 0.3279, 0, 28, 0.2931, 0, 24.5, 0.4012, -0.1937, 0.6759, 0.7481],
        ],
    ),
    (
        {"row_weights": None, "col_weights": None, "regularization": 0.1},
        [
            [0.6499, 1.638, 3.5, 0.5784, 1.634, 3.5, 0.5881, 0.1202, 3.5, 0.2584, 0.1528, 0.1422, 0.1165],
            [0.5722, 0.2537, 3.5, 0.4857, 0.2099, 3.5, 0.3116, 0.2763, 3.5, 0.4879, 0.1614, 0.2446, 0.08675],
        ],
    ),
    (
        SHARDS,
        [
            [16.79, 0.9042, 115.5, 12.54, 1.245, 89.83, 1.987, 1.022, 77.5, 0.4212, 0.05258, 0.6033, 1.019],
            [0.3144, 0.706, 115.5, 0.7675, 1.03, 89.83, 0.508, 0.9515, 77.5, 0.4036, 0.1923, 0.6147, 1.033],
        ],
    ),
    (
        {
            "use_factors_weights_cache": False,
            "use_gramian_cache": False,
            "regularization": 0.2,
            "unobserved_weight": 0.01,
        },
        [
            [5.128, 3.493, 24.85, 4.962, 3.433, 24.85, 1.328, 1.79, 21.35, 0.3515, 0.1507, 0.5927, 0.3333],
            [
                0.1396,
                1.948,
                24.85,
                0.2223,
                1.965,
                24.85,
                0.4064,
                1.507,
                21.35,
                0.4762,
                0.08914,
                0.5328,
                0.2253,
            ],
        ],
    ),
]


def sparse(matrix: Any, rows: Any = None) -> Any:
    places = np.array([i for i in np.argwhere(matrix != 0) if rows is None or i[0] in rows])
    return tf.SparseTensor(places, matrix[tuple(places.T)].astype(np.float32), matrix.shape)


def in_shards(factors: Any, count: int) -> Any:
    return np.array_split(factors, count) if count > 1 else factors


@pytest.mark.parametrize("given, expected", CASES)
def test_sweeps(given: dict[str, Any], expected: list[list[float]]) -> None:
    rows, columns = (given.get(f"num_{axis}_shards", 1) for axis in ("row", "col"))
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.contrib.factorization.WALSModel(
            7, 5, 3, row_init=in_shards(U, rows), col_init=in_shards(V, columns), **given
        )
        session.run(model.initialize_op)
        session.run(tf.local_variables_initializer())
        session.run(model.worker_init)
        is_weighted = model.row_weights is not None
        some = model.update_row_factors(sp_input=sparse(MATRIX, [0, 1, 2]))
        every = model.update_row_factors(sp_input=sparse(MATRIX.T), transpose_input=True)
        of_columns = model.update_col_factors(sp_input=sparse(MATRIX))
        row = model.project_row_factors(sparse(MATRIX[2:4]), False, 0.5 if is_weighted else None)
        column = model.project_col_factors(
            sparse(MATRIX[:, 1:3].T), True, [1.0, 2.0] if is_weighted else None
        )
        for sweep in expected:
            session.run(model.row_update_prep_gramian_op)
            session.run(model.initialize_row_update_op)
            found = [*session.run(some)[2:], *session.run(every)[2:]]
            projected = session.run(row)[0, :2]
            session.run(model.col_update_prep_gramian_op)
            session.run(model.initialize_col_update_op)
            found += [*session.run(of_columns)[2:], *projected, *session.run(column)[0, :2]]
            np.testing.assert_allclose(found, sweep, rtol=1e-3, atol=1e-5)


def test_names_of_variables() -> None:
    with tf.Graph().as_default():
        tf.contrib.factorization.WALSModel(7, 5, 3, num_row_shards=2, use_scoped_vars=True)
        names = {variable.op.name for variable in tf.global_variables()}
        local = {variable.op.name for variable in tf.local_variables()}
    assert {"row_factors/row_factors_shard_1", "col_weights/col_weights_shard_0", "row_gramian"} <= names
    assert {"transient_vars/row_wt_cache_shard_1", "transient_vars/col_gramian_cache"} <= local


def test_wrong_weights() -> None:
    model = tf.contrib.factorization.WALSModel
    with pytest.raises(AssertionError):
        model(7, 5, 3, row_weights=None)
    with pytest.raises(AssertionError):
        model(7, 5, 3, row_weights=[1.0, 2.0])
    with pytest.raises(ValueError, match="Invalid weight initialization argument"):
        model(7, 5, 3, row_weights=-1.0)
