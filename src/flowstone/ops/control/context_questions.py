"""What TensorFlow's control-flow contexts answer under the names that its internal modules use."""

from __future__ import annotations

from typing import Any

__all__ = ["ContextQuestions"]


class ContextQuestions:
    """The questions that a `CondContext` and a `WhileContext` answer alike."""

    loop: Any  # the innermost loop around operations of this context, or None

    def IsCondContext(self) -> bool:
        """Whether it is a branch of a conditional."""
        return not self.IsWhileContext()

    def IsWhileContext(self) -> bool:
        """Whether it is a loop."""
        return self.loop is self

    def IsXLAContext(self) -> bool:
        """False: there is no context of TensorFlow's compiler."""
        return False

    def GetWhileContext(self) -> Any:
        """The innermost loop around operations of this context; None if there is none."""
        return self.loop
