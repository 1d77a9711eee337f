"""An objective and constraints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["ConstrainedMinimizationProblem"]


class ConstrainedMinimizationProblem(ABC):
    """Minimise `objective` where all `constraints` are at most 0."""

    @property
    @abstractmethod
    def objective(self) -> Any:
        """The scalar tensor that is minimised."""

    @property
    @abstractmethod
    def constraints(self) -> Any:
        """A float tensor of known shape whose elements shall be at most 0; it may have no useful gradient."""

    @property
    def num_constraints(self) -> int:
        """The number of the constraints. ValueError if the shape of `constraints` is not known."""
        count = self.constraints.shape.num_elements()
        if count is None:
            raise ValueError("constraints must be of known size")
        return int(count)

    @property
    def proxy_constraints(self) -> Any:
        """A differentiable tensor of the shape of `constraints` that gives their gradients, or None."""
        return None

    @property
    def pre_train_ops(self) -> list[Any]:
        """Operations that run before each step."""
        return []
