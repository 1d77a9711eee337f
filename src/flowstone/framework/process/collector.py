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
_MANY_NEW = 5_000  # objects that have not been walked yet
_thread = threading.local()
_has_frozen = False


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """As `paused`; what is made lasts as long as the process, so it is not walked afterwards either.

    In a program that has many objects already, or has frozen some, these stay collectable, and so does what
    is made here; also with ``FLOWSTONE_TUNE_PROCESS=0``.
    """
    global _has_frozen
    is_young = gc.isenabled() and not gc.get_freeze_count() and len(gc.get_objects()) < _MANY
    with paused():
        yield
        if is_young and flags.TUNE_PROCESS:
            gc.freeze()
            _has_frozen = True


def unfreeze() -> None:
    """Makes what `importing` has frozen collectable."""
    global _has_frozen
    if _has_frozen:
        gc.unfreeze()
        _has_frozen = False


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Within the context nothing is collected, unless the collector was off anyway, or is `left_alone`."""
    if not gc.isenabled() or getattr(_thread, "is_leaving_alone", False):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def importing_late() -> Iterator[None]:
    """As `paused`, for an import while the program runs. What is made lasts: it is walked once, and not again
    when it has become a little older, which would be in the middle of a first step."""
    is_outermost = gc.isenabled()
    with paused():
        yield
        if is_outermost and gc.get_count()[0] > _MANY_NEW:
            gc.collect(1)


@contextlib.contextmanager
def left_alone() -> Iterator[None]:
    """Within the context this thread does not pause the collector: the program makes garbage meanwhile."""
    _thread.is_leaving_alone = True
    try:
        yield
    finally:
        _thread.is_leaving_alone = False
