"""Which names of TensorFlow a program uses, read from its text: nothing of the program is run.

Imports and plain assignments say what a name of the program stands for:

    import tensorflow as tf                    tf is tensorflow
    from tensorflow.contrib import slim as s   s is tensorflow.contrib.slim
    layers = tf.layers                         layers is tensorflow.layers

>>> [use.name for use in uses_of("import tensorflow as tf\\ntf.nn.relu(tf.zeros([2]))")]
['tensorflow', 'tensorflow.nn.relu', 'tensorflow.zeros']
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ["Use", "names_in", "uses_in", "uses_of"]

ROOT = "tensorflow"


class Use(NamedTuple):
    """A name that the program uses: dotted, from the root, and where; with a call, how it is called.

    `positional`: the number of arguments by position, None where it is not called, or with `*` and `**`;
    `keywords`: the names of the others.
    """

    name: str
    line: int
    is_import: bool = False
    positional: int | None = None
    keywords: tuple[str, ...] = ()


def uses_of(text: str, filename: str = "<program>") -> list[Use]:
    """The uses in a program's text, in the order of its lines. SyntaxError if it is no Python 3."""
    tree = ast.parse(text, filename)
    return uses_in(tree, names_in(tree))


def uses_in(tree: ast.AST, aliases: Mapping[str, str]) -> list[Use]:
    """The uses in a program whose names stand for `aliases` (`names_in`), in the order of its lines."""
    return sorted(_uses(tree, aliases), key=lambda use: use.line)


def _is_tensorflow(module: str | None) -> bool:
    return module is not None and (module == ROOT or module.startswith(f"{ROOT}."))


def names_in(tree: ast.AST, imported: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the program's names stand for, by name; `imported`: what those stand for that come from its other
    modules."""
    aliases = dict(imported or {})
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_tensorflow(alias.name):
                    aliases[alias.asname or ROOT] = alias.name if alias.asname else ROOT
        elif isinstance(node, ast.ImportFrom) and not node.level and _is_tensorflow(node.module):
            for alias in node.names:
                if alias.name != "*":
                    aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    # Assignments may build on each other, in any order of functions: twice is enough for what programs do.
    for _ in range(2):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Assign)
                and len(node.targets) == 1
                and isinstance(node.targets[0], ast.Name)
            ):
                dotted = _dotted(node.value, aliases)
                if dotted is not None and node.targets[0].id not in aliases:
                    aliases[node.targets[0].id] = dotted
    return aliases


def _dotted(node: ast.AST, aliases: Mapping[str, str]) -> str | None:
    """The dotted name that an expression stands for, if it begins with one of the program's names for it."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return None
    return ".".join([aliases[node.id], *reversed(parts)])


def _uses(tree: ast.AST, aliases: Mapping[str, str]) -> Iterator[Use]:
    inner: set[int] = set()
    called: dict[int, ast.Call] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            inner.add(id(node.value))
        elif isinstance(node, ast.Call):
            called[id(node.func)] = node
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Use(each.name, node.lineno, True) for each in node.names if _is_tensorflow(each.name))
        elif isinstance(node, ast.ImportFrom) and not node.level and _is_tensorflow(node.module):
            yield Use(node.module or "", node.lineno, True)
            yield from (Use(f"{node.module}.{n.name}", node.lineno) for n in node.names if n.name != "*")
        elif isinstance(node, (ast.Attribute, ast.Name)) and id(node) not in inner:
            is_read = isinstance(node.ctx, ast.Load)
            name = _dotted(node, aliases) if is_read else None
            if name is not None and (isinstance(node, ast.Attribute) or id(node) in called):
                yield _call(name, node.lineno, called.get(id(node)))


def _call(name: str, line: int, call: ast.Call | None) -> Use:
    if call is None:
        return Use(name, line)
    if any(isinstance(each, ast.Starred) for each in call.args) or any(k.arg is None for k in call.keywords):
        return Use(name, line)
    keywords = tuple(keyword.arg for keyword in call.keywords if keyword.arg is not None)
    return Use(name, line, positional=len(call.args), keywords=keywords)
