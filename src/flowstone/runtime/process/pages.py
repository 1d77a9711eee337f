"""Pages: keeps memory that a step frees in the process, for the next step.

glibc gives every large buffer its own mapping and unmaps it when it is freed, so that each step pays for
fresh pages: a fault and 4 KiB of zeros for each, a fifth of a convolutional network's training step.
`keep_pages` tells it to take large buffers from the heap and never to trim that; and not to use its lists of
small chunks of one size ("fast bins"), which it empties whenever a larger chunk is freed beside the heap's
end, as each call of oneDNN does. The cost: memory is not given back to the system while the process lives.
Measured in docs/design/010. An allocator that the environment has set (``MALLOC_…``, ``GLIBC_TUNABLES``) is
left alone. `give_pages_back` restores glibc's initial settings; only the size from which buffers get their
own mapping is no longer adapted.

`ask_for_large_pages` has the system put what is kept into pages of 2 MB, where it gives them to who asks: a
processor then looks up fewer addresses. A page of 2 MB takes long to come, so the first steps do with small
ones. Some seconds after a plan a thread has the pages put together, beside the program's steps.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import threading
from pathlib import Path

from flowstone.framework import flags

# Of <malloc.h>.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _LARGEST_FAST = -1, -2, -4, 1
_LARGEST = 2**31 - 1  # bytes, an int of C
_PAD = 1 << 26  # bytes by which the heap grows beyond what is asked for
_KEPT = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _LARGEST), (_TOP_PAD, _PAD), (_LARGEST_FAST, 0))
_GIVEN_BACK = (
    (_MMAP_MAX, 1 << 16),
    (_TRIM_THRESHOLD, 1 << 17),
    (_TOP_PAD, 1 << 17),
    (_LARGEST_FAST, 16 * ctypes.sizeof(ctypes.c_size_t)),
)
_are_kept = False
_LARGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_ADVISE_LARGE_PAGES, _COLLAPSE = 14, 25  # of <sys/mman.h>
_PAUSE_S = 5.0  # after a plan: a program that goes on for longer gains what the large pages cost
_timer: threading.Timer | None = None  # the last one


def keep_pages() -> bool:
    """Makes these settings; returns whether the allocator has them."""
    global _are_kept
    if not _are_kept:
        _are_kept = not flags.ALLOCATOR_IS_SET and _set(_KEPT)
    return _are_kept


def give_pages_back() -> None:
    """Undoes `keep_pages`, and gives memory that is free now back to the system."""
    global _are_kept
    if _are_kept:
        _set(_GIVEN_BACK)
        ctypes.CDLL(None).malloc_trim(0)
        _are_kept = False


def ask_for_large_pages() -> None:
    """Has the heap in large pages after a while, if freed memory stays with the process."""
    global _timer
    if _are_kept and _are_on_request() and (_timer is None or not _timer.is_alive()):
        _timer = threading.Timer(_PAUSE_S, _enlarge)  # a child after a fork has none
        _timer.daemon, _timer.name = True, "flowstone large pages"
        _timer.start()


def _enlarge() -> None:
    """Has large pages for all of the heap: for what is in use now, where the system can, and what comes."""
    library = ctypes.CDLL(None)
    library.sbrk.restype = ctypes.c_void_p
    start, end = _start_of_heap(), library.sbrk(0)
    if start is None or not _are_kept:
        return
    for advice in (_ADVISE_LARGE_PAGES, _COLLAPSE):  # the latter since Linux 6.1
        library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), advice)


@functools.cache
def _are_on_request() -> bool:
    """Whether the system has large pages for who asks, and for nobody else."""
    try:
        return "[madvise]" in _LARGE_PAGES.read_text()
    except OSError:
        return False


def _start_of_heap() -> int | None:
    """Where the heap begins; None if the system does not tell."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split("-")[0], 16) for line in lines if line.endswith("[heap]")), None)


def _set(settings: tuple[tuple[int, int], ...]) -> bool:
    """Makes settings; returns whether that succeeded: only glibc's allocator has them."""
    if platform.libc_ver()[0] != "glibc":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all([mallopt(setting, value) == 1 for setting, value in settings])
