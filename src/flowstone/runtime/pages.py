"""Pages: memory that a step frees stays with the process, for the next step.

glibc gives every large buffer its own mapping and unmaps it when it is freed, so that each step pays for
fresh pages: a fault and 4 KiB of zeros for each, a fifth of a convolutional network's training step.
`keep_pages` tells it to take large buffers from the heap and never to trim that; and to do without its lists
of small chunks of one size ("fast bins"), which it empties into the others whenever a larger chunk is freed
beside the heap's end, as each call of oneDNN does. What it costs: memory is not
given back to the system while the process lives. ``FLOWSTONE_KEEP_PAGES=0`` leaves the allocator alone.
Measured in docs/design/010.
"""

from __future__ import annotations

import ctypes
import functools
import platform

from flowstone.framework import flags

# Of <malloc.h>.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _LARGEST_FAST = -1, -2, -4, 1
_LARGEST = 2**31 - 1  # bytes, an int of C
_PAD = 1 << 26  # bytes by which the heap grows beyond what is asked for


@functools.cache
def keep_pages() -> bool:
    """Sets the allocator so, once; whether it could."""
    if not flags.KEEP_PAGES or platform.libc_ver()[0] != "glibc":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _LARGEST), (_TOP_PAD, _PAD), (_LARGEST_FAST, 0))
    return all([mallopt(setting, value) == 1 for setting, value in settings])
