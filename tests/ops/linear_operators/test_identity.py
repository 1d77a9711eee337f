"""LinearOperatorIdentity: its nodes (its values are in `test_linear_operators.py`)."""

from __future__ import annotations

import flowstone as tf


def test_nodes_are_those_of_tensorflow() -> None:
    """Known sizes are one constant each, and a batch shape that is not given is none: later ops without seeds
    of their own have TensorFlow 1.15's seeds."""
    with tf.Graph().as_default() as graph:
        identity = tf.linalg.LinearOperatorIdentity(4)
        identity.range_dimension_tensor()
        identity.batch_shape_tensor()
        identity.log_abs_determinant()
        found = [(op.type, op.name) for op in graph.get_operations()]
    method = "LinearOperatorIdentity/log_abs_det"
    assert found == [
        ("Const", "LinearOperatorIdentity/num_rows"),
        ("Const", "LinearOperatorIdentity/range_dimension_tensor/Const"),
        ("Const", "LinearOperatorIdentity/batch_shape_tensor/batch_shape"),
        ("Const", f"{method}/LinearOperatorIdentity/batch_shape_tensor/batch_shape"),
        ("Const", f"{method}/zeros/Const"),
        ("Fill", f"{method}/zeros"),
    ]
