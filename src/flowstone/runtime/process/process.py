"""Settings that Flowstone makes for the whole process, so that steps are fast.

=================  ==================================================  ====================================
when               what                                                left alone
=================  ==================================================  ====================================
it is imported     OpenMP's idle threads sleep sooner                  if torch is there already, or the
                   (`framework/flags.py`)                              environment says how they wait
it is imported     the garbage collector no longer walks what is       if the program has many objects, or
                   there then, and looks for garbage after 10,000      has frozen some; the number also if
                   new objects (`framework/process/collector.py`)      the program has set it
the first session  freed memory stays with the process                 if the environment sets the
                   (`runtime/process/pages.py`)                                allocator
5 s after a plan   the heap gets pages of 2 MB where the system        the same
                   gives them on request (the same file)
steps with a team  its other threads keep off the step's core          for teams of more than eight
                   (`runtime/process/team_cores.py`); where
                   others want the cores, machine code runs
                   on the step's thread (`team_load.py`)
=================  ==================================================  ====================================

``FLOWSTONE_TUNE_PROCESS=0`` switches all of it off; a program can choose with `tune_process`. OpenMP reads
how long its threads spin when torch is loaded; this cannot be changed later.
"""

from __future__ import annotations

from flowstone.framework import flags
from flowstone.framework.process import collector
from flowstone.runtime.process.pages import ask_for_large_pages, give_pages_back, keep_pages

_is_tuned = flags.TUNE_PROCESS


def tune_process(enabled: bool) -> bool:
    """Whether sessions may change settings of the whole process; by default they do.

    False undoes earlier changes: memory that steps free goes back to the system, objects that existed when
    flowstone was imported are garbage-collected again, and garbage is looked for as often as before. True
    keeps freed memory from now on, also with ``FLOWSTONE_TUNE_PROCESS=0``, but not where the environment sets
    the allocator itself. How long OpenMP's idle threads spin is decided when torch is loaded: by
    ``FLOWSTONE_TUNE_PROCESS=0``, OpenMP's own variables or an `import torch` before flowstone.

    Returns whether freed memory stays with the process now.
    """
    global _is_tuned
    _is_tuned = bool(enabled)
    if _is_tuned:
        return keep_pages()
    give_pages_back()
    collector.undo()
    return False


def is_tuned() -> bool:
    """Whether steps and sessions may change settings of the process."""
    return _is_tuned


def tune_for_sessions() -> None:
    """Makes the settings of the first session, if that is allowed."""
    if _is_tuned:
        keep_pages()


def tune_for_plans() -> None:
    """Makes the settings of each plan, if that is allowed."""
    if _is_tuned:
        ask_for_large_pages()
