"""What Estimators have in common with those of scikit-learn."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from flowstone.contrib.learn.constants import NotFittedError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["NotFittedError", "_BaseEstimator"]


class _BaseEstimator:
    """The parameters of an estimator: its public attributes."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name.

        `deep`: whether those of parameters that are estimators are there too, as ``NAME__PARAMETER``.
        """
        found: dict[str, Any] = {}
        for name in sorted(vars(self)):
            if name.startswith("_"):
                continue
            value: Any = getattr(self, name)
            if deep and hasattr(value, "get_params") and not inspect.isclass(value):
                found.update({f"{name}__{each}": of for each, of in value.get_params().items()})
            found[name] = value
        return found

    def set_params(self, **params: Any) -> Self:
        """Changes parameters, those of a parameter by ``NAME__PARAMETER``; ValueError for unknown names."""
        valid = self.get_params(deep=True)
        for name, value in params.items():
            owner, _, below = name.partition("__")
            if owner not in valid:
                raise ValueError(
                    f"Invalid parameter {owner} for estimator {type(self).__name__}. Check the list of "
                    "available parameters with `estimator.get_params().keys()`."
                )
            if below:
                valid[owner].set_params(**{below: value})
            else:
                setattr(self, owner, value)
        return self

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({parts})"
