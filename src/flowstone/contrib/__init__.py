"""`tf.contrib`: what TensorFlow 1.x had beside its core, as far as programs use it.

Each package of TensorFlow's is a package or a file of this room, imported when a program first asks for it.
`package_names` makes the names of such a package, `module_paths` says where the names of the modules within
TensorFlow's packages are found (`tf.contrib.layers.python.layers.layers`), `absent` what to use instead of a
package that is not here. The code of this room is a user of flowstone's public names, as a program is.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from flowstone.contrib.absent import nearest
from flowstone.contrib.module_paths import ELSEWHERE, find_contrib_sources, is_ours, module_names
from flowstone.framework.names.alias_modules import add_paths, alias_module

add_paths(find_contrib_sources)


def __getattr__(name: str) -> ModuleType:
    module: ModuleType | None = None
    if not name.startswith("_"):
        if is_ours(name):
            module = import_module(f"{__name__}.{name}")
        elif name in ELSEWHERE:
            module = alias_module(f"tensorflow.contrib.{name}")
    if module is None:
        raise AttributeError(nearest(name))
    globals()[name] = module
    return module


def __dir__() -> list[str]:
    ours = {name for name in module_names() if is_ours(name) or name in ELSEWHERE}
    return sorted(ours.union(globals()))
