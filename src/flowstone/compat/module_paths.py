"""Where the names of TensorFlow's internal modules are found in flowstone: the answers behind
`compat.tensorflow_name`.

`public_twins.txt` lists the modules of TensorFlow 1.4 and which of their names are public objects,
`later_twins.txt` what came until 1.15; such a name is that object (`find_object`). For the others
`find_sources("tensorflow.python.ops.nn_ops")` gives the modules in which they are looked up, in order: the
file of the package `internals` with the module's name (`internals/framework_ops.py` for
`tensorflow.python.framework.ops`), then those of `module_sources.py`: public namespaces, and rooms for names
that were never public. A source that does not exist is passed over. `None` says that TensorFlow's module has
no counterpart here, an empty tuple that it holds modules only.

    >>> find_sources("tensorflow.python.ops.nn_ops")[0]
    'flowstone.compat.internals.ops_nn_ops'
    >>> find_sources("tensorflow.python.nonsense") is None
    True
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from flowstone.compat.module_sources import listed_sources
from flowstone.framework.names.alias_modules import add_neighbours, add_objects, add_paths

_GENERATED = re.compile(r"tensorflow\.python\.(ops|training)\.gen_\w+_ops")
# Generated protocol buffers: the common ones are the package tensorboard's.
PROTO_PACKAGES = ("tensorboard.compat.proto", "flowstone.io.proto")


def _twins() -> dict[str, dict[str, str]]:
    """For each module of TensorFlow 1.x: its names that are public objects, and the objects' dotted names."""
    twins: dict[str, dict[str, str]] = {}
    for era in ("public_twins.txt", "later_twins.txt"):
        text = (Path(__file__).parent / era).read_text(encoding="utf-8")
        for line in text.split("\n\n", 1)[1].replace("\n    ", " ").splitlines():
            if not line.startswith(" "):
                names = twins.setdefault(f"tensorflow.python.{line}", {})
                continue
            namespace, _, items = line.strip().partition(": ")
            for item in items.split():
                own, _, public = item.partition("=")
                names[own] = f"flowstone{namespace.removeprefix('tf')}.{public or own}"
    return twins


PUBLIC_TWINS: dict[str, dict[str, str]] = _twins()


def _with_parents(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        parts = name.split(".")
        yield from (".".join(parts[:end]) for end in range(2, len(parts) + 1))


def _own_file(name: str) -> str | None:
    """The file of the package `internals` that has a module's names, if there is one."""
    leaf = name.removeprefix("tensorflow.python.").replace(".", "_")
    if (Path(__file__).parent / "internals" / f"{leaf}.py").exists():
        return f"flowstone.compat.internals.{leaf}"
    return None


def _table() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {"tensorflow.core": ()}
    families_of_core = "example framework kernels kernels.boosted_trees lib lib.core profiler protobuf util"
    for family in families_of_core.split():
        table[f"tensorflow.core.{family}"] = ()
    table |= {name: tuple(sources) for name, sources in listed_sources()}
    for name in list(_with_parents([*PUBLIC_TWINS, *table])):
        table.setdefault(name, ())
    for name, listed in table.items():
        own = _own_file(name)
        if own is not None:
            table[name] = (own, *listed)
    return table


MODULE_PATHS: dict[str, tuple[str, ...]] = _table()


def find_sources(name: str) -> tuple[str, ...] | None:
    """The modules in which names of the internal module `name` are looked up; None if it is unknown here."""
    if name.startswith("tensorflow.core.") and name.endswith("_pb2"):
        leaf = name.rpartition(".")[2]
        return tuple(f"{package}.{leaf}" for package in PROTO_PACKAGES)
    if _GENERATED.fullmatch(name):
        return ("flowstone.framework.declarations.generated_ops",)
    return MODULE_PATHS.get(name)


def find_object(module: str, name: str) -> str | None:
    """The dotted name of the public object that TensorFlow's `module` calls `name`; None if it is none.

    >>> find_object("tensorflow.python.ops.init_ops", "Zeros")
    'flowstone.zeros_initializer'
    """
    return PUBLIC_TWINS.get(module, {}).get(name)


def _by_leaf() -> dict[str, list[str]]:
    leaves: dict[str, list[str]] = {}
    for name in MODULE_PATHS:
        if name.startswith("tensorflow.python."):
            leaves.setdefault(name.rpartition(".")[2], []).append(name)
    return leaves


_BY_LEAF = _by_leaf()


def find_neighbour(module: str, name: str) -> str | None:
    """The module `name` that TensorFlow's `module` may have imported: one of its package, or the only one.

    >>> find_neighbour("tensorflow.python.ops.rnn", "array_ops")
    'tensorflow.python.ops.array_ops'
    """
    if module == "tensorflow.python":  # which imports the modules of these families
        near = [f"{module}.{family}.{name}" for family in ("ops", "framework", "util", "platform")]
        return next((each for each in near if each in MODULE_PATHS), None)
    if not module.startswith(("tensorflow.python.", "tensorflow.contrib.")):
        return None
    generated = f"tensorflow.python.ops.{name}"
    if _GENERATED.fullmatch(generated):
        return generated
    parent = f"{module.rpartition('.')[0]}.{name}"
    found = _BY_LEAF.get(name, [])
    return parent if parent in found else found[0] if len(found) == 1 else None


def register() -> None:
    """Has alias modules look their names up in this table; a second call changes nothing."""
    add_neighbours(find_neighbour)
    add_paths(find_sources)
    add_objects(find_object, lambda module: PUBLIC_TWINS.get(module, ()))
