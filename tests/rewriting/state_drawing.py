"""Draws statements of `state_programs.py` one by one, and the changes of state between them.

A `Drawer` knows what may be used where it is: `state_patterns.py` strings statements together with it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from state_kinds import OPTIMIZERS
from state_programs import MATRIX, Body, Order, State, Statement, inside, is_queue

_ANY_SHAPE = ["assign", "assign_add", "assign_sub", "moving_average"]
_OF_MATRICES = [
    "assign_turned", "add_turned", "add_first", "sub_last_column", "assign_reversed", "assign_product",
    "slice_assign", "slice_shift", "column_assign", "scatter_shift", "scatter_nd_turned", "scatter_nd_update",
    "scatter_nd_add", "scatter_nd_sub", "scatter_update", "scatter_add", "scatter_sub", "scatter_mul",
    "scatter_min", "scatter_max", "apply_rows",
]  # fmt: skip


class Drawer:
    """Draws the statements of a program, or of a body in it."""

    def __init__(self, rng: random.Random, order: Order, outer: Drawer | None = None) -> None:
        self.rng, self.order, self.outer = rng, order, outer
        self.statements: list[Statement] = []
        self.values: dict[str, tuple[int, ...]] = dict(outer.values) if outer else {}
        self.disturbs = outer.disturbs if outer else rng.choice([0.2, 0.5, 0.8])
        self.alone = False  # with kinds that TensorFlow answers otherwise
        self.awaited: tuple[str, ...] = ()  # what the next statement waits for, besides
        self.names: list[int] = outer.names if outer else [0]
        self.states: list[State] = outer.states if outer else []
        self.placeholders: list[tuple[str, tuple[int, ...]]] = outer.placeholders if outer else []
        self.dtype = outer.dtype if outer else rng.choice(["float32", "float32", "float64"])
        self.devices = outer.devices if outer else rng.random() < 0.1
        self.resources = outer.resources if outer else rng.choice([0.0, 0.0, 0.3, 1.0])
        if self.devices:
            self.resources = 1.0  # what shows a reference is copied on its way to another device, whenever

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    def name(self, letter: str) -> str:
        self.names[0] += 1
        return f"{letter}{self.names[0]}"

    def optimizer(self, *preferred: str) -> str:
        """An optimiser, often a preferred one; TensorFlow has no proximal ones for float64."""
        known = [x for x in OPTIMIZERS if "proximal" not in x or self.dtype == "float32"]
        return self.pick(*preferred) if preferred and self.chance(0.5) else self.pick(*known)

    # ---- what statements take

    def variable(self, *dims: int, fresh: bool = False) -> str:
        """A variable of this shape, maybe one that is in use."""
        known = [s.name for s in self.states if s.dims == dims and not is_queue(s)]
        if known and not fresh and self.chance(0.5):
            return self.pick(*known)
        form = "resource" if self.chance(self.resources) else "reference"
        return self._state("v", dims, form)

    def _state(self, letter: str, dims: tuple[int, ...], form: str) -> str:
        state = State(self.name(letter), dims, form, self.names[0])
        drawer: Drawer | None = self
        while drawer is not None:
            drawer.order.states[state.name] = state
            drawer.order.version[state.name] = 0
            drawer = drawer.outer
        self.states.append(state)
        return state.name

    def value(self, *dims: int) -> str:
        """Something of this shape: a placeholder, a variable, or an earlier value."""
        known = [name for name, found in self.values.items() if found == dims and self.usable(name)]
        if known and self.chance(0.7):
            return self.pick(*known[-4:])
        if self.chance(0.4):
            return self.variable(*dims)
        return self.placeholder(*dims)

    def placeholder(self, *dims: int) -> str:
        for name, found in self.placeholders:
            if found == dims:
                return name
        name = self.name("x")
        self.placeholders.append((name, dims))
        return name

    def usable(self, name: str) -> bool:
        """Whether what it may show has not changed."""
        shown = self.order.shown_by(name)
        return all(self.order.version[state] == version for state, version in shown.may_show.items())

    def plain(self, *dims: int) -> str:
        """A value that shows no variable."""
        found = self.value(*dims)
        shown = self.order.shown_by(found)
        if not (shown.shows or shown.may_show):
            return found
        return self.add("plus_one", found, dims=dims)

    def dims(self, name: str) -> tuple[int, ...]:
        """Of a variable."""
        return next(s.dims for s in self.states if s.name == name)

    def is_reference(self, name: str) -> bool:
        """Whether it is a reference variable."""
        return self.order.states[name].form == "reference"

    def mixed(self, *names: str) -> list[str]:
        """In some order."""
        return self.rng.sample(names, len(names))

    def has_gradient(self, name: str) -> bool:
        """Whether nothing of what its gradient may use has changed."""
        shown = self.order.shown_by(name)
        fixed = {**shown.fixed, **(shown.history if shown.looped else {})}
        return all(self.order.version[state] == version for state, version in fixed.items())

    # ---- statements

    def spread(self, scalar: str) -> str:
        """A matrix of a number."""
        return self.add("add", self.value(*MATRIX), scalar)

    def add(self, kind: str, *arguments: str, dims: Any = MATRIX, bodies: Any = (), **options: Any) -> str:
        """Adds a statement; its name. Raises Ambiguous if what it takes may have changed."""
        drawn = tuple(
            self.pick(*[s.name for s in self.statements])
            for _ in range(self.statements != [] and self.chance(0.1))
        )
        after = tuple(dict.fromkeys((*self.awaited, *drawn)))
        device = self.pick("", "/cpu:0", "/cpu:1") if self.devices and not self.outer else ""
        items = tuple(options.items())
        name = self.name("abcdefgh"[len(self.statements) % 8])
        statement = Statement(name, kind, arguments, items, dims, after, tuple(bodies), device)
        self.order.add(statement)
        self.awaited = ()
        self.statements.append(statement)
        if dims is not None:
            self.values[name] = dims
        return name

    def between(self, *variables: str) -> None:
        """Maybe a disturbance between two parts of a pattern that reads these variables."""
        if not self.chance(self.disturbs):
            return
        last = (self.statements[-1].name,) if self.statements else ()
        states = {state.name: state for state in self.states if not is_queue(state)}
        mine = [states[name] for name in variables if name in states]
        choice = self.rng.random()
        if mine and choice < 0.75:
            self.awaited = last if self.chance(0.5) else ()
            done = self.change(self.pick(*mine))
        elif choice < 0.85:
            done = self.queue()
        else:
            done = self.change(self.pick(*states.values())) if states else ""
        if done and self.chance(0.6):
            self.awaited = (done,)

    def change(self, state: State) -> str:
        """A change of a variable in one of the ways there are."""
        is_matrix, form = state.dims == MATRIX, state.form
        kinds = [*_ANY_SHAPE, "apply"] + (_OF_MATRICES if is_matrix else [])
        kind = self.pick(*_ANY_SHAPE) if self.chance(0.4) else self.pick(*kinds)
        options: dict[str, Any] = {}
        arguments: tuple[str, ...] = (state.name,)
        if kind in ("apply", "apply_rows"):
            options["optimizer"] = self.optimizer()
            if kind == "apply_rows":
                options["optimizer"] = self.pick("descent", "momentum", "adagrad", "adam", "rmsprop")
            arguments = (self.plain(*state.dims), state.name)
        elif kind in _NEEDS_VALUE or kind in _ANY_SHAPE:
            keeps = kind == "assign" and form == "resource"
            arguments += ((self.plain if keeps else self.value)(*state.dims),)
            if not self.chance(0.3):
                arguments = (state.name, self.add("clip", arguments[1], dims=state.dims))
        if kind == "slice_assign":
            options["first"], options["last"] = self.pick((0, 2), (1, 4), (2, 3))
        if kind == "column_assign":
            options["i"] = self.pick(0, 3)
        if kind.startswith("scatter_") and kind.count("_") == 1 and kind != "scatter_shift":
            options["rows"] = (
                self.pick((2, 0), (1,), (1, 3)) if "update" in kind else self.pick((2, 0), (1, 1))
            )
        has_value = form == "reference" and not kind.startswith("apply")
        return self.add(kind, *arguments, dims=state.dims if has_value else None, **options)

    def queue(self) -> str:
        """A value goes through a queue."""
        queue = self._state("q", MATRIX, "queue")
        self.add("enqueue", queue, self.plain(*MATRIX), dims=None)
        if self.chance(0.5):
            self.add("queue_size", queue, self.value(*MATRIX))
        return self.add("dequeue", queue)

    def body(self, draw: Callable[[Drawer], str], dims: tuple[int, ...], argument: str = "") -> Body:
        inner = Drawer(self.rng, inside(self.order), self)
        if argument:
            inner.values[argument] = dims
        result = draw(inner)
        shown = inner.order.shown_by(result)
        if shown.shows or shown.may_show or result not in [s.name for s in inner.statements]:
            result = inner.add("plus_one", result, dims=dims)
        return Body(tuple(inner.statements), result, argument)


_NEEDS_VALUE = {
    "assign_product", "slice_assign", "column_assign", "scatter_nd_update", "scatter_nd_add",
    "scatter_nd_sub", "scatter_update", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min",
    "scatter_max",
}  # fmt: skip
