"""The smallest program that still does something: statements, runs and waits are left out one by one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from state_programs import Ambiguous, Program, Statement, check, outer_names


def smallest(program: Program, still: Callable[[Program], bool], most_tries: int = 300) -> Program:
    """What is left of `program` for which `still` holds, if it holds for it."""
    tries, at = 0, 0
    while tries < most_tries:
        candidates = list(smaller(program))
        start = tries
        for i in range(len(candidates)):
            place = (at + i) % len(candidates)  # where the last attempt succeeded, the next may
            candidate = candidates[place]
            if candidate != program and _means_one_thing(candidate):
                tries += 1
                if still(candidate):
                    program, at = candidate, place
                    break
        else:
            break
        if tries == start:
            break
    return tidied(program)


def _means_one_thing(program: Program) -> bool:
    try:
        check(program)
    except Ambiguous:
        return False
    return True


def smaller(program: Program) -> Iterator[Program]:
    """Programs with a part less."""
    replace = dataclasses.replace
    runs = program.runs
    if len(runs) > 1:
        for i in range(len(runs)):
            yield replace(program, runs=runs[:i] + runs[i + 1 :])
    for i, run in enumerate(runs):
        rest = [replace(run, fed=())] if run.fed else []
        rest += [replace(run, early=(), late=())] if run.late else []
        if len(run.fetches) > 1 and not run.late:
            half = len(run.fetches) // 2
            rest += [replace(run, fetches=run.fetches[:half]), replace(run, fetches=run.fetches[half:])]
            rest += [replace(run, fetches=tuple(x for x in run.fetches if x != name)) for name in run.fetches]
        for other in rest:
            yield replace(program, runs=runs[:i] + (other,) + runs[i + 1 :])
    yield replace(program, statements=_needed(program))
    for statements in _fewer(program.statements, [name for name, dims in program.placeholders]):
        names = {statement.name for statement in statements}
        gone = {s.name: s.arguments for s in program.statements if s.name not in names}
        kept = tuple(
            replace(
                run,
                fetches=tuple(dict.fromkeys(y for x in run.fetches for y in gone.get(x, (x,)) if y in names)),
                fed=tuple(x for x in run.fed if x not in gone),
                early=tuple(x for x in run.early if x not in gone),
            )
            for run in runs
        )
        yield replace(program, statements=statements, runs=kept)


def _needed(program: Program) -> tuple[Statement, ...]:
    """Statements of which something is fetched, or changed."""
    used = {name for run in program.runs for name in (*run.fetches, *run.fed)}
    kept: list[Statement] = []
    for statement in reversed(program.statements):
        if statement.name in used or statement.dims is None:
            kept.append(statement)
            used |= outer_names(statement)
    return tuple(reversed(kept))


def _fewer(statements: tuple[Statement, ...], others: list[str]) -> Iterator[tuple[Statement, ...]]:
    replace = dataclasses.replace
    for i in reversed(range(len(statements))):
        gone = statements[i]
        before, after = statements[:i], statements[i + 1 :]
        if not any(gone.name in {*outer_names(s)} - {*s.after} for s in after):
            yield before + tuple(_without_wait(s, gone.name) for s in after)
        for name in dict.fromkeys((*gone.arguments, *others)):
            renamed = tuple(_renamed(s, gone.name, name) for s in after)
            yield before + renamed
        if gone.after:
            yield before + (replace(gone, after=()),) + after
        for k, body in enumerate(gone.bodies):
            for inner in _fewer(body.statements, []):
                if body.result in {s.name for s in inner}:
                    bodies = gone.bodies[:k] + (replace(body, statements=inner),) + gone.bodies[k + 1 :]
                    yield before + (replace(gone, bodies=bodies),) + after


def _without_wait(statement: Statement, name: str) -> Statement:
    return dataclasses.replace(statement, after=tuple(x for x in statement.after if x != name))


def _renamed(statement: Statement, old: str, new: str) -> Statement:
    statement = _without_wait(statement, old)
    arguments = tuple(new if x == old else x for x in statement.arguments)
    bodies = tuple(
        dataclasses.replace(body, statements=tuple(_renamed(s, old, new) for s in body.statements))
        for body in statement.bodies
    )
    return dataclasses.replace(statement, arguments=arguments, bodies=bodies)


def tidied(program: Program) -> Program:
    """Without states and placeholders that nothing takes."""
    used = {name for statement in program.statements for name in outer_names(statement)}
    return dataclasses.replace(
        program,
        states=tuple(s for s in program.states if s.name in used),
        placeholders=tuple(x for x in program.placeholders if x[0] in used),
    )
