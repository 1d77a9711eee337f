"""`tensorflow.python.training.supervisor`: the threads of a supervisor."""

from __future__ import annotations

from typing import Any

from flowstone.training.sessions.supervisor_services import CheckpointThread, StepCounterThread, SummaryThread

__all__ = ["SVStepCounterThread", "SVSummaryThread", "SVTimerCheckpointThread"]


class SVSummaryThread(SummaryThread):
    """A thread that computes and writes a supervisor's summaries every `save_summaries_secs`."""

    def __init__(self, sv: Any, sess: Any) -> None:
        super().__init__(sv, sess, sv.save_summaries_secs)


class SVStepCounterThread(StepCounterThread):
    """A thread that writes the steps a second every `save_summaries_secs`."""

    def __init__(self, sv: Any, sess: Any, step_counter: Any = None) -> None:
        super().__init__(sv, sess, sv.save_summaries_secs)


class SVTimerCheckpointThread(CheckpointThread):
    """A thread that saves a checkpoint every `save_model_secs`."""

    def __init__(self, sv: Any, sess: Any) -> None:
        super().__init__(sv, sess, sv.save_model_secs)
