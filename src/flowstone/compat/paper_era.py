"""What programs of 2015 and 2016 call things: the white paper's Figure 1 and TensorFlow 0.x.

`RENAMED` lists names that only changed; `compat.tensorflow` looks them up when flowstone lacks a name. Where
a function kept its name but not its arguments, `install()` puts one in its place that understands both forms:

| then | now |
| --- | --- |
| `placeholder(name="x")` | `placeholder(float32, name="x")` |
| `concat(axis, values)` | `concat(values, axis)` |
| `split(axis, count, value)` | `split(value, count, axis)` |
| `session.Run(fetches, feeds)` | `session.run(fetches, feeds)` |

Which form is meant is always plain: an axis is an integer where the other form has tensors.
"""

from __future__ import annotations

import numbers
from typing import Any

import flowstone

__all__ = ["RENAMED", "concat", "install", "placeholder", "split"]

RENAMED: dict[str, str] = {
    "batch_cholesky": "cholesky",
    "batch_cholesky_solve": "cholesky_solve",
    "batch_fft": "fft",
    "batch_fft2d": "fft2d",
    "batch_fft3d": "fft3d",
    "batch_ifft": "ifft",
    "batch_ifft2d": "ifft2d",
    "batch_ifft3d": "ifft3d",
    "batch_matmul": "matmul",
    "batch_matrix_band_part": "matrix_band_part",
    "batch_matrix_determinant": "matrix_determinant",
    "batch_matrix_diag": "matrix_diag",
    "batch_matrix_diag_part": "matrix_diag_part",
    "batch_matrix_inverse": "matrix_inverse",
    "batch_matrix_set_diag": "matrix_set_diag",
    "batch_matrix_solve": "matrix_solve",
    "batch_matrix_solve_ls": "matrix_solve_ls",
    "batch_matrix_transpose": "matrix_transpose",
    "batch_matrix_triangular_solve": "matrix_triangular_solve",
    "batch_self_adjoint_eig": "self_adjoint_eig",
    "batch_svd": "svd",
    "complex_abs": "abs",
    "inv": "reciprocal",
    "listdiff": "setdiff1d",
    "mul": "multiply",
    "neg": "negative",
    "pack": "stack",
    "select": "where",
    "sub": "subtract",
    "unpack": "unstack",
}

_placeholder: Any = flowstone.placeholder
_concat: Any = flowstone.concat
_split: Any = flowstone.split


def placeholder(dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """`tf.placeholder`, float32 where no dtype is given, as in Figure 1 of the white paper."""
    return _placeholder(flowstone.float32 if dtype is None else dtype, shape, name)


def _is_axis(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def concat(values: Any = None, axis: Any = None, name: str = "concat", *, concat_dim: Any = None) -> Any:
    """`tf.concat(values, axis)`, or `tf.concat(concat_dim, values)` of TensorFlow 0.x."""
    if concat_dim is not None:
        # The values may have come under their name or alone as the first argument.
        axis = concat_dim
    elif _is_axis(values) and not _is_axis(axis):
        values, axis = axis, values
    return _concat(values, axis, name)


def split(
    value: Any = None,
    num_or_size_splits: Any = None,
    axis: Any = 0,
    num: int | None = None,
    name: str = "split",
    *,
    split_dim: Any = None,
    num_split: int | None = None,
) -> Any:
    """`tf.split(value, sizes, axis)`, or `tf.split(split_dim, num_split, value)` of TensorFlow 0.x."""
    if num_split is not None:
        num_or_size_splits = num_split
    if split_dim is not None:
        axis = split_dim
    elif _is_axis(value) and not _is_axis(axis):
        value, axis = axis, value
    return _split(value, num_or_size_splits, axis, num, name)


def install() -> None:
    """Makes both forms understood by `flowstone.placeholder`, `.concat`, `.split` and by sessions."""
    public: Any = flowstone
    public.placeholder = placeholder
    public.concat = concat
    public.split = split
    public.train.SummaryWriter = public.summary.FileWriter
    for session in (public.Session, public.InteractiveSession):
        session.Run = session.run
