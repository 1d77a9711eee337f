"""Pages: keeps memory that a step frees in the process, for the next step.

glibc gives every large buffer its own mapping and unmaps it when it is freed, so that each step pays for
fresh pages: a fault and 4 KiB of zeros for each, a fifth of a convolutional network's training step.
`keep_pages` tells it to take large buffers from the heap and never to trim that; and not to use its lists of
small chunks of one size ("fast bins"), which it empties whenever a larger chunk is freed beside the heap's
end, as each call of oneDNN does. The cost: memory is not given back to the system while the process lives.
Measured in docs/design/010. An allocator that the environment has set (``MALLOC_…``, ``GLIBC_TUNABLES``) is
left alone. `give_pages_back` restores glibc's initial settings; only the size from which buffers get their
own mapping is no longer adapted.

`ask_for_large_pages` asks the system for pages of 2 MB, where it gives them to who asks: a processor then
looks up fewer addresses. They come with the first write to a page, so the heap is made longer ahead of its
use, by addresses alone, and what it has grown by is asked for whenever a plan is made.
"""

from __future__ import annotations

import ctypes
import functools
import platform
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
_AHEAD = 1 << 30  # bytes of addresses by which the heap is made longer than it is
_LARGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_ADVISE_LARGE_PAGES = 14  # of <sys/mman.h>
_end = 0  # of the heap when large pages were asked for


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
    """Asks for large pages of the heap, if freed memory stays with the process and the heap has grown."""
    global _end
    if not _are_kept or not _are_on_request():
        return
    library = ctypes.CDLL(None)
    library.sbrk.restype = library.malloc.restype = ctypes.c_void_p
    if library.sbrk(0) == _end:
        return
    memory = library.malloc(ctypes.c_size_t(_AHEAD))
    library.free(ctypes.c_void_p(memory))
    _end, start = library.sbrk(0), _start_of_heap()
    if start is not None:
        size = ctypes.c_size_t(_end - start)
        library.madvise(ctypes.c_void_p(start), size, _ADVISE_LARGE_PAGES)


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
