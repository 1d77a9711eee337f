"""Variables that are cast where they are read."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.keras.mixed_precision.cast_variables import as_cast, cast_to


def test_reads_are_cast_within_the_context_alone() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = as_cast(tf.Variable([1.0, 2.0], use_resource=True))
        with cast_to(tf.float16):
            half = variable * 2
            rows = variable.gather_nd([[1]])
            with cast_to(None):
                whole = tf.identity(variable)
            with pytest.raises(ValueError, match="to type 'float32' for variable of type 'float16'"):
                tf.convert_to_tensor(variable, tf.float32)
            update = variable.assign_add([1.0, 1.0])
        assert (half.dtype, rows.dtype, whole.dtype) == (tf.float16, tf.float16, tf.float32)
        session.run(variable.initializer)
        assert session.run([half, rows])[0].tolist() == [2.0, 4.0]
        assert session.run(update).tolist() == [2.0, 3.0]
