"""Python's cyclic garbage collector, paused where very many objects are made of which none dies.

Declaring all ops, differentiating a large graph and planning its step each make tens of thousands of lasting
objects; walking them again and again would take a tenth of torch's import, half of the differentiation and
half of the planning.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

from flowstone.framework import flags

_MANY = 200_000  # objects of a program, which are not ours to keep
_INITIAL = (700, 2000)  # Python's own numbers of new objects until the collector looks for garbage
_YOUNG = 10_000  # ours: with Python's, it walks a growing graph and its plans several times more often
_MANY_NEW = 5_000  # objects that have not been walked yet
_thread = threading.local()
_has_frozen = False
_before: int | None = None  # the number that `_YOUNG` stands for


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """As `paused`; what is made lasts as long as the process, so it is not walked afterwards either. Nor does
    the collector look for garbage as often as before.

    In a program that has many objects already, or has frozen some, these stay collectable, and so does what
    is made here; also with ``FLOWSTONE_TUNE_PROCESS=0``. How often garbage is looked for stays as it was
    there, or if the program has set it.
    """
    global _has_frozen, _before
    is_young = gc.isenabled() and not gc.get_freeze_count() and len(gc.get_objects()) < _MANY
    with paused():
        yield
        if is_young and flags.TUNE_PROCESS:
            gc.freeze()
            _has_frozen = True
            initial, *others = gc.get_threshold()
            if initial in _INITIAL:
                gc.set_threshold(_YOUNG, *others)
                _before = initial


def undo() -> None:
    """Makes what `importing` has frozen collectable, and garbage be looked for as often as before."""
    global _has_frozen, _before
    if _has_frozen:
        gc.unfreeze()
        _has_frozen = False
    current, *others = gc.get_threshold()
    if _before is not None and current == _YOUNG:
        gc.set_threshold(_before, *others)
    _before = None


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Within the context nothing is collected, unless the collector was off anyway, or is `left_alone`. Many
    objects that were made are walked once at its end, and not again when they have become a little older."""
    if not gc.isenabled() or getattr(_thread, "is_leaving_alone", False):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        if gc.get_count()[0] > _MANY_NEW:
            gc.collect(1)


@contextlib.contextmanager
def left_alone() -> Iterator[None]:
    """Within the context this thread does not pause the collector: the program makes garbage meanwhile."""
    _thread.is_leaving_alone = True
    try:
        yield
    finally:
        _thread.is_leaving_alone = False
