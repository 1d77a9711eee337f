"""`tensorflow.python.ops.linalg.linear_operator_util`: products and solutions of stacks of matrices whose
leading dimensions are broadcast."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = [
    "broadcast_matrix_batch_dims",
    "matmul_with_broadcast",
    "matrix_triangular_solve_with_broadcast",
]


def broadcast_matrix_batch_dims(batch_matrices: Any, name: str | None = None) -> list[Any]:
    """The matrices, of shapes [..., m, n], with all leading dimensions broadcast to the same.

    Raises ValueError for a tensor that is known to have fewer than two dimensions.
    """
    with tf.name_scope(name or "broadcast_matrix_batch_dims", values=batch_matrices):
        matrices = [tf.convert_to_tensor(matrix) for matrix in batch_matrices]
        for matrix in matrices:
            matrix.shape.with_rank_at_least(2)
        if len(matrices) < 2:
            return matrices
        lead = tf.shape(matrices[0])[:-2]
        for matrix in matrices[1:]:
            lead = tf.broadcast_dynamic_shape(lead, tf.shape(matrix)[:-2])
        return [tf.broadcast_to(x, tf.concat([lead, tf.shape(x)[-2:]], 0)) for x in matrices]


def matmul_with_broadcast(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """`tf.matmul` of stacks whose leading dimensions are broadcast."""
    with tf.name_scope(name or "MatMulWithBroadcast", values=[a, b]):
        a, b = tf.convert_to_tensor(a), tf.convert_to_tensor(b)
        if a.shape.ndims != 2 or b.shape.ndims != 2:
            a, b = broadcast_matrix_batch_dims([a, b])
        return tf.matmul(a, b, transpose_a, transpose_b, adjoint_a, adjoint_b, a_is_sparse, b_is_sparse)


def matrix_triangular_solve_with_broadcast(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Any:
    """`tf.linalg.triangular_solve` of stacks whose leading dimensions are broadcast."""
    with tf.name_scope(name or "MatrixTriangularSolve", values=[matrix, rhs]):
        matrix, rhs = tf.convert_to_tensor(matrix), tf.convert_to_tensor(rhs)
        if matrix.shape.ndims != 2 or rhs.shape.ndims != 2:
            matrix, rhs = broadcast_matrix_batch_dims([matrix, rhs])
        return tf.linalg.triangular_solve(matrix, rhs, lower=lower, adjoint=adjoint)
