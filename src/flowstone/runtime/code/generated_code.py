"""Generated code: the text of one Python function under construction, and the finished `Segment`.

Source lines are mapped to nodes, so that errors can name the node at no cost to steps without errors
(`failures.py`).
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.native.clusters.kernels import NativeKernel
from flowstone.runtime.code.failures import GENERATED_FILE

_count = 0


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Segment:
    """A compiled segment; immutable.

    `function(step, *feeds)` returns the fetches as a tuple; `source` is its text, in a file called
    `filename`, and `globals` are its kernels, constants and variables; `node_at(line)` the node of a line;
    `copied_fetches[i]` says whether fetch i must be copied before a user gets it; `arguments_at(line)` the
    local names of the node's inputs, for error messages; `waits` whether a kernel may wait, or keeps
    something with the step, so that each execution needs one of its own; `moves` the nodes for which the step
    is known to take a value from the host to the device or back.
    """

    function: Callable[..., Any]
    source: str
    filename: str
    globals: Mapping[str, Any]
    lines: tuple[PlanNode | None, ...]
    arguments: tuple[list[str], ...]
    copied_fetches: tuple[bool, ...]
    waits: bool
    moves: tuple[PlanNode, ...]

    def node_at(self, line: int) -> PlanNode | None:
        """The node that this source line runs."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else None

    def arguments_at(self, line: int) -> list[str]:
        """The local names of the inputs of the node of this source line."""
        return self.arguments[line - 1]


class Code:
    """Lines with the nodes they belong to, and the globals they use. `copied_fetches`, `waits` and `moves`:
    the finished `Segment`'s attributes.
    """

    def __init__(self) -> None:
        self.copied_fetches: list[bool] = []
        self.waits = False
        self.moves: list[PlanNode] = []
        self._text: list[str] = []
        self._lines: list[PlanNode | None] = []
        self._arguments: list[list[str]] = []
        self._globals: dict[str, Any] = {}

    def line(
        self, depth: int, text: str, node: PlanNode | None = None, arguments: list[str] | None = None
    ) -> None:
        """Adds a line, indented by `depth`, that runs `node` on the locals `arguments`."""
        self._text.append(" " * depth + text)
        self._lines.append(node)
        self._arguments.append(arguments or [])

    def computation(
        self, depth: int, text: str, node: PlanNode, arguments: list[str], results: Sequence[str]
    ) -> None:
        """Adds the line that computes `node` into the locals `results` (``_`` for an output without
        consumers)."""
        self.line(depth, text, node, arguments)

    def insert_first(self, text: str) -> None:
        """Adds a line before all but the function's head."""
        self._text.insert(1, " " + text)
        self._lines.insert(1, None)
        self._arguments.insert(1, [])

    def name(self, name: str, value: Any) -> str:
        """The global of this value: `name`, or a similar one if that belongs to another value."""
        names = self._globals
        base, number = name, len(names)
        while name in names and names[name] is not value:
            name, number = f"{base}_{number}", number + 1
        names[name] = value
        return name

    def constant(self, output: PlanOutput, value: Any) -> str:
        """The global of an output that is this object in every step."""
        return self.name(identifier(output.op.name, "c"), value)

    def literal(self, value: Any) -> str:
        """The expression of an argument known at plan time."""
        if value is None or isinstance(value, (bool, int, str)):
            return repr(value)
        if isinstance(value, (tuple, list)) and all(isinstance(item, int) for item in value):
            return repr(value)
        return self.name(f"k{len(self._globals)}", value)

    def _fill_empty_blocks(self) -> None:
        """Gives blocks a statement whose nodes turned out to need no code."""
        for i, (text, following) in enumerate(zip(self._text, [*self._text[1:], ""])):
            if text.endswith(":") and _indentation(following) <= _indentation(text):
                self._text[i] = f"{text} pass"

    def finish(self) -> Segment:
        """Compiles the function, whose name is ``segment``."""
        global _count
        _count += 1
        self._fill_empty_blocks()
        source, filename = "\n".join(self._text) + "\n", f"{GENERATED_FILE}{_count}>"
        exec(compile(source, filename, "exec"), self._globals)
        for name, value in list(self._globals.items()):
            if isinstance(value, NativeKernel):
                value.replace_in(self._globals, name)
        return Segment(
            function=self._globals.pop("segment"),
            source=source,
            filename=filename,
            globals=MappingProxyType(self._globals),
            lines=tuple(self._lines),
            arguments=tuple(self._arguments),
            copied_fetches=tuple(self.copied_fetches),
            waits=self.waits,
            moves=tuple(self.moves),
        )


def identifier(name: str, fallback: str) -> str:
    """The last part of a node's name as a Python name that no local of generated code has."""
    text = re.sub(r"\W", "_", name.rpartition("/")[2])
    if (
        not text
        or not text[0].isalpha()
        or keyword.iskeyword(text)
        or re.fullmatch(r"[vapfkin]\d+|step|dead|segment|bool|cpu|cuda|cell|array|tensor", text)
    ):
        text = f"{fallback}_{text}"
    return text


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip(" "))
