"""Tests choose kernels by one profile, whatever processor they run on, and may change its numbers.

Plans are those that users have: clusters of operations are machine code, from the first run on where a run
changes no state that it reads. ``FLOWSTONE_NATIVE=0 pytest`` runs all tests by ATen's kernels alone, 2
compiles all code when a step is planned. `pytest --plain-torch` runs them as on a torch without oneDNN and
MKL.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import itertools
import os
import types
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--plain-torch", action="store_true", help="as if torch had neither oneDNN nor MKL")


os.environ["FLOWSTONE_MACHINE"] = (
    "amd-zen5"  # before flowstone is imported; for programs that tests start, too
)
_YOUNG_OBJECTS = 20_000  # that are made before the collector looks for garbage
_AS_SAID = "FLOWSTONE_NATIVE" in os.environ  # by who runs the tests
# Rooms of passes before that which makes clusters: their tests look at the nodes that clusters would join,
# and compute hundreds of small programs with and without a pass, each of which would be compiled.
_BY_ATEN = ("tests/lowering/", "tests/rewriting/")


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "needs_onednn: what is tested is oneDNN's, which not every torch has")
    config.addinivalue_line(
        "markers", "by_aten: looks at nodes, calls or bits that clusters take the place of"
    )
    config.addinivalue_line("markers", "both_ways: by machine code, and by ATen's kernels alone")
    if config.getoption("--plain-torch"):
        strip(torch)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[Any]:
    """Modules and tests last as long as the process: the collector walks none of them, now or later, and
    what the tests make it walks less often than it would."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_YOUNG_OBJECTS)
        gc.enable()


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    if config.getoption("--plain-torch"):
        for item in items:
            if item.get_closest_marker("needs_onednn"):
                item.add_marker(pytest.mark.skip(reason="this torch has no oneDNN"))


def strip(module: Any) -> None:
    """Takes oneDNN and MKL from torch, as far as programs can tell. Before flowstone is imported."""
    module._C._set_mkldnn_enabled(False)
    module.backends.mkldnn.is_available = lambda: False
    module.backends.mkl.is_available = lambda: False
    module.ops.mkldnn = types.SimpleNamespace()


def pytest_generate_tests(metafunc: Any) -> None:
    """What only ATen's kernels do, `by_aten`, is not run twice, also in a file of tests for both."""
    both, one = (metafunc.definition.get_closest_marker(name) for name in ("both_ways", "by_aten"))
    if both and not one and not _AS_SAID:
        metafunc.parametrize("native", [2, 0], indirect=True, ids=["machine code", "ATen"])


@pytest.fixture(autouse=True)
def native(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How plans of the test are compiled, as ``FLOWSTONE_NATIVE`` says it."""
    from flowstone.framework import flags  # after `pytest_configure`

    if request.node.get_closest_marker("by_aten"):
        monkeypatch.setattr(flags, "NATIVE", 0)
    elif not _AS_SAID:
        usual = 0 if request.node.nodeid.startswith(_BY_ATEN) else 1
        monkeypatch.setattr(flags, "NATIVE", getattr(request, "param", usual))


@pytest.fixture(autouse=True)
def no_chance(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that no seed is given for are others in each test, but the same whenever it runs."""
    from flowstone.ops.randomness import op_seeds  # after `pytest_configure`

    name, drawn = request.node.nodeid.encode(), itertools.count()

    def random_bytes(count: int) -> bytes:
        return hashlib.shake_128(b"%d %s" % (next(drawn), name)).digest(count)

    monkeypatch.setattr(op_seeds, "_random_bytes", random_bytes)
    np.random.seed(zlib.crc32(name))


@pytest.fixture
def graph() -> Iterator[Any]:
    """The default graph of the test, which is empty."""
    import flowstone as tf  # after `pytest_configure`

    with tf.Graph().as_default() as own:
        yield own


@pytest.fixture
def nothing_set() -> Iterator[None]:
    """No setting of `tf.config` holds for the process, before and after the test."""
    from flowstone.client import process_settings  # after `pytest_configure`

    def clear() -> None:
        for each in (process_settings._config, process_settings._hidden, process_settings._logical):
            each.clear()  # type: ignore[attr-defined]

    clear()
    yield
    clear()


@pytest.fixture
def set_profile() -> Iterator[Callable[..., None]]:
    """A function that changes fields of the profile until the test ends."""
    from flowstone.framework.machine import machine  # after `pytest_configure`

    with contextlib.ExitStack() as stack:
        yield lambda **fields: stack.enter_context(
            machine.using(machine.current().profile._replace(**fields))
        )
