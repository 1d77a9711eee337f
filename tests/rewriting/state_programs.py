"""Small programs with state, as data: one builds the same graph with any implementation of TensorFlow 1.x.

A `Program` is a list of statements over variables of both kinds, queues, placeholders and earlier values, and
the runs of one session. `answers(tf, program)` builds and runs it with `tf`, which may be `flowstone` or
`tensorflow.compat.v1`; nothing here imports either. `state_patterns.py` draws programs.

Programs mean one thing only. The order of the text is the meaning; `Order` says which earlier statements a
statement must wait for, so that each use of a state stands between the right changes, and each of these gets
a control edge of its own (an edge by way of a value might be cut by a feed). What takes a value that *shows*
a reference variable (``v``, an identity of it) uses the variable when it runs. Of other ops TensorFlow may
hand on the variable's memory or a copy (slices, reshapes): such a value *may show* it, and must not be used
once the variable has changed.

    >>> print(example())
    w = reference variable [2, 2]
    x = placeholder [2, 2]
    y = matmul(x, w)
    a = assign_add(w, x)  # after y
    z = add(y, w)  # after a
    run [z] feeding x
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable
from typing import Any

import numpy as np

from state_kinds import KINDS, loop, taken_branch

MATRIX = (4, 4)


@dataclasses.dataclass(frozen=True)
class State:
    """A variable (`reference` or `resource`), `queue` or `stage`; `seed` draws its initial value."""

    name: str
    dims: tuple[int, ...]
    form: str
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Body:
    """The statements of a branch or of a loop's body, where `argument` is the loop's variable."""

    statements: tuple[Statement, ...]
    result: str
    argument: str = ""


@dataclasses.dataclass(frozen=True)
class Statement:
    """``name = kind(*arguments, **options)``, where arguments are names of states, placeholders and earlier
    statements; `after`: statements that it waits for although the meaning does not ask for it. `dims`: the
    value's shape, None if it has none."""

    name: str
    kind: str
    arguments: tuple[str, ...]
    options: tuple[tuple[str, Any], ...] = ()
    dims: tuple[int, ...] | None = MATRIX
    after: tuple[str, ...] = ()
    bodies: tuple[Body, ...] = ()
    device: str = ""


@dataclasses.dataclass(frozen=True)
class Run:
    """One call of `Session.run`; `fed`: inner values that are fed. Where there is something `late`, it is two
    calls of `Session.partial_run`: what of the fetches comes `early`, and the placeholders fed `late`."""

    fetches: tuple[str, ...]
    fed: tuple[str, ...] = ()
    seed: int = 0
    early: tuple[str, ...] = ()
    late: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Program:
    """See above."""

    dtype: str
    states: tuple[State, ...]
    placeholders: tuple[tuple[str, tuple[int, ...]], ...]
    statements: tuple[Statement, ...]
    runs: tuple[Run, ...]

    @property
    def is_alone(self) -> bool:
        """Whether TensorFlow's answers would be others."""
        return _is_alone(self.statements)

    def __str__(self) -> str:
        lines = [
            f"{s.name} = {s.form} {'' if is_queue(s) else 'variable '}{list(s.dims)}" for s in self.states
        ]
        lines += [f"{name} = placeholder {list(dims)}" for name, dims in self.placeholders]
        lines += text(self.statements, Order(self.states), "")
        for run in self.runs:
            fed = [name for name, _ in self.placeholders] + list(run.fed)
            parts = f" in parts, early {', '.join(run.early)}, late {', '.join(run.late)}" if run.late else ""
            lines.append(f"run [{', '.join(run.fetches)}] feeding {', '.join(fed)}{parts}")
        return "\n".join(lines)


def _is_alone(statements: Iterable[Statement]) -> bool:
    return any(KINDS[s.kind].alone or any(_is_alone(b.statements) for b in s.bodies) for s in statements)


def is_queue(state: State) -> bool:
    """Whether every use of it changes it."""
    return state.form in ("queue", "stage")


def as_data(program: Program) -> Any:
    """As JSON has it."""
    return dataclasses.asdict(program)


def from_data(data: Any) -> Program:
    """What `as_data` gave."""
    return Program(
        data["dtype"],
        tuple(State(**{**s, "dims": tuple(s["dims"])}) for s in data["states"]),
        tuple((name, tuple(dims)) for name, dims in data["placeholders"]),
        tuple(_statement(s) for s in data["statements"]),
        tuple(
            Run(tuple(r["fetches"]), tuple(r["fed"]), r["seed"], tuple(r["early"]), tuple(r["late"]))
            for r in data["runs"]
        ),
    )


def _statement(s: Any) -> Statement:
    bodies = [Body(tuple(map(_statement, b["statements"])), b["result"], b["argument"]) for b in s["bodies"]]
    return Statement(
        s["name"],
        s["kind"],
        tuple(s["arguments"]),
        tuple((key, tuple(x) if isinstance(x, list) else x) for key, x in s["options"]),
        None if s["dims"] is None else tuple(s["dims"]),
        tuple(s["after"]),
        tuple(bodies),
        s["device"],
    )


class Ambiguous(Exception):
    """A program that does not mean one thing."""


@dataclasses.dataclass
class Shown:
    """What using a value uses: references that it shows; those that it may show, and those that gradients
    through it may use once more (`fixed`), with the version that they must still have; `history`: all
    references that its gradient takes, and the version of the first use; `looped`: it comes out of a loop,
    through whose gradient no control edge may lead."""

    shows: frozenset[str] = frozenset()
    may_show: dict[str, int] = dataclasses.field(default_factory=dict)
    history: dict[str, int] = dataclasses.field(default_factory=dict)
    fixed: dict[str, int] = dataclasses.field(default_factory=dict)
    looped: bool = False


class Order:
    """Who used and changed each state, statement by statement."""

    def __init__(self, states: Iterable[State]) -> None:
        self.states = {state.name: state for state in states}
        self.version = dict.fromkeys(self.states, 0)
        self.changed_by: dict[str, str] = {}
        self.used_by: dict[str, list[str]] = {}
        self.shown: dict[str, Shown] = {}

    def add(self, statement: Statement) -> list[str]:
        """The earlier statements that this one must wait for. Raises Ambiguous."""
        uses, changes = self.touched(statement)
        waits = [self.changed_by[name] for name in uses if name in self.changed_by]
        for name in changes:
            waits += self.used_by.pop(name, [])
            self.version[name] += 1
            self.changed_by[name] = statement.name
        for name in uses:
            if name not in changes:
                self.used_by.setdefault(name, []).append(statement.name)
        self.shown[statement.name] = self._result(statement)
        return list(dict.fromkeys(waits))

    def touched(self, statement: Statement) -> tuple[list[str], list[str]]:
        """The states that it uses, and those among them that it changes."""
        kind = KINDS[statement.kind]
        uses: dict[str, None] = {}
        changes: dict[str, None] = {}
        for i, name in enumerate(statement.arguments):
            if name in self.states:
                uses[name] = None
                if i in kind.changes or is_queue(self.states[name]):
                    changes[name] = None
                    continue
            shown = self.shown_by(name)
            self._fresh(name, shown.may_show)
            uses.update(dict.fromkeys(sorted({*shown.shows, *shown.may_show})))
            if kind.is_gradient:
                self._fresh(name, {**shown.fixed, **(shown.history if shown.looped else {})})
                uses.update(dict.fromkeys(sorted({*shown.history, *shown.fixed})))
        for body in statement.bodies:
            self._body(body, uses, changes)
        if self._keeps(statement):
            shown = [self.shown_by(name) for name in statement.arguments if name not in changes]
            if any(each.shows or each.may_show for each in shown):
                raise Ambiguous(f"{statement.name} keeps what shows a variable")
        return list(uses), list(changes)

    def _keeps(self, statement: Statement) -> bool:
        """Whether something will hold a value, maybe in the memory where it is now."""
        first = self.states.get(statement.arguments[0]) if statement.arguments else None
        is_resource = first is not None and first.form == "resource"
        return KINDS[statement.kind].keeps or (statement.kind == "assign" and is_resource)

    def _body(self, body: Body, uses: dict[str, None], changes: dict[str, None]) -> None:
        inner = Order(self.states.values())
        inner.version, inner.shown = dict(self.version), dict(self.shown)
        for statement in body.statements:
            used, changed = inner.touched(statement)
            uses.update(dict.fromkeys(used))
            changes.update(dict.fromkeys(changed))
            inner.add(statement)
        if inner.shown_by(body.result).shows or inner.shown_by(body.result).may_show:
            raise Ambiguous("a body's result shows a variable")

    def shown_by(self, name: str) -> Shown:
        """What using this value, placeholder or state uses."""
        state = self.states.get(name)
        if state is None:
            return self.shown.get(name, Shown())
        if state.form == "reference":
            return Shown(frozenset([name]), {}, {name: self.version[name]})
        return Shown()

    def _fresh(self, name: str, versions: dict[str, int]) -> None:
        for state, version in versions.items():
            if self.version[state] != version:
                raise Ambiguous(f"{name} may or may not show {state}, which has changed")

    def _result(self, statement: Statement) -> Shown:
        kind = KINDS[statement.kind]
        found = [self.shown_by(name) for name in statement.arguments]
        looped = kind.loops or any(each.looped for each in found)
        history: dict[str, int] = {}
        fixed: dict[str, int] = {}
        for each in reversed(found):
            history.update(each.history)
            fixed.update({**each.fixed, **each.may_show})
        shows = frozenset().union(*[each.shows for each in found])
        if statement.bodies:  # their gradients may hold what they took, or take it again
            uses, _ = self.touched_names(statement)
            fixed.update({name: self.version[name] for name in uses if self._is_reference(name)})
            return Shown(fixed=fixed, looped=looped or _has_loop(statement))
        if kind.changes:
            changed = [statement.arguments[i] for i in sorted(kind.changes)]
            references = frozenset(name for name in changed if self._is_reference(name))
            return Shown(references, history={name: self.version[name] for name in references})
        if kind.has_views:
            fixed.update({name: self.version[name] for name in shows})
        if kind.shows == "always":
            handed_on = {name: version for each in found for name, version in each.may_show.items()}
            return Shown(shows, handed_on, history, fixed, looped)
        may_show = {name: self.version[name] for each in found for name in (*each.shows, *each.may_show)}
        return Shown(frozenset(), may_show if kind.shows == "maybe" else {}, history, fixed, looped)

    def touched_names(self, statement: Statement) -> tuple[list[str], list[str]]:
        """The same as `touched`, after the statement."""
        try:
            return self.touched(statement)
        except Ambiguous:
            return list(self.states), []

    def may_be_fetched(self, name: str) -> bool:
        """Whether nothing that its value may show has changed since."""
        return all(self.version[state] == version for state, version in self.shown_by(name).may_show.items())

    def _is_reference(self, name: str) -> bool:
        return self.states[name].form == "reference"


def _has_loop(statement: Statement) -> bool:
    inner = [each for body in statement.bodies for each in body.statements]
    return statement.kind == "loop" or any(KINDS[s.kind].loops or _has_loop(s) for s in inner)


def text(statements: Iterable[Statement], order: Order, indent: str) -> list[str]:
    """The statements, a line each."""
    lines = []
    for s in statements:
        waits = list(dict.fromkeys([*order.add(s), *s.after]))
        options = [f"{key}={value!r}" for key, value in s.options]
        comment = f"  # after {', '.join(waits)}" if waits else ""
        device = f" on {s.device}" if s.device else ""
        lines.append(f"{indent}{s.name} = {s.kind}({', '.join([*s.arguments, *options])}){device}{comment}")
        for body in s.bodies:
            lines.append(f"{indent}  body({body.argument}) -> {body.result}:")
            lines += text(body.statements, inside(order), indent + "    ")
    return lines


def inside(order: Order) -> Order:
    """The order in a body, where nothing has been used yet."""
    inner = Order(order.states.values())
    inner.version, inner.shown = dict(order.version), dict(order.shown)
    return inner


def check(program: Program) -> None:
    """Raises Ambiguous unless the program means one thing."""
    order = Order(program.states)
    names = set(order.states) | {name for name, _ in program.placeholders}
    for statement in program.statements:
        if not names.issuperset(outer_names(statement)):
            raise Ambiguous(f"{statement.name} takes what is not there")
        order.add(statement)
        names.add(statement.name)
    for run in program.runs:
        for name in (*run.fetches, *run.fed):
            if name not in names:
                raise Ambiguous(f"{name} is not there")
            if name in run.fetches:
                order._fresh(name, order.shown_by(name).may_show)


def outer_names(statement: Statement) -> set[str]:
    """All names that it takes from outside."""
    names = {*statement.arguments, *statement.after}
    for body in statement.bodies:
        own = {body.argument} - {""}
        for inner in body.statements:
            names |= outer_names(inner) - own
            own.add(inner.name)
        if body.result not in own:
            names.add(body.result)
    return names


# ---- building


def numbers(seed: int, dims: tuple[int, ...]) -> np.ndarray:
    """Small whole numbers."""
    rng = random.Random(seed)
    count = int(np.prod(dims, dtype=int))
    return np.array([rng.randint(-3, 3) for _ in range(count)], np.float64).reshape(dims)


class Built:
    """A program's graph: `values` by name, and what a statement that waits for a name has to wait for."""

    def __init__(self, tf: Any, program: Program) -> None:
        self.tf, self.program = tf, program
        self.dtype = tf.as_dtype(program.dtype)
        self.values: dict[str, Any] = {}
        self.ops: dict[str, list[Any]] = {}
        self.dims = {s.name: s.dims for s in program.statements}
        for state in program.states:
            self.values[state.name] = self._state(state)
        for name, dims in program.placeholders:
            self.values[name] = tf.placeholder(self.dtype, dims)
        self.statements(program.statements, Order(program.states), [])

    def _state(self, state: State) -> Any:
        tf = self.tf
        if state.form == "queue":
            return tf.FIFOQueue(1000, [self.dtype], [state.dims])
        start = tf.constant(numbers(state.seed, state.dims), self.dtype)
        with tf.variable_scope("", use_resource=state.form == "resource"):
            return tf.get_variable(state.name, initializer=start)

    def statements(self, statements: Iterable[Statement], order: Order, always: list[Any]) -> None:
        """Adds the statements; `always`: ops that each waits for."""
        for statement in statements:
            waits = [op for name in (*order.add(statement), *statement.after) for op in self.ops[name]]
            with self.tf.device(statement.device or None):
                self._statement(statement, order, [*always, *waits])

    def _statement(self, s: Statement, order: Order, waits: list[Any]) -> None:
        kind, options = KINDS[s.kind], dict(s.options)
        arguments = [self.values[name] for name in s.arguments]
        with self.tf.control_dependencies(waits):
            if s.kind == "cond":
                branches = [self._branch(body, order) for body in s.bodies]
                value = taken_branch(self.tf, arguments[0], branches, **options)
            elif s.kind == "loop":
                start = arguments[0] * 1, self.tf.constant(0) * 1
            elif kind.is_gradient and order.shown_by(s.arguments[0]).looped:
                start = self.tf.ones(arguments[0].shape, self.dtype) * 1
            else:
                value = kind.function(self.tf, *arguments, **options)
        if kind.is_gradient and order.shown_by(s.arguments[0]).looped:
            value = kind.function(self.tf, *arguments, start=start, waits=waits, **options)
        if s.kind == "loop":
            value = loop(self.tf, start, lambda x: self._result(s.bodies[0], order, x), **options)
        self.values[s.name] = value
        self.ops[s.name] = [getattr(value, "op", value)]
        if s.dims is not None and self.values[s.name].shape.as_list() != list(s.dims):
            raise AssertionError(f"{s.name} has the shape {value.shape}")

    def fetch(self, name: str) -> Any:
        """What to fetch of a statement: its value, or its op."""
        has_value = name in self.dims and self.dims[name] is not None
        return self.values[name] if has_value else self.ops[name][0]

    def _branch(self, body: Body, order: Order) -> Any:
        return lambda: self._result(body, order, None)

    def _result(self, body: Body, order: Order, argument: Any) -> Any:
        if argument is not None:
            self.values[body.argument] = argument
        always = [] if argument is None else [argument.op]
        self.statements(body.statements, inside(order), always)
        done = [op for statement in body.statements for op in self.ops[statement.name]]
        with self.tf.control_dependencies(done):
            return self.values[body.result] + 1


def answers(tf: Any, program: Program, config: Any = None) -> list[list[np.ndarray]]:
    """What each run fetches, followed by the variables after it."""
    with tf.Graph().as_default():
        built = Built(tf, program)
        variables = [built.values[s.name] for s in program.states if not is_queue(s)]
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            found = []
            for run in program.runs:
                fetched = _fetch(session, built, run)
                found.append([np.array(x) for x in (*fetched, *session.run(variables))])
            return found


def _fetch(session: Any, built: Built, run: Run) -> list[Any]:
    fetches = [built.fetch(name) for name in run.fetches]
    feed = {}
    for i, (name, dims) in enumerate(built.program.placeholders):
        feed[built.values[name]] = numbers(run.seed + i, dims)
    for i, name in enumerate(run.fed):
        feed[built.values[name]] = numbers(run.seed + 100 + i, built.dims[name])
    if not run.late:
        fetched = session.run(fetches, feed)
    else:
        late = {key: feed.pop(key) for key in [built.values[name] for name in run.late]}
        handle = session.partial_run_setup(fetches, [*feed, *late])
        early = [built.fetch(name) for name in run.early]
        fetched = session.partial_run(handle, early, feed)
        fetched += session.partial_run(handle, [x for x in fetches if x not in early], late)
    return [x for x in fetched if x is not None]
