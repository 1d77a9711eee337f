"""How samples depend on a distribution's parameters."""

from __future__ import annotations

__all__ = ["FULLY_REPARAMETERIZED", "NOT_REPARAMETERIZED", "ReparameterizationType"]


class ReparameterizationType:
    """Whether gradients flow from samples to parameters.

    `FULLY_REPARAMETERIZED` and `NOT_REPARAMETERIZED` are the two that distributions have. A type equals only
    itself.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._rep_type}>"

    def __eq__(self, other: object) -> bool:
        return self is other


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")
