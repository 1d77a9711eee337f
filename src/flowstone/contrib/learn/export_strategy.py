"""`ExportStrategy`: how an Experiment exports its model."""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable
from typing import Any

__all__ = ["ExportStrategy"]

_Fields = namedtuple("_Fields", ["name", "export_fn", "strip_default_attrs"])


class ExportStrategy(_Fields):
    """A way to export a model.

    Args:
        name: of the folder below the model's ``export`` folder.
        export_fn: a function of (estimator, folder) and any of `checkpoint_path`, `eval_result`,
            `strip_default_attrs`, that returns the path of the export.
        strip_default_attrs: whether attributes with default values are left out.
    """

    __slots__ = ()

    def __new__(
        cls, name: str, export_fn: Callable[..., Any], strip_default_attrs: bool | None = None
    ) -> ExportStrategy:
        return super().__new__(cls, name, export_fn, strip_default_attrs)

    def export(
        self, estimator: Any, export_path: Any, checkpoint_path: Any = None, eval_result: Any = None
    ) -> Any:
        """Exports a checkpoint of the Estimator, the latest if None, into the folder; returns the export's
        path.

        ValueError if results of an evaluation, or a checkpoint, are given that `export_fn` does not take.
        """
        names = inspect.signature(self.export_fn).parameters
        kwargs: dict[str, Any] = {}
        for name, value in (("checkpoint_path", checkpoint_path), ("eval_result", eval_result)):
            if name in names:
                kwargs[name] = value
            elif value is not None and name == "checkpoint_path":
                raise ValueError("An export_fn accepting checkpoint_path must be used.")
        if "strip_default_attrs" in names and self.strip_default_attrs is not None:
            kwargs["strip_default_attrs"] = self.strip_default_attrs
        return self.export_fn(estimator, export_path, **kwargs)
