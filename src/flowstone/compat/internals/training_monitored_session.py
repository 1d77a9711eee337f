"""`tensorflow.python.training.monitored_session`: the layers of a monitored session."""

from __future__ import annotations

from flowstone.training.sessions.layered_sessions import CoordinatedSession, HookedSession, RecoverableSession

__all__ = ["_CoordinatedSession", "_HookedSession", "_RecoverableSession"]

_CoordinatedSession = CoordinatedSession
_HookedSession = HookedSession
_RecoverableSession = RecoverableSession
