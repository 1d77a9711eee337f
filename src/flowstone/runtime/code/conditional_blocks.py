"""Conditional blocks: the conditions of nodes (`rewriting/analyses/branches.py`) as nested ``if`` in
generated code.

A predicate is read once, as ``p0 = bool(…)`` right after the line that computes it. The tests of the open
blocks are kept from line to line, so that nodes of one branch share a block. Inside a ``while`` block tests
are relative to the condition of the loop as a whole.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework import errors
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.rewriting.analyses.branches import FALSE, TRUE, Liveness
from flowstone.runtime.code.generated_code import Code

_DEEPEST_NESTING = 60  # Python allows 100 levels of indentation


class ConditionalBlocks:
    """The ``if`` blocks that are open."""

    def __init__(self, code: Code, liveness: Liveness) -> None:
        self._code, self._liveness = code, liveness
        self._predicates: dict[PlanOutput, str] = {}
        self._path: list[str] = []  # the tests of the blocks open inside the innermost loop
        self._loops: list[tuple[int, list[str], Any]] = []  # depth inside, path outside, condition

    # ---- blocks

    def enter(self, node: PlanNode) -> int:
        """Opens and closes blocks until a line runs where `node` is alive; returns its depth."""
        condition = self._liveness.node(node)
        if self._loops:
            condition = _inside(condition, self._loops[-1][2])
        if condition == TRUE:
            return self.leave_all()
        if len(condition) == 1:
            (term,) = condition
            path = self._tests(term)
            if len(path) > _DEEPEST_NESTING:
                path = [*path[: _DEEPEST_NESTING - 1], " and ".join(path[_DEEPEST_NESTING - 1 :])]
            return self._enter_path(path)
        return self._enter_path([self.expression(condition)])

    def leave_all(self) -> int:
        """Closes the blocks since the innermost loop; returns the depth."""
        return self._enter_path([])

    def begin_loop(self, depth: int, condition: Any) -> None:
        """Puts the following lines inside the ``while`` at `depth`, whose loop runs under `condition`."""
        self._loops.append((depth + 1, self._path, condition))
        self._path = []

    def end_loop(self) -> None:
        """Puts the following lines outside the innermost ``while``, in the blocks that were open there."""
        _, self._path, _ = self._loops.pop()

    def _enter_path(self, path: list[str]) -> int:
        base = self._loops[-1][0] if self._loops else 1
        if path == self._path:
            return base + len(path)
        common = 0
        while common < min(len(path), len(self._path)) and path[common] == self._path[common]:
            common += 1
        for depth in range(common, len(path)):
            self._code.line(base + depth, f"if {path[depth]}:")
        self._path = path
        return base + len(path)

    # ---- conditions as text

    def is_new_predicate(self, output: PlanOutput) -> bool:
        """Whether the output is a predicate of some condition and has not been read yet."""
        return output in self._liveness.predicates and output not in self._predicates

    def read_predicate(self, output: PlanOutput, value: str) -> None:
        """Reads the predicate from the expression `value`."""
        name = self._predicates[output] = f"p{len(self._predicates)}"
        self._code.line(self.enter(output.op), f"{name} = {value}", output.op)

    def expression(self, condition: Any) -> str:
        """The condition as one Python expression."""
        if not condition:
            return "False"
        return " or ".join(sorted(f"({' and '.join(self._tests(term)) or 'True'})" for term in condition))

    def choice(self, inputs: list[PlanOutput], words: list[str]) -> str:
        """The expression for that word whose input is alive. If the Merge is alive, one input is, so the last
        one needs no test.
        """
        conditions = [self._liveness.output(x) for x in inputs]
        alive = [i for i, condition in enumerate(conditions) if condition != FALSE]
        text = words[alive[-1]]
        for i in reversed(alive[:-1]):
            text = f"{words[i]} if {self.expression(conditions[i])} else {text}"
        return text

    def _tests(self, term: Any) -> list[str]:
        order = {output: i for i, output in enumerate(self._predicates)}
        literals = sorted(term, key=lambda item: order[item[0]])
        return [("" if wanted else "not ") + self._predicates[predicate] for predicate, wanted in literals]


def _inside(condition: Any, outer: Any) -> Any:
    """The part of a condition that is left to test where the outer one is known to hold."""
    if condition == outer:
        return TRUE
    if len(outer) != 1:
        return condition
    (known,) = outer
    return frozenset(term - known for term in condition)


def truth(predicate: Any) -> bool:
    """Whether a predicate holds. InvalidArgumentError unless it is a scalar."""
    if getattr(predicate, "shape", ()):
        shape = str(list(predicate.shape)).replace(" ", "")
        message = f"The second input must be a scalar, but it has shape {shape}"
        raise errors.InvalidArgumentError(None, None, message)
    return bool(predicate)
