"""Tests choose kernels by one profile, whatever processor they run on, and may change its numbers.

`pytest --plain-torch` runs the tests as on a build of torch without oneDNN and MKL.
"""

from __future__ import annotations

import contextlib
import os
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--plain-torch", action="store_true", help="as if torch had neither oneDNN nor MKL")


os.environ["FLOWSTONE_MACHINE"] = (
    "amd-zen5"  # before flowstone is imported; for programs that tests start, too
)
# Most tests look at graphs and bits; those of machine code switch it on (`tests/native`).
os.environ.setdefault("FLOWSTONE_NATIVE", "0")


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "needs_onednn: what is tested is oneDNN's, which not every torch has")
    config.addinivalue_line("markers", "by_aten: looks at nodes and calls that clusters take the place of")
    if config.getoption("--plain-torch"):
        strip(torch)


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


@pytest.fixture(autouse=True)
def no_clusters(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves tests that are marked so to ATen, whatever ``FLOWSTONE_NATIVE`` says."""
    if request.node.get_closest_marker("by_aten"):
        from flowstone.framework import flags  # after `pytest_configure`

        monkeypatch.setattr(flags, "NATIVE", 0)


@pytest.fixture
def set_profile() -> Iterator[Callable[..., None]]:
    """A function that changes fields of the profile until the test ends."""
    from flowstone.framework import machine  # after `pytest_configure`

    with contextlib.ExitStack() as stack:
        yield lambda **fields: stack.enter_context(
            machine.using(machine.current().profile._replace(**fields))
        )
