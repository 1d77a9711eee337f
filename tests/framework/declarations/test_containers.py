"""Containers: resources by name, reset by container."""

from __future__ import annotations

import threading

from flowstone.framework.declarations.containers import ResourceStore, Variable


def test_a_resource_is_made_once_per_container_and_name():
    store = ResourceStore()
    made = []

    def make():
        made.append(1)
        return Variable("v")

    first = store.look_up_or_create("", "v", make)
    assert store.look_up_or_create("", "v", make) is first
    assert store.look_up_or_create("other", "v", make) is not first
    assert len(made) == 2


def test_reset_drops_named_containers_or_all():
    store = ResourceStore()
    kept, dropped = (store.look_up_or_create(c, "v", lambda: Variable("v")) for c in ("a", "b"))
    store.reset(["b"])
    assert store.look_up_or_create("a", "v", lambda: Variable("v")) is kept
    assert store.look_up_or_create("b", "v", lambda: Variable("v")) is not dropped
    store.reset()
    assert store.look_up_or_create("a", "v", lambda: Variable("v")) is not kept


def test_an_uninitialised_variable_has_no_tensor():
    v = Variable("v")
    assert not v.is_initialized and "uninitialised" in repr(v)
    v.tensor = 1
    assert v.is_initialized and "uninitialised" not in repr(v)


def test_threads_agree_on_the_resource():
    store, found = ResourceStore(), []
    threads = [
        threading.Thread(target=lambda: found.append(store.look_up_or_create("", "v", lambda: Variable("v"))))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(v) for v in found}) == 1
