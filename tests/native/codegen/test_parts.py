"""Parts of work: the same ones, whoever does them."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from flowstone.native.clusters.clusters import Array, Cluster, Result, Step
from flowstone.native.clusters.kernels import NativeKernel
from flowstone.native.codegen import compiler, host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, words_of
from flowstone.native.codegen.parts import by_team, has_teams
from flowstone.native.codegen.structured import Code
from flowstone.runtime.process.threads import limit

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "-")
NEEDS_TEAM = pytest.mark.skipif(not has_teams() or limit() is None, reason="no team of GNU's OpenMP")


def text() -> str:
    """``note`` writes the system's id of the thread that does each part."""
    declarations = {"gettid": "declare i32 @gettid()"}
    some = Code("note_some", ["ptr a"], 1, declarations)
    a = places_of(some, ["ids"])
    _, start, end = my_part(some, words_of(some, a["words"], ("threads", "count"))["count"])
    with some.loop(start, end) as i:
        some.set(
            "i64", some.at(a["ids"], i, "i64"), some.let(f"sext i32 {some.let('call i32 @gettid()')} to i64")
        )
    whole = Code("note", ["ptr a"], 1, declarations, is_public=True)
    share(whole, "note_some")
    return "\n".join([some.text(), whole.text(), *declarations.values()])


@NEEDS_TEAM
@pytest.mark.parametrize("alone", [False, True])
def test_the_caller_does_all_parts_if_others_want_the_cores(monkeypatch: Any, alone: bool) -> None:
    monkeypatch.setattr(host.ALONE, "value", int(alone))
    ids = torch.zeros(12, dtype=torch.int64)
    CodeLibrary(text, ("threads", "count"), {"note": ("ids",)}).call(
        "note", {"threads": 3, "count": 12}, {"ids": ids}
    )
    assert len(set(ids.tolist())) == (1 if alone else 3)
    assert ids[0] == threading.get_native_id()


@NEEDS_TEAM
@pytest.mark.parametrize(("over", "left"), [("all", ()), ("columns", (257,)), ("row", (1031,))])
def test_a_cluster_has_the_same_bits_either_way(
    monkeypatch: Any, set_profile: Any, over: str, left: Any
) -> None:
    set_profile(native_team=1)
    steps = (Step("Sum", (0,), "float32", (("over", over),)),)
    dims = (1031, 257)
    cluster = Cluster(dims, (Array("float32", dims),), steps, (1,), 1, results=(Result("float32", left),))
    kernel = NativeKernel(cluster, lambda x: None, None)
    kernel.compile()
    x = torch.randn(dims, generator=torch.Generator().manual_seed(1))
    found = []

    def work() -> None:  # in a thread of its own, whose number of threads nobody else sees
        limit()(3)
        for alone in (0, 1):
            host.ALONE.value = alone
            found.append(kernel(x)[0].clone())

    monkeypatch.setattr(host.ALONE, "value", 0)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert torch.equal(*found)


def test_without_a_team_there_is_one_part(monkeypatch: Any) -> None:
    monkeypatch.setattr("flowstone.native.codegen.parts.has_teams", lambda: False)
    declarations: dict[str, str] = {}
    name = by_team("work", declarations)
    assert name == "work_by_team" and "i64 0, i64 1" in declarations[name]
    assert "GOMP" not in "".join(declarations.values())
    compiler.compiled("\n".join([*declarations.values(), _WORK]), ["call"])


_WORK = """define internal void @work(ptr %a, i64 %part, i64 %parts) {
 ret void
}
define void @call(ptr %a) {
 call void @work_by_team(ptr %a, i32 0)
 ret void
}"""
