"""`SaveSliceInfo`: where a part of a partitioned variable lies in the whole, as checkpoints are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.types.tensor_proto import messages


def without_scope(name: str, export_scope: str | None) -> str:
    """`name` as seen from inside `export_scope`."""
    if not export_scope:
        return name
    prefix = export_scope if export_scope.endswith("/") else export_scope + "/"
    return name[len(prefix) :] if name.startswith(prefix) else name


class SaveSliceInfo:
    """Which part of a larger variable this one is, so that checkpoints hold the whole.

    `full_name`, `full_shape`: of the whole; `var_offset`, `var_shape`: where the part begins and how large
    it is.
    """

    def __init__(
        self,
        full_name: str | None = None,
        full_shape: Sequence[int] | None = None,
        var_offset: Sequence[int] | None = None,
        var_shape: Sequence[int] | None = None,
        save_slice_info_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if save_slice_info_def is not None:
            part = save_slice_info_def
            full_name = part.full_name if import_scope is None else f"{import_scope}/{part.full_name}"
            full_shape, var_offset, var_shape = (
                list(part.full_shape),
                list(part.var_offset),
                list(part.var_shape),
            )
        self.full_name, self.full_shape = full_name, full_shape
        self.var_offset, self.var_shape = var_offset, var_shape

    @property
    def spec(self) -> str:
        """The text that names the part in a checkpoint: the whole's shape, then offset,size of each
        dimension.
        """
        whole = " ".join(str(size) for size in self.full_shape or ())
        parts = ":".join(
            f"{offset},{size}" for offset, size in zip(self.var_offset or (), self.var_shape or ())
        )
        return f"{whole} {parts}"

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A SaveSliceInfoDef message; None if the variable lies outside `export_scope`."""
        name = self.full_name or ""
        if export_scope is not None and not name.startswith(export_scope):
            return None
        message = messages("variable_pb2").SaveSliceInfoDef(full_name=without_scope(name, export_scope))
        message.full_shape.extend(self.full_shape or ())
        message.var_offset.extend(self.var_offset or ())
        message.var_shape.extend(self.var_shape or ())
        return message
