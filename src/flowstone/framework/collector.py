"""Python's cyclic garbage collector, paused where very many objects are made of which none dies.

Declaring all ops, differentiating a large graph and planning its step each make tens of thousands of lasting
objects; walking them again and again would take a tenth of torch's import, half of the differentiation and
half of the planning.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Within the context nothing is collected, unless the collector was off anyway."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
