"""Libraries of machine code: numbers and addresses by name, and how threads share units."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from flowstone.framework import flags
from flowstone.native.codegen import compiler, host, making
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, when_asked, words_of
from flowstone.native.codegen.structured import Code

WORDS = ("threads", "count", "unused")
PLACES = {"note": ("source", "target")}


def text() -> str:
    """``note`` puts source[i] + 1 into target[i], each by the thread that has it."""
    declarations: dict[str, str] = {}
    some = Code("note_some", ["ptr a"], 1, declarations)
    a = places_of(some, PLACES["note"])
    _, start, end = my_part(some, words_of(some, a["words"], WORDS)["count"])
    with some.loop(start, end) as i:
        value = some.get("i64", some.at(a["source"], i, "i64"))
        some.set("i64", some.at(a["target"], i, "i64"), some.add(value, 1))
    whole = Code("note", ["ptr a"], 1, declarations, is_public=True)
    share(whole, "note_some")
    return "\n".join([some.text(), whole.text(), *declarations.values()])


@pytest.mark.parametrize("alone", [0, 1])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_unit_is_done_by_one_thread(monkeypatch, threads: int, alone: int) -> None:
    monkeypatch.setattr(host.ALONE, "value", alone)
    library = CodeLibrary(text, WORDS, PLACES)
    source, target = torch.arange(11), torch.zeros(11, dtype=torch.int64)
    for _ in range(2):
        places = {"source": source.data_ptr(), "target": target}
        library.call("note", {"threads": threads, "count": 10}, places)
        assert target.tolist() == [*range(1, 11), 0]
        source, target = target, source.zero_()
        target.zero_(), source.copy_(torch.arange(11))


TWO = {"note": ("source", "target"), "less": ("source", "target")}


def two_texts() -> str:
    """``less`` subtracts 1 from what ``note`` adds it to."""
    whole = Code("less", ["ptr a"], 1, {}, is_public=True)
    a = places_of(whole, TWO["less"])
    with whole.loop(0, words_of(whole, a["words"], WORDS)["count"]) as i:
        value = whole.get("i64", whole.at(a["source"], i, "i64"))
        whole.set("i64", whole.at(a["target"], i, "i64"), whole.sub(value, 1))
    return "\n".join([text(), whole.text()])


def called(library: CodeLibrary, name: str) -> list[int]:
    source, target = torch.arange(3), torch.zeros(3, dtype=torch.int64)
    library.call(name, {"threads": 1, "count": 3}, {"source": source, "target": target})
    return target.tolist()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[list[str], bool]]:
    """What is compiled, with an empty cache, and whether quickly."""
    making.wait_until_made()
    monkeypatch.setattr(flags, "NATIVE", 1)
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    seen: list[tuple[list[str], bool]] = []
    compiled = compiler.compiled

    def noted(text: str, names: list[str], is_rough: bool = False, quickly: bool = False) -> Any:
        seen.append((names, quickly))
        return compiled(text, names, is_rough, quickly)

    monkeypatch.setattr(compiler, "compiled", noted)
    return seen


def test_a_function_is_made_quickly_by_itself_and_then_all_well(
    made: list[tuple[list[str], bool]], tmp_path: Path
) -> None:
    library = CodeLibrary(two_texts, WORDS, TWO)
    assert called(library, "less") == [-1, 0, 1] and made == [(["less"], True)]
    assert [path.name.partition(".")[2] for path in tmp_path.rglob("*.o")] == ["less.quick.o"]
    making.wait_until_made()
    assert len(made) == 1  # a function that is called once needs no better code
    assert called(library, "less") == [-1, 0, 1]
    making.wait_until_made()
    assert made[1:] == [(["note", "less"], False)]
    assert [path.name.partition(".")[2] for path in tmp_path.rglob("*.o")] == ["o"]
    assert called(library, "less") == [-1, 0, 1] and called(library, "note") == [1, 2, 3] and len(made) == 2


def test_what_is_prepared_is_made_once(made: list[tuple[list[str], bool]]) -> None:
    library = CodeLibrary(two_texts, WORDS, TWO)
    library.prepare("note")
    assert called(library, "note") == [1, 2, 3]
    assert [each for each in made if each[1]] == [(["note"], True)]


def test_what_has_much_to_do_waits_for_the_best_code(made: list[tuple[list[str], bool]]) -> None:
    library = CodeLibrary(two_texts, WORDS, TWO)
    library.prepare("note", waits=True)
    assert called(library, "note") == [1, 2, 3] and called(library, "less") == [-1, 0, 1]
    assert made == [(["note", "less"], False)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_child_does_not_wait_for_what_its_parent_makes(made: list[tuple[list[str], bool]]) -> None:
    begun, ends = threading.Event(), threading.Event()

    def slow_text() -> str:
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            ends.wait(30)
        return two_texts()

    library = CodeLibrary(slow_text, WORDS, TWO)
    library.prepare("note")
    assert begun.wait(30)
    child = os.fork()
    if not child:
        os._exit(0 if called(library, "note") == [1, 2, 3] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    ends.set()
    assert called(library, "note") == [1, 2, 3]


def test_what_is_not_given_is_named() -> None:
    library = CodeLibrary(text, WORDS, PLACES)
    with pytest.raises(KeyError, match="target"):
        library.call("note", {"threads": 1}, {"source": torch.zeros(1)})


def test_what_is_made_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another thread, once; never where the native tier is off."""
    gate, threads = threading.Event(), []

    def make() -> str:
        threads.append(threading.current_thread())
        assert gate.wait(30)
        return "made"

    found = when_asked(make)
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert found() is None and not threads
    monkeypatch.setattr(flags, "NATIVE", 1)
    assert found() is None
    gate.set()
    making.wait_until_made()
    monkeypatch.setattr(flags, "NATIVE", 2)
    assert found() == found() == "made"
    assert len(threads) == 1 and threads[0] is not threading.current_thread()
