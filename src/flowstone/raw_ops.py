"""`flowstone.raw_ops`: a function for each op, named as the op, whose arguments are keywords."""

from typing import Any

from flowstone.framework.declarations.op_functions import keywords_only, public_types


def __getattr__(name: str) -> Any:
    if name[:1].isupper():
        try:
            function = globals()[name] = keywords_only(name)
        except KeyError:
            pass
        else:
            return function
    raise AttributeError(f"flowstone.raw_ops has no op {name!r}")


def __dir__() -> list[str]:
    return public_types()
