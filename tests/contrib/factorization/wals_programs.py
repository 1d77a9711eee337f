"""Programs of WALSMatrixFactorization that TensorFlow 1.15.5 and flowstone run alike; each gives arrays."""

import numpy as np

RANDOM = np.random.RandomState(1)
ROWS, COLS = 8, 6
MATRIX = (RANDOM.rand(ROWS, COLS).round(2) + 0.01) * (RANDOM.rand(ROWS, COLS) < 0.6)
MATRIX[range(6), range(6)] += 0.3  # no row or column is empty
MATRIX[6:, 0] += 0.2
ROW_INIT, COL_INIT = (RANDOM.randn(size, 3).astype(np.float32).round(2) for size in (ROWS, COLS))
NEW = RANDOM.rand(3, COLS).round(2)
CASES = {
    "whole": ({}, 1, 4),
    "in batches": ({"regularization_coeff": 0.1, "unobserved_weight": 0.05}, 2, 7),
    "in shards": (
        {"num_row_shards": 2, "num_col_shards": 3, "regularization_coeff": 0.05,
         "row_weights": [[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 0.5, 1.0]], "col_weights": 2.0,
         "use_factors_weights_cache_for_training": False, "use_gramian_cache_for_training": False},
        2,
        8,
    ),
    "unweighted": ({"row_weights": None, "col_weights": None, "regularization_coeff": 0.2}, 1, 3),
}  # fmt: skip


def sparse(tf, matrix):
    """The elements of a matrix that are not zero."""
    indices = np.argwhere(matrix)
    return tf.SparseTensor(
        indices.astype(np.int64), matrix[tuple(indices.T)].astype(np.float32), matrix.shape
    )


def batches(tf, count):
    """An input function that gives an interleaved `count`-th of the rows and of the columns at a time."""

    def input_fn():
        number = tf.data.Dataset.range(count).repeat().make_one_shot_iterator().get_next()
        parts = []
        for matrix in (MATRIX, MATRIX.T):
            whole = sparse(tf, matrix)
            parts.append(tf.sparse_retain(whole, tf.equal(whole.indices[:, 0] % count, number)))
        return {"input_rows": parts[0], "input_cols": parts[1]}, None

    return input_fn


def projected(tf, is_of_rows, matrix, weights=None):
    """An input function for a projection, or for a loss."""

    def input_fn():
        features = {
            "input_rows": sparse(tf, matrix),
            "input_cols": sparse(tf, matrix),
            "project_row": tf.constant(is_of_rows),
        }
        if weights is not None:
            features["projection_weights"] = tf.constant(weights)
        return features, None

    return input_fn


def factorization(tf, folder, arguments, count, steps):
    """What is found after some steps, and after further ones that go on from the checkpoint."""
    shards = (arguments.get("num_row_shards", 1), arguments.get("num_col_shards", 1))
    inits = [
        np.array_split(init, number) if number > 1 else init
        for init, number in zip((ROW_INIT, COL_INIT), shards)
    ]

    def made():
        return tf.contrib.factorization.WALSMatrixFactorization(
            ROWS, COLS, 3, row_init=inits[0], col_init=inits[1], model_dir=folder, **arguments
        )

    model = made()
    model.fit(input_fn=batches(tf, count), steps=steps)
    first = model.get_row_factors() + model.get_col_factors()
    model = made()
    model.fit(input_fn=batches(tf, count), steps=steps + 1)
    results = {"first/" + str(i): value for i, value in enumerate(first)}
    results.update((name, model.get_variable_value(name)) for name in model.get_variable_names())
    results["projected rows"] = list(model.get_projections(projected(tf, True, NEW)))
    results["projected cols"] = list(
        model.get_projections(projected(tf, False, NEW[:, :1] + MATRIX.T[:3] * 0))
    )
    if arguments.get("row_weights", 1) is not None:
        results["weighted"] = list(model.get_projections(projected(tf, True, NEW, [0.5, 1.0, 2.0])))
    for is_of_rows, matrix in ((True, MATRIX), (False, MATRIX.T)):
        evaluated = model.evaluate(input_fn=projected(tf, is_of_rows, matrix), steps=1)
        results["loss " + str(is_of_rows)] = evaluated["loss"]
    return {key: np.asarray(value) for key, value in results.items()}
