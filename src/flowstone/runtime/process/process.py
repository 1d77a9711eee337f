"""Settings that Flowstone makes for the whole process, so that steps are fast.

=================  ==================================================  ====================================
when               what                                                left alone
=================  ==================================================  ====================================
it is imported     OpenMP's idle threads sleep sooner                  if torch is there already, or the
                   (`framework/flags.py`)                              environment says how they wait
it is imported     the garbage collector no longer walks what is       if the program has many objects, or
                   there then (`framework/collector.py`)               has frozen some
the first session  freed memory stays with the process                 if the environment sets the
                   (`runtime/process/pages.py`)                                allocator
steps with a team  its other threads keep off the step's core          for teams of more than eight
                   (`runtime/process/team_cores.py`); where
                   others want the cores, machine code runs
                   on the step's thread (`team_load.py`)
=================  ==================================================  ====================================

``FLOWSTONE_TUNE_PROCESS=0`` switches all of it off; a program can choose with `tune_process`. OpenMP reads
how long its threads spin when torch is loaded; this cannot be changed later.
"""

from __future__ import annotations

from flowstone.framework import collector, flags
from flowstone.runtime.process.pages import give_pages_back, keep_pages

_is_tuned = flags.TUNE_PROCESS


def tune_process(enabled: bool) -> bool:
    """Whether sessions may change settings of the whole process; by default they do.

    False undoes earlier changes: memory that steps free goes back to the system, and objects that existed
    when flowstone was imported are garbage-collected again. True keeps freed memory from now on, also with
    ``FLOWSTONE_TUNE_PROCESS=0``, but not where the environment sets the allocator itself. How long OpenMP's
    idle threads spin is decided when torch is loaded: by ``FLOWSTONE_TUNE_PROCESS=0``, OpenMP's own variables
    or an `import torch` before flowstone.

    Returns whether freed memory stays with the process now.
    """
    global _is_tuned
    _is_tuned = bool(enabled)
    if _is_tuned:
        return keep_pages()
    give_pages_back()
    collector.unfreeze()
    return False


def is_tuned() -> bool:
    """Whether steps and sessions may change settings of the process."""
    return _is_tuned


def tune_for_sessions() -> None:
    """Makes the settings of the first session, if that is allowed."""
    if _is_tuned:
        keep_pages()
