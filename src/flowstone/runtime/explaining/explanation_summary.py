"""Summarises explained steps in a few lines each, for the first screen; `explanation.py` gives all details.

[1] loss, train
    1000 steps of 92.0 us
    time      _FusedMatMul 40% (7.4 x its floor), _SoftmaxCrossEntropyTotal 26% (37.9 x), …
    floors    16.4 us for all nodes, of which a step takes 5.6 x
    memory    variables and constants 31.4 kB, fed 317.6 kB, values at most 8.0 kB at a time
    rewrites  29: fold_constants 12, apply_identities 7, … (4 more)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from flowstone.runtime.explaining.explanation import Explanation, group_types
from flowstone.runtime.explaining.step_profile import StepProfile
from flowstone.runtime.quantities import WIDTH, bytes_text, clipped, listed, time_text

_MOST_OPS = 3


def summary_text(explanations: Sequence[Explanation]) -> str:
    """The time of these kinds of step, where most of it goes, and what rewriting did to them."""
    return "\n".join(
        ["in short", *[line for i, x in enumerate(explanations, 1) for line in summary_lines(i, x)]]
    )


def summary_lines(number: int, explanation: Explanation) -> list[str]:
    """Those of one kind, which has this number."""
    lines = [clipped(listed(f"  [{number}] ", explanation.fetches), WIDTH)]
    runs, profile = explanation.runs, explanation.profile
    count = f"{runs} step{'s' if runs != 1 else ''}"
    if profile is None:
        lines.append(f"      {count}, not measured")
    else:
        lines.append(f"      {count} of {time_text(profile.step_ms)}")
        lines += [clipped(f"      {name:8}  {text}", WIDTH) for name, text in _measured(profile)]
    passes = Counter(rewrite for rewrite, _, _ in explanation.plan.subgraph.log)
    most = [f"{name} {many}" for name, many in passes.most_common()]
    lines.append(listed(f"      rewrites  {passes.total()}: ", most) if most else "      rewrites  none")
    return lines


def _measured(profile: StepProfile) -> list[tuple[str, str]]:
    types, memory = group_types(profile.nodes), profile.memory
    floor = sum(each.floor_ms for each in types)
    times = f"{time_text(floor)} for all nodes, of which a step takes {profile.step_ms / (floor or 1):.1f} x"
    values = f"values at most {bytes_text(memory.peak)} at a time"
    state = f"variables and constants {bytes_text(memory.state)}, fed {bytes_text(memory.fed)}"
    found = [("time", _most_expensive(profile)), ("memory", f"{state}, {values}")]
    if floor:
        found.insert(1, ("floors", times))
    return found


def _most_expensive(profile: StepProfile) -> str:
    """The ops that take the largest shares of all work; time spent waiting does not count."""
    types = [each for each in group_types(profile.nodes) if not each.waits]
    total = sum(each.ms for each in types)
    texts: list[str] = []
    unit = " x its floor"  # said once
    for each in types[:_MOST_OPS]:
        share = f"{each.type} {each.ms / total:.0%}" if total else each.type
        if each.floor_ms:
            share += f" ({each.floored_ms / each.floor_ms:.1f}{unit})"
            unit = " x"
        texts.append(share)
    return ", ".join(texts) or "no nodes"
