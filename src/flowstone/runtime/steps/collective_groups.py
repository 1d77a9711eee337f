"""`CollectiveGroups`: who meets whom in collective operations. A state machine without I/O (white paper 7).

A collective operation is a *group* of nodes, one on each of some devices, that exchange values: `group_key`
names the group, `instance_key` the operation within it. A node's turn in a step is an *offer*. Offers of the
same keys meet, one of each member, first come, first served: the members' n-th steps exchange values with
each other, whatever the sessions, processes and graphs that they belong to.

Steps that have met share their fate: they have used each other's values, so that when one fails, the others
do, too (AbortedError). A step that only waits may leave; the others go on waiting, for its next one.

===========  =========================================================================================
event        instructions that follow
===========  =========================================================================================
`join`       `Meet` once an offer of each member is there; `Refuse` for offers that contradict
`fail`       `Refuse` for the offers of the step, and of those that have met it
`end`        none: the step is forgotten; a group is, when none of its steps is left
`lost`       as `fail` for the steps of a task that is gone; `Refuse` for those that wait for it; each task
             that shared a group with it hears of it once: now, or at its next offer to the group
===========  =========================================================================================

`validate` checks what must hold; `story` lists what happened in a group, if a log is kept.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flowstone.framework import errors
from flowstone.framework.types.shape import format_dims
from flowstone.ops.collectives.offers import BROADCAST, Offer

__all__ = ["CollectiveGroups", "Instruction", "Meet", "Refuse", "rank_key"]


class Meet(NamedTuple):
    """All members are here: their tickets and offers, in the order of their ranks."""

    tickets: list[Any]
    offers: list[Offer]


class Refuse(NamedTuple):
    """The offer of this ticket ends with an error."""

    ticket: Any
    error: errors.OpError


Instruction = Meet | Refuse
Step = Hashable


class _Entry(NamedTuple):
    ticket: Any
    step: Step
    offer: Offer


@dataclass(eq=False)
class _Meeting:
    """Offers of the same keys, by member; after a contradiction the `error`, and the members that are still
    to hear of it."""

    entries: dict[str, _Entry] = field(default_factory=dict)
    error: errors.OpError | None = None
    owed: set[str] = field(default_factory=set)


@dataclass(eq=False)
class _Group:
    size: int
    members: set[str] = field(default_factory=set)
    steps: set[Step] = field(default_factory=set)
    meetings: dict[Hashable, list[_Meeting]] = field(default_factory=dict)


@dataclass(eq=False)
class _Known:
    """A step: the task that runs it; the steps that it has met; its groups; the node that has joined for each
    member of each operation."""

    task: str
    met: set[Step] = field(default_factory=set)
    groups: set[Hashable] = field(default_factory=set)
    nodes: dict[tuple[Hashable, Hashable, str], str] = field(default_factory=dict)
    error: errors.OpError | None = None


class _Loss(NamedTuple):
    """What a task is still to hear: another one, which was in these groups, is gone. Otherwise it would go on
    with a replacement that has begun anew."""

    groups: set[Hashable]
    error: errors.OpError


class CollectiveGroups:
    """The groups, by their keys. The caller serialises the calls. Tickets are the caller's, to say which
    offer is meant."""

    def __init__(self, keeps_story: bool = False) -> None:
        self._groups: dict[Hashable, _Group] = {}
        self._steps: dict[Step, _Known] = {}
        self._losses: dict[str, _Loss] = {}  # by the tasks that are to hear of them
        self._story: list[tuple[Hashable, str]] | None = [] if keeps_story else None

    # ---- events

    def join(self, step: Step, task: str, ticket: Any, offer: Offer) -> list[Instruction]:
        """A node of a step of `task` offers its value.

        It is refused with InternalError for a group of another size or that is full, for keys that another
        node of the step has used, for another operation or type than the others'; with InvalidArgumentError
        for another shape; with the error of its step if that has failed.
        """
        known = self._steps.setdefault(step, _Known(task))
        found: list[Instruction] = []
        if known.error is None and task in self._losses and offer.group in self._losses[task].groups:
            found = self.fail(step, self._losses[task].error)
        if known.error is not None:
            self._hears(task, known.error)
            return [Refuse(ticket, known.error), *found]
        self._tell(offer.group, f"{offer.member} joins {offer.instance}")
        group = self._groups.get(offer.group)
        if group is None:
            group = self._groups[offer.group] = _Group(offer.size)
        group.steps.add(step)
        known.groups.add(offer.group)
        error = _fault(group, known, offer)
        if error is not None:
            return [Refuse(ticket, error), *self._refuse_all(group, error)]
        group.members.add(offer.member)
        known.nodes[offer.group, offer.instance, offer.member] = offer.node
        return self._met(group, _Entry(ticket, step, offer))

    def fail(self, step: Step, error: errors.OpError) -> list[Instruction]:
        """A step ends early: those that have met it do as well."""
        known = self._steps.get(step)
        if known is None or known.error is not None:
            return []
        known.error = error
        found = self._withdrawn(step, known, error)
        self._leave(step, known)
        for other in list(known.met):
            found += self.fail(other, _aborted(known, error))
        return found

    def end(self, step: Step) -> None:
        """A step is over."""
        known = self._steps.pop(step, None)
        if known is None:
            return
        for other in known.met:
            if other in self._steps:
                self._steps[other].met.discard(step)
        self._leave(step, known)

    def _leave(self, step: Step, known: _Known) -> None:
        """Forgets the groups of which no step is left, unless a member is still to hear of a failure."""
        for key in known.groups:
            group = self._groups.get(key)
            if group is not None:
                group.steps.discard(step)
                if not group.steps and not any(meeting.owed for meeting in _all_meetings(group)):
                    del self._groups[key]
        known.groups.clear()

    def _hears(self, task: str, error: errors.OpError) -> None:
        if task in self._losses and self._losses[task].error is error:
            del self._losses[task]

    def forget_failures(self, task: str) -> None:
        """Members that are still to hear of a failure of past steps will not: another program begins in the
        task. It hears of no loss either."""
        self._losses.pop(task, None)
        for key, group in list(self._groups.items()):
            if not group.steps:
                del self._groups[key]

    def lost(self, task: str, error: errors.OpError) -> list[Instruction]:
        """A task is gone: its steps end, and what waits for its members."""
        found: list[Instruction] = []
        self._losses.pop(task, None)
        lost = [key for key, group in self._groups.items() if any(_is_of(m, task) for m in group.members)]
        groups = [self._groups[key] for key in lost]
        for key, group in zip(lost, groups):
            group.members = {member for member in group.members if not _is_of(member, task)}
            for other in {member.partition("/device:")[0] for member in group.members}:
                earlier = self._losses.get(other, _Loss(set(), error))
                self._losses[other] = _Loss(earlier.groups | {key}, error)
        for group in groups:
            for meeting in _all_meetings(group):
                for entry in list(meeting.entries.values()):
                    found += self.fail(entry.step, error)
        for step, known in list(self._steps.items()):
            if known.task == task:
                found += self.fail(step, error)
                self.end(step)
        return found

    def fail_all(self, error: errors.OpError) -> list[Instruction]:
        """Ends all steps."""
        return [each for step in list(self._steps) for each in self.fail(step, error)]

    # ---- questions

    def missing(self, offer: Offer) -> list[str]:
        """What an offer that waits still waits for: members by name, as far as they are known."""
        group = self._groups.get(offer.group)
        known = set() if group is None else group.members
        for meeting in () if group is None else group.meetings.get(offer.instance, ()):
            if offer.member in meeting.entries:
                names = sorted(known - set(meeting.entries), key=rank_key)
                unknown = offer.size - len(meeting.entries) - len(names)
                return [*names, *([f"{unknown} that have not joined the group yet"] if unknown else [])]
        return []

    def validate(self) -> None:
        """AssertionError if the state contradicts itself."""
        for key, group in self._groups.items():
            is_kept = group.steps or any(meeting.owed for meeting in _all_meetings(group))
            assert is_kept, f"group {key} has no step"
            assert len(group.members) <= group.size, f"group {key} has too many members"
            for meeting in _all_meetings(group):
                assert meeting.entries or meeting.owed, f"group {key} has an empty meeting"
                for entry in meeting.entries.values():
                    assert meeting.error is None, f"group {key}: a refused offer waits"
                    assert entry.step in self._steps, f"group {key}: {entry.step} waits but is unknown"
        for step, known in self._steps.items():
            for other in known.met & set(self._steps):
                assert step in self._steps[other].met, f"{step} has met {other}, but not the reverse"

    def story(self, group: Hashable) -> list[str]:
        """What happened in the group, in order; needs a log."""
        return [event for key, event in self._story or () if key == group]

    def __len__(self) -> int:
        return len(self._steps)

    # ---- meetings

    def _met(self, group: _Group, entry: _Entry) -> list[Instruction]:
        """Puts an offer to the first meeting that lacks its member."""
        offer = entry.offer
        meetings = group.meetings.setdefault(offer.instance, [])
        meeting = next((each for each in meetings if _has_room(each, offer.member)), None)
        if meeting is None:
            meeting = _Meeting()
            meetings.append(meeting)
        if meeting.error is not None:
            meeting.owed.discard(offer.member)
            if not meeting.owed:
                meetings.remove(meeting)
            return [Refuse(entry.ticket, meeting.error)]
        meeting.entries[offer.member] = entry
        first = next(iter(meeting.entries.values())).offer
        error = _contradiction(first, offer)
        if error is None and len(meeting.entries) == group.size:
            error = _source_fault(meeting.entries.values())
        if error is not None:
            return self._refused(group, meetings, meeting, error)
        if len(meeting.entries) < group.size:
            return []
        meetings.remove(meeting)
        return [self._meet(offer.group, list(meeting.entries.values()))]

    def _meet(self, key: Hashable, entries: list[_Entry]) -> Meet:
        entries = sorted(entries, key=lambda entry: rank_key(entry.offer.member))
        steps = {entry.step for entry in entries}
        for step in steps:
            self._steps[step].met |= steps - {step}
        self._tell(key, f"{entries[0].offer.instance} meets")
        return Meet([entry.ticket for entry in entries], [entry.offer for entry in entries])

    def _refused(
        self, group: _Group, meetings: list[_Meeting], meeting: _Meeting, error: errors.OpError
    ) -> list[Instruction]:
        """Ends a meeting with an error; members in other tasks hear of it when they come."""
        entries = list(meeting.entries.values())
        tasks = {self._steps[entry.step].task for entry in entries}
        meeting.entries, meeting.error = {}, error
        meeting.owed = {m for m in group.members if not any(_is_of(m, task) for task in tasks)}
        if not meeting.owed:
            meetings.remove(meeting)
        return [Refuse(entry.ticket, error) for entry in entries]

    def _refuse_all(self, group: _Group, error: errors.OpError) -> list[Instruction]:
        entries = [entry for meeting in _all_meetings(group) for entry in meeting.entries.values()]
        group.meetings.clear()
        return [Refuse(entry.ticket, error) for entry in entries]

    def _withdrawn(self, step: Step, known: _Known, error: errors.OpError) -> list[Instruction]:
        """Takes a step's offers out of the meetings that are not complete."""
        found: list[Instruction] = []
        for key in known.groups & set(self._groups):
            for meetings in self._groups[key].meetings.values():
                for meeting in list(meetings):
                    for member, entry in list(meeting.entries.items()):
                        if entry.step == step:
                            del meeting.entries[member]
                            found.append(Refuse(entry.ticket, error))
                            self._hears(known.task, error)
                    if not meeting.entries and not meeting.owed:
                        meetings.remove(meeting)
        return found

    def _tell(self, group: Hashable, event: str) -> None:
        if self._story is not None:
            self._story.append((group, event))


def rank_key(member: str) -> list[Any]:
    """Orders members by job, task, type and number of their devices: their ranks."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", member)]


def _is_of(member: str, task: str) -> bool:
    return member.startswith(f"{task}/")


def _has_room(meeting: _Meeting, member: str) -> bool:
    return member in meeting.owed if meeting.error is not None else member not in meeting.entries


def _all_meetings(group: _Group) -> Iterable[_Meeting]:
    return [meeting for meetings in group.meetings.values() for meeting in meetings]


def _internal(message: str) -> errors.OpError:
    return errors.InternalError(None, None, message)


def _aborted(known: _Known, error: errors.OpError) -> errors.OpError:
    if isinstance(error, (errors.UnavailableError, errors.AbortedError)):
        return error
    return errors.AbortedError(
        None, None, f"A step of {known.task}, whose values this one uses, failed: {error.message}"
    )


def _fault(group: _Group, known: _Known, offer: Offer) -> errors.OpError | None:
    """Why an offer cannot be one of its group."""
    if offer.size != group.size:
        return _internal(
            f"{offer.member} joins group {offer.group} as one of {offer.size} members, but the group has "
            f"{group.size}"
        )
    if offer.member not in group.members and len(group.members) == group.size:
        names = ", ".join(sorted(group.members, key=rank_key))
        return _internal(f"{offer.member} joins group {offer.group}, which is already full: {names}")
    other = known.nodes.get((offer.group, offer.instance, offer.member), offer.node)
    if other != offer.node:
        return _internal(
            f"{other} and {offer.node} are on {offer.member} and have the same keys: group {offer.group}, "
            f"instance {offer.instance}"
        )
    return None


def _contradiction(first: Offer, offer: Offer) -> errors.OpError | None:
    """Why two offers cannot meet."""
    where = f"in the collective operation {offer.instance} of group {offer.group}"
    if (first.kind, first.dtype) != (offer.kind, offer.dtype):
        return _internal(
            f"{first.member} has a {first.kind} of {first.dtype} {where}, but {offer.member} has a "
            f"{offer.kind} of {offer.dtype}"
        )
    if first.dims != offer.dims:
        return errors.InvalidArgumentError(
            None,
            None,
            f"Shape mismatch {where}: {first.member} has the shape {format_dims(first.dims)}, but "
            f"{offer.member} has {format_dims(offer.dims)}",
        )
    if first.stays != offer.stays:
        kept, other = (first, offer) if first.stays else (offer, first)
        return _internal(
            f"{kept.member} exchanges large values with other tasks {where}, and {other.member} cannot: its "
            "torch has no Gloo"
        )
    if (first.merge, first.is_mean) != (offer.merge, offer.is_mean):
        return _internal(
            f"{first.member} wants {_merging(first)} {where}, but {offer.member} {_merging(offer)}"
        )
    return None


def _merging(offer: Offer) -> str:
    return f"the {offer.merge} {'divided by the number of members' if offer.is_mean else 'itself'}"


def _source_fault(entries: Iterable[_Entry]) -> errors.OpError | None:
    """Why a broadcast cannot be: it has one source."""
    offers = [entry.offer for entry in entries]
    sources = [offer.member for offer in offers if offer.is_source]
    if offers[0].kind != BROADCAST or len(sources) == 1:
        return None
    where = f"The broadcast {offers[0].instance} of group {offers[0].group}"
    if not sources:
        return _internal(f"{where} has no source: all its {len(offers)} members receive")
    return _internal(f"{where} has several sources: {', '.join(sorted(sources, key=rank_key))}")
