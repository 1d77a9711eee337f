"""Which settings of the allocator keep pages, and what leaves it alone."""

from __future__ import annotations

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
