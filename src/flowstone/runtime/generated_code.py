"""Generated code: the text of one Python function under construction, and the finished `Segment`.

A source line maps to its node, so naming the node in an error costs nothing until there is one
(`failures.py`).
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.subgraph import PlanNode, PlanOutput
from flowstone.runtime.failures import GENERATED_FILE

_count = 0


class Segment:
    """A compiled segment.

    `function(step, *feeds)` returns the fetches as a tuple; `source` is its text; `node_at(line)` the node of
    a line; `copied_fetches[i]` says whether fetch i must be copied before a user gets it;
    `arguments_at(line)` the local names of the node's inputs, for error messages; `waits` whether a kernel
    may wait, so that the step must be one that can be cancelled; `moves` the nodes for which the step is
    known to take a value from the host to the device or back.
    """

    __slots__ = (
        "arguments",
        "copied_fetches",
        "filename",
        "function",
        "globals",
        "lines",
        "moves",
        "source",
        "waits",
    )

    def __init__(self) -> None:
        self.lines: list[PlanNode | None] = []
        self.arguments: list[list[str]] = []
        self.globals: dict[str, Any] = {}
        self.copied_fetches: list[bool] = []
        self.moves: list[PlanNode] = []
        self.source = self.filename = ""
        self.waits = False
        self.function: Callable[..., Any] = lambda: None

    def node_at(self, line: int) -> PlanNode | None:
        """The node that this source line runs."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else None

    def arguments_at(self, line: int) -> list[str]:
        """The local names of the inputs of the node of this source line."""
        return self.arguments[line - 1]


class Code:
    """Lines with the nodes they belong to, and the globals they use."""

    def __init__(self) -> None:
        self.segment = Segment()
        self._text: list[str] = []

    def line(
        self, depth: int, text: str, node: PlanNode | None = None, arguments: list[str] | None = None
    ) -> None:
        """Adds a line, indented by `depth`, that runs `node` on the locals `arguments`."""
        self._text.append(" " * depth + text)
        self.segment.lines.append(node)
        self.segment.arguments.append(arguments or [])

    def computation(
        self, depth: int, text: str, node: PlanNode, arguments: list[str], results: Sequence[str]
    ) -> None:
        """Adds the line that computes `node` into the locals `results` (``_``: nobody takes that output)."""
        self.line(depth, text, node, arguments)

    def insert_first(self, text: str) -> None:
        """Adds a line before all but the function's head."""
        self._text.insert(1, " " + text)
        self.segment.lines.insert(1, None)
        self.segment.arguments.insert(1, [])

    def name(self, name: str, value: Any) -> str:
        """The global of this value: `name`, or like it where that is another value's."""
        names = self.segment.globals
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
        return self.name(f"k{len(self.segment.globals)}", value)

    def finish(self) -> Segment:
        """Compiles the function, whose name is ``segment``."""
        global _count
        _count += 1
        segment = self.segment
        segment.source = "\n".join(self._text) + "\n"
        segment.filename = f"{GENERATED_FILE}{_count}>"
        exec(compile(segment.source, segment.filename, "exec"), segment.globals)
        segment.function = segment.globals.pop("segment")
        return segment


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
