"""Which settings of the allocator keep pages, and what leaves it alone."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import Any

import pytest

from flowstone.framework import flags
from flowstone.runtime.process import pages


@pytest.fixture(autouse=True)
def allocator(monkeypatch: Any) -> list[Any]:
    """The settings that are made, none of which reaches the process."""
    made: list[Any] = []

    def set_all(settings: Any) -> bool:
        made.append(settings)
        return True

    monkeypatch.setattr(pages, "_set", set_all)
    monkeypatch.setattr(pages, "_are_kept", False)
    monkeypatch.setattr(flags, "ALLOCATOR_IS_SET", False)
    return made


def test_pages_are_kept_once(allocator: list[Any]) -> None:
    assert pages.keep_pages() and pages.keep_pages()
    assert allocator == [pages._KEPT]


def test_giving_back_undoes_it(allocator: list[Any]) -> None:
    pages.give_pages_back()
    assert allocator == [], "nothing was kept"
    pages.keep_pages()
    pages.give_pages_back()
    assert allocator == [pages._KEPT, pages._GIVEN_BACK]
    assert pages.keep_pages() and len(allocator) == 3


def test_an_allocator_that_the_environment_set_is_left_alone(allocator: list[Any], monkeypatch: Any) -> None:
    monkeypatch.setattr(flags, "ALLOCATOR_IS_SET", True)
    assert not pages.keep_pages() and allocator == []


def test_both_set_the_same_things() -> None:
    assert {setting for setting, _ in pages._GIVEN_BACK} == {setting for setting, _ in pages._KEPT}


HEAP = """
import sys
import flowstone as tf
from flowstone.runtime.process import pages

def advised():
    heap, found = False, []
    for line in open("/proc/self/smaps"):
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            heap = line.rstrip().endswith("[heap]")
        elif heap and words[0] == "VmFlags:":
            found.append("hg" in words)
    return found

pages._PAUSE_S = 1e6
tf.config.tune_process(sys.argv[1] == "tuned")
with tf.Session() as session:
    large = tf.Variable(tf.zeros([50_000_000]))
    session.run(large.initializer)
    print(any(advised()))
    print(pages._timer is not None)
    pages._enlarge()
    print(any(advised()), session.run(tf.reduce_sum(large)))
"""


@pytest.mark.skipif(
    not pages._LARGE_PAGES.exists() or "[madvise]" not in pages._LARGE_PAGES.read_text(),
    reason="the system does not give large pages on request",
)
@pytest.mark.parametrize("how", ["tuned", "left alone"])
def test_large_pages_come_after_a_pause_where_the_process_is_tuned(how: str) -> None:
    environment = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
    environment.pop("GLIBC_TUNABLES", None)
    done = subprocess.run(
        [sys.executable, "-c", HEAP, how], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", *[str(how == "tuned")] * 2, "0.0"]


def test_a_system_without_large_pages_is_not_asked(monkeypatch: Any, tmp_path: Any) -> None:
    pages.keep_pages()
    monkeypatch.setattr(pages, "_LARGE_PAGES", tmp_path / "none")
    monkeypatch.setattr(ctypes, "CDLL", None)
    pages._are_on_request.cache_clear()
    try:
        pages.ask_for_large_pages()
    finally:
        pages._are_on_request.cache_clear()
