"""Random training programs train alike whatever the passes and the devices, and leave users' arrays alone.

Each program of `random_models` is trained for three steps without any pass; that is what training with all
passes, with one switched off, with only one, and over several devices must reproduce. `EXTRA_SEEDS=500`
in the environment tries so many more, and each pass that did something switched off.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import pytest

import flowstone as tf
import random_models
from flowstone.framework import flags
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.passes import run_passes
from flowstone.runtime.plans import plan

NAMES = frozenset(each.name for each in EVERY)
EXTRA = int(os.environ.get("EXTRA_SEEDS", "0"))
STEPS = 3
TELLING_SEEDS = (0, 3, 4, 5, 8)


class Training(NamedTuple):
    """What three steps fetched and, last, the variables; and the passes that changed something."""

    values: list[list[Any]]
    applied: set[str]
    model: random_models.Model


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "CHECK", 1)


def train(
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    disabled: frozenset[str],
    cpus: int = 1,
    scribbles: bool = False,
) -> Training:
    """Trains the program without these passes; `scribbles`: overwrites what it fed and fetched."""
    applied: set[str] = set()

    def chosen(subgraph: Any, passes: Any, _: frozenset[str]) -> Any:
        run_passes(subgraph, passes, disabled | flags.ROUNDING_PASSES)
        applied.update(name for name, _, _ in subgraph.log)
        return subgraph

    config = tf.ConfigProto(device_count={"CPU": cpus}, allow_soft_placement=True)
    with monkeypatch.context() as patch, tf.Graph().as_default():
        patch.setattr(plan, "run_passes", chosen)
        model = random_models.build(seed)
        with tf.Session(config=config) as session:
            model.initialise(session, seed)
            values = [_step(session, model, i, scribbles) for i in range(STEPS)]
            return Training([*values, session.run(tf.global_variables())], applied, model)


def _step(session: Any, model: random_models.Model, i: int, scribbles: bool) -> list[Any]:
    feed = model.feeds(i)
    before = [array.copy() for array in feed.values()]
    for op in model.before:
        session.run(op, feed)
    _, *fetched = session.run([model.train, *model.fetches], feed)
    for array, old in zip(feed.values(), before):
        np.testing.assert_array_equal(array, old, err_msg="a step changed what it was fed")
    kept = [np.array(value) for value in fetched]
    if scribbles:
        for value in (*fetched, *feed.values()):
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value.fill(7)
    return kept


def assert_alike(trained: Training, plain: Training, way: str) -> None:
    tolerance = plain.model.tolerance
    for step, (values, expected) in enumerate(zip(trained.values, plain.values)):
        for i, (a, b) in enumerate(zip(values, expected)):
            message = f"{way}, step {step}, value {i} of {plain.model.description}"
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=message)


@pytest.mark.parametrize("seed", range(24 + EXTRA))
def test_trains_alike(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = np.random.default_rng(seed)
    optional = flags.OPTIONAL_PASSES
    plain = train(monkeypatch, seed, NAMES)
    assert not plain.applied
    everything = train(monkeypatch, seed, optional)
    assert_alike(everything, plain, "all passes")
    off = sorted(everything.applied)
    for name in off if EXTRA else rng.choice(off, 1):
        assert_alike(train(monkeypatch, seed, optional | {name}), plain, f"without {name}")
    only = str(rng.choice(sorted(NAMES)))
    assert_alike(train(monkeypatch, seed, NAMES - {only}), plain, f"only {only}")
    cpus = int(rng.integers(2, 4))
    disabled = (optional, NAMES, frozenset[str]())[rng.integers(3)]
    assert_alike(train(monkeypatch, seed, disabled, cpus), plain, f"{cpus} CPUs without {sorted(disabled)}")


@pytest.mark.parametrize("seed", range(100, 108 + EXTRA))
def test_what_the_user_has_is_the_users(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Overwriting what was fed and fetched changes no later step, and no step changes what was fed."""
    calm = train(monkeypatch, seed, flags.OPTIONAL_PASSES)
    scribbled = train(monkeypatch, seed, flags.OPTIONAL_PASSES, scribbles=True)
    for values, expected in zip(scribbled.values, calm.values):
        for a, b in zip(values, expected):
            np.testing.assert_array_equal(a, b)


def test_the_programs_use_the_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried above would otherwise say nothing."""
    applied: set[str] = set()
    for seed in TELLING_SEEDS:
        applied |= train(monkeypatch, seed, flags.OPTIONAL_PASSES).applied
    assert applied >= {
        "drop_waits", "join_slices", "stack_products", "stack_accumulators", "pool_first", "keep_places",
        "fuse_biases", "fuse_losses", "fuse_updates", "group_updates",
    }  # fmt: skip
