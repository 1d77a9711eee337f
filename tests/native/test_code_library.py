"""Libraries of machine code: numbers and addresses by name, and how threads share units."""

from __future__ import annotations

import threading

import pytest
import torch

from flowstone.framework import flags
from flowstone.native.code_library import CodeLibrary, my_part, places_of, share, when_asked, words_of
from flowstone.native.structured import Code

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


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_unit_is_done_by_one_thread(threads) -> None:
    library = CodeLibrary(text, WORDS, PLACES)
    source, target = torch.arange(11), torch.zeros(11, dtype=torch.int64)
    for _ in range(2):
        places = {"source": source.data_ptr(), "target": target}
        library.call("note", {"threads": threads, "count": 10}, places)
        assert target.tolist() == [*range(1, 11), 0]
        source, target = target, source.zero_()
        target.zero_(), source.copy_(torch.arange(11))


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
    monkeypatch.setattr(flags, "NATIVE", 2)
    assert found() == found() == "made"
    assert len(threads) == 1 and threads[0] is not threading.current_thread()
