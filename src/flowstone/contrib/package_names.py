"""The names of a package of `tf.contrib`, imported when asked for, and the modules within that package.

__getattr__, __dir__ = package_names(globals(), {"flowstone.contrib.crf.chains": "crf_decode"})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flowstone.framework.names.alias_modules import alias_module
from flowstone.framework.names.late_names import late_names

__all__ = ["package_names"]


def package_names(
    module: dict[str, Any], names: Mapping[str, str], namespaces: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package of contrib; the arguments are `late_names`'s.

    A name that the tables lack may be a module within TensorFlow's package: `tf.contrib.slim.python`.
    """
    get_late, names_of_all = late_names(module, names, namespaces)
    tensorflow_name = module["__name__"].replace("flowstone", "tensorflow", 1)

    def get(name: str) -> Any:
        try:
            return get_late(name)
        except AttributeError:
            within = None if name.startswith("_") else alias_module(f"{tensorflow_name}.{name}")
            if within is None:
                raise AttributeError(f"flowstone does not have the name {tensorflow_name}.{name}") from None
        module[name] = within
        return within

    return get, names_of_all
