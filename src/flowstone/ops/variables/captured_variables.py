"""`tf.contrib.checkpoint.capture_dependencies`: an object holds the variables that are made in its scope."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flowstone.ops.variables.variable_creation import variable_creator_scope

__all__ = ["capture_dependencies"]


@contextmanager
def capture_dependencies(template: Any) -> Iterator[None]:
    """Within the context, checkpoints of `template` have the variables that are made in its variable scope.

    Args:
        template: an object with a `variable_scope`, such as `make_template` gives. A variable's name in
            checkpoints is the one in the scope.
    """
    prefix = template.variable_scope.name + "/"

    def create(next_creator: Callable[..., Any], **arguments: Any) -> Any:
        variable, name = next_creator(**arguments), arguments.get("name")
        if name is not None and name.startswith(prefix):
            own = name[len(prefix) :]
            if hasattr(template, "_track_trackable"):
                template._track_trackable(variable, own)
            else:
                vars(template)[own] = variable
        return variable

    with variable_creator_scope(create):
        yield
