"""`tensorflow.python.autograph.impl.api` of TensorFlow 1.15."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone import conversion
from flowstone.autograph import do_not_convert as do_not_convert
from flowstone.autograph import to_code as to_code
from flowstone.autograph import to_graph as to_graph
from flowstone.compat.internals.autograph_core_ag_ctx import Status
from flowstone.contrib.autograph.older_names import convert as convert

__all__ = ["convert", "converted_call", "do_not_convert", "tf_convert", "to_code", "to_graph"]


def converted_call(f: Any, options: Any, args: Any, kwargs: Any, caller_fn_scope: Any = None) -> Any:
    """A call of the converted function."""
    return conversion.convert(f)(*args, **(kwargs or {}))


def tf_convert(
    f: Any, ctx: Any, convert_by_default: bool = True, user_requested: bool = False
) -> Callable[..., Any]:
    """The function, converted if `ctx` says so, or says nothing and `convert_by_default` does."""
    status = getattr(ctx, "status", Status.UNSPECIFIED)
    wanted = status is Status.ENABLED or (status is Status.UNSPECIFIED and convert_by_default)
    return conversion.convert(f) if wanted else do_not_convert(f)  # type: ignore[no-any-return]
