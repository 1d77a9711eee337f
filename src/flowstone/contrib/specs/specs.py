"""Networks from specs: a line or several of Python in the short names of `specs_ops`, which assign ``net``.

create_net("net = Cr(64, [5, 5]) | Mp([2, 2]) | Flat | Fm(10)", images)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from flowstone.contrib.specs import params_ops, specs_lib, specs_ops

__all__ = [
    "LocalImport",
    "create_net",
    "create_net_fun",
    "eval_params",
    "eval_spec",
    "ops",
    "params_ops",
    "specs_lib",
    "specs_ops",
]


def eval_params(params: str, environment: dict[str, Any] | None = None) -> dict[str, Any]:
    """The names that lines of Python assign, with the functions of `params_ops` and of `math`.

    The lines find, and the result has, what `environment` has too. Raises ValueError for the keywords that
    `check_keywords` refuses.
    """
    specs_lib.check_keywords(params)
    found = {} if environment is None else environment
    exec(params, dict(vars(params_ops)), found)
    return found


def eval_spec(spec: str, environment: dict[str, Any] | None = None) -> dict[str, Any]:
    """The names that a spec assigns, with those of `environment`, which it finds beside those of `specs_ops`.

    Raises ValueError for the keywords that `check_keywords` refuses.
    """
    specs_lib.check_keywords(spec)
    found = {} if environment is None else environment
    exec(spec, dict(vars(specs_ops)), found)
    return found


def create_net_fun(spec: str, environment: dict[str, Any] | None = None) -> Callable[[Any], Any]:
    """The function of a tensor that a spec assigns to ``net``; ValueError if it assigns none."""
    specs = eval_spec(spec, environment)
    if "net" not in specs:
        raise ValueError(f"spec failed to create 'net': {spec}")
    function: Callable[[Any], Any] = specs["net"].funcall
    return function


def create_net(spec: str, inputs: Any, environment: dict[str, Any] | None = None) -> Any:
    """The network of a spec applied to `inputs`; ValueError if the spec assigns no ``net``."""
    return create_net_fun(spec, environment)(inputs)


class LocalImport:
    """Has the names of a mapping among the caller's globals, within a `with`.

        with specs.ops:
            net = (Cr(64, [5, 5]) | Fm(10)).funcall(images)

    Args:
        names: a mapping or a module.
    """

    def __init__(self, names: Any) -> None:
        self.names: Mapping[str, Any] = names if isinstance(names, Mapping) else vars(names)
        self.frames: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def __enter__(self) -> None:
        caller = sys._getframe(1).f_globals
        names = {name: value for name, value in self.names.items() if not name.startswith("__")}
        self.frames.append((caller, {name: caller[name] for name in names if name in caller}))
        caller.update(names)

    def __exit__(self, *exception: object) -> None:
        caller, before = self.frames.pop()
        for name in self.names:
            if not name.startswith("__"):
                caller.pop(name, None)
        caller.update(before)


ops = LocalImport(specs_ops)
