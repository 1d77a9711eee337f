"""`tf.dtypes.experimental`: the types of less than eight bits, and of eight for floats, which are refused."""

from __future__ import annotations

from typing import NoReturn

from flowstone.framework.names.refusals import NotInGraphModeError

__all__ = ["experimental"]

_EIGHT_BITS = "tf.bfloat16 or tf.float16"
_FEW_BITS = "tf.int8 or tf.uint8, with tf.clip_by_value for the range"
_INSTEAD = {
    "float4_e2m1fn": _EIGHT_BITS, "float8_e4m3b11fnuz": _EIGHT_BITS, "float8_e4m3fn": _EIGHT_BITS,
    "float8_e4m3fnuz": _EIGHT_BITS, "float8_e5m2": _EIGHT_BITS, "float8_e5m2fnuz": _EIGHT_BITS,
    "int2": _FEW_BITS, "int4": _FEW_BITS, "uint2": _FEW_BITS, "uint4": _FEW_BITS,
}  # fmt: skip


class NoSuchTypeError(NotInGraphModeError, AttributeError):
    """A type of later TensorFlows that no kernel computes with."""


class _SmallTypes:
    """Says of each of these types what to use instead: NoSuchTypeError, an AttributeError."""

    def __getattr__(self, name: str) -> NoReturn:
        if name in _INSTEAD:
            raise NoSuchTypeError(f"flowstone has no tf.dtypes.experimental.{name}: use {_INSTEAD[name]}")
        raise AttributeError(f"tf.dtypes.experimental has no name {name!r}")


experimental = _SmallTypes()
