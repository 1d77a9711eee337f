"""The requests by which servers explain steps: messages of our own, in JSON.

======================================  ==================================================================
request                                 answer
======================================  ==================================================================
``/flowstone.Explanations/Step``        `ClusterPlan` of a kind of step, of the session's master
``/flowstone.Explanations/Placement``   its placement as a table, and perhaps a picture
``/flowstone.Explanations/Part``        `WorkerPlan` of a registered part, of its worker
======================================  ==================================================================

TensorFlow's servers answer that they do not know the method (UnimplementedError).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from flowstone.distributed.cluster_plans import ClusterPlan
from flowstone.distributed.links.neighbours import EXPLAIN_PART
from flowstone.distributed.masters.master import Master, MasterSession
from flowstone.distributed.servers.services import in_thread
from flowstone.distributed.wire.transport import Caller
from flowstone.distributed.workers.worker import Worker
from flowstone.framework import errors

__all__ = ["ExplainService", "ask_placement", "ask_step", "explains"]

EXPLAIN_STEP = "/flowstone.Explanations/Step"
EXPLAIN_PLACEMENT = "/flowstone.Explanations/Placement"
_FORMATS = ("", "png", "svg", "pdf")
_NAMES = ("feeds", "fetches", "targets")
Names = Sequence[str]


class ExplainService:
    """Answers them, for one server."""

    def __init__(self, master: Master, worker: Worker) -> None:
        self._master, self._worker = master, worker

    def handlers(self) -> dict[str, Callable[[bytes], Awaitable[bytes]]]:
        """The coroutines by the methods' full names."""
        return {EXPLAIN_STEP: self._step, EXPLAIN_PLACEMENT: self._placement, EXPLAIN_PART: self._part}

    async def _step(self, request: bytes) -> bytes:
        session, names = self._session(_read(request, "session_handle", *_NAMES))
        plan: ClusterPlan = await in_thread(session.explain, *names)
        return plan.to_bytes()

    async def _placement(self, request: bytes) -> bytes:
        told = _read(request, "session_handle", "picture", *_NAMES)
        if told["picture"] not in _FORMATS:
            message = f"There are no pictures of format {told['picture']!r}"
            raise errors.InvalidArgumentError(None, None, message)
        session, names = self._session(told)
        try:
            table, picture = await in_thread(session.explain_placement, *names, told["picture"])
        except ImportError as error:
            raise errors.UnimplementedError(None, None, f"The server cannot draw: {error}") from None
        return json.dumps({"table": table, "picture": base64.b64encode(picture).decode()}).encode()

    async def _part(self, request: bytes) -> bytes:
        told = _read(request, "session_handle", "graph_handle")
        return json.dumps(self._worker.explain(told["session_handle"], told["graph_handle"])).encode()

    def _session(self, told: dict[str, Any]) -> tuple[MasterSession, list[Any]]:
        return self._master.session(told["session_handle"]), [told[name] for name in _NAMES]


def _read(request: bytes, *fields: str) -> dict[str, Any]:
    """The fields of a request: texts, and lists of names. InvalidArgumentError for anything else."""
    try:
        told = json.loads(request)
        found = {field: told[field] for field in fields}
        for field, value in found.items():
            if field in _NAMES:
                if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
                    raise TypeError(f"{field} is no list of names")
            elif not isinstance(value, str):
                raise TypeError(f"{field} is no text")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise errors.InvalidArgumentError(
            None, None, f"The request for an explanation is malformed: {error!r}"
        ) from None
    return found


def explains(caller: Caller) -> bool:
    """Whether the server is one that explains, not TensorFlow's."""
    try:
        caller.call(EXPLAIN_STEP, b"")
    except errors.UnimplementedError:
        return False
    except errors.OpError:
        pass
    return True


def ask_step(caller: Caller, handle: str, feeds: Names, fetches: Names, targets: Names) -> ClusterPlan:
    """Asks the master of a session. UnimplementedError from a server of TensorFlow."""
    return ClusterPlan.from_bytes(caller.call(EXPLAIN_STEP, _request(handle, feeds, fetches, targets)))


def ask_placement(
    caller: Caller, handle: str, feeds: Names, fetches: Names, targets: Names, picture: str
) -> tuple[str, bytes]:
    """Asks the master of a session for a placement as a table and a picture."""
    answer = caller.call(EXPLAIN_PLACEMENT, _request(handle, feeds, fetches, targets, picture=picture))
    told = json.loads(answer)
    return str(told["table"]), base64.b64decode(told["picture"])


def _request(handle: str, feeds: Names, fetches: Names, targets: Names, **more: str) -> bytes:
    told = {"session_handle": handle, "feeds": [*feeds], "fetches": [*fetches], "targets": [*targets], **more}
    return json.dumps(told).encode()
