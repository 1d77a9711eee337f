"""CUDA graphs: a step's device work, recorded once and repeated by one call of the host.

A GPU is idle while it waits for the host to launch hundreds of small kernels. A `CapturedStep` takes the
place of a plan's function. It runs the step unchanged `WARM_UPS` times. Then it calls the same function once
more while a *recorder* records every kernel with its addresses instead of running it. From then on it only
copies the feeds to where the recorded kernels read them, replays the recording, and copies the results from
where they write them:

    warming up --3 equal steps--> captured --another shape, another buffer--> warming up
         |                           |
         +-- the capture fails ------+-- the session closes --> as it is, with a reason

A recording is valid as long as the host would do the same again. So

- `obstacle` finds, when a step is planned, what the host decides or does in it: kernels that declarations say
  cannot be captured (`capturable`), predicates of control flow, and copies between host and device, which
  wait;
- variables are read and written where they were recorded: a step with another buffer in a variable, other
  shapes of feeds or another precision is not the recorded one and warms up anew, at most `MOST_CAPTURES`
  times;
- a variable in host memory, or one that gets another buffer in the step, cannot be recorded;
- if the capture raises, state is left as it was, and this and all later steps run unrecorded.

Steps with a time limit or a trace are other compilations, which are not captured. Steps of several threads
run one after the other here, as they do on the device.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch

from flowstone.framework.declarations.containers import Variable
from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.declarations.operation import CONTROL_FLOW
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.framework.process import collector
from flowstone.runtime.code.generated_code import Segment
from flowstone.runtime.code.host_decisions import undecided
from flowstone.runtime.process.precision import tensor_float_32_execution_enabled

WARM_UPS = 3  # steps in which libraries choose their algorithms and allocate their memory
MOST_CAPTURES = 8  # a step that changes more often gains nothing
_PLANNED = CONTROL_FLOW | {"feed"}  # roles of nodes that have no kernels
_one_capture = threading.Lock()  # only one in the process at a time


class Recorder(Protocol):
    """What a device provides: records the work that is launched between `begin` and `end`, and repeats it."""

    def beside(self) -> contextlib.AbstractContextManager[None]:
        """Within the context, launches work where recorded work will run, after all work launched before."""

    def begin(self) -> None:
        """From here on work is recorded instead of done."""

    def end(self) -> None:
        """Ends the recording. Raises RuntimeError if part of the work could not be recorded."""

    def replay(self) -> None:
        """Repeats the work, at the same addresses."""

    def release(self) -> None:
        """Frees the recording and its memory."""


class CudaGraph:
    """The recorder of a CUDA device. `generators`: those that draw random numbers in the step; each replay
    advances them as the step does.
    """

    def __init__(self, device: torch.device, generators: Sequence[torch.Generator]) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._graph = torch.cuda.CUDAGraph()
        for generator in generators:
            self._graph.register_generator_state(generator)

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """Works on a stream of its own, between earlier and later work of the current one."""
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            yield
        current.wait_stream(self._stream)

    def begin(self) -> None:
        """Waits for the device, once, so that the memory of the steps so far is free for the recording."""
        torch.cuda.synchronize(self._device)
        torch.cuda.empty_cache()
        self._graph.capture_begin(capture_error_mode="thread_local")

    def end(self) -> None:
        """As `Recorder`."""
        self._graph.capture_end()

    def replay(self) -> None:
        """One launch, on the current stream."""
        self._graph.replay()

    def release(self) -> None:
        """As `Recorder`."""
        self._graph.reset()


def recorder_of(device: torch.device) -> Callable[..., Recorder] | None:
    """The function ``(device, generators)`` that makes recorders for this device; None if recording gains
    nothing."""
    return CudaGraph if device.type == "cuda" else None


def obstacle(subgraph: Subgraph, segment: Segment) -> str:
    """Why the step cannot be recorded, as far as its plan shows; "" if it can."""
    if segment.waits:
        return "a kernel may wait"
    asking = undecided(subgraph)
    if asking is not None:
        return f"{asking.name} ({asking.type}) decides in the step which nodes run"
    for node in subgraph.nodes:
        if node.declaration.role not in _PLANNED and not node.declaration.is_capturable:
            return f"the host takes part in {node.name} ({node.type})"
    if segment.moves:
        node = segment.moves[0]
        return f"{node.name} ({node.type}) takes a value from the host to the device or back"
    for x in (*subgraph.feeds, *subgraph.fetches):
        if x.dtype.torch is None:
            return f"{x.op.name} is no tensor of the device"
    return ""


class CapturedStep:
    """A step that records itself. It takes the place of `function`, which runs `segment`, perhaps wrapped.
    `reason`: why the step is not recorded, "" while it may be; `captures` and `replays`: how many there were.
    """

    def __init__(
        self,
        subgraph: Subgraph,
        segment: Segment,
        function: Callable[..., Any],
        environment: Environment,
        new_recorder: Callable[..., Recorder],
    ) -> None:
        self.reason, self.captures, self.replays = obstacle(subgraph, segment), 0, 0
        self._function, self._device = function, environment.device
        self._variables = [value for value in segment.globals.values() if type(value) is Variable]
        states = [environment.states.get(node.name) for node in subgraph.nodes]
        self._generators = [state for state in states if isinstance(state, torch.Generator)]
        self._new_recorder = new_recorder
        self._lock = threading.Lock()
        self._recorder: Recorder | None = None
        self._captured = False
        self._warm = 0
        self._shapes: list[torch.Size] = []
        self._rounds = False
        self._buffers: list[torch.Tensor | None] = []  # of the variables
        self._feeds: list[torch.Tensor] = []  # where the recording reads them
        self._results: list[torch.Tensor] = []  # where it writes them

    def run(self, step: Any, *feeds: Any) -> tuple[Any, ...]:
        """Runs one step and returns its fetches, as the function in whose place it is called would; their
        memory is not shared.
        """
        if not self.reason:
            with self._lock:
                if self._is_ready(step, feeds):
                    return self._replay(feeds)
                if self._recorder is not None:
                    with self._recorder.beside():
                        return self._function(step, *feeds)  # type: ignore[no-any-return]
        return self._function(step, *feeds)  # type: ignore[no-any-return]

    def describe(self) -> str:
        """A line for explanations."""
        if self.reason:
            return f"CUDA graph: none, since {self.reason}"
        if self._captured:
            return f"CUDA graph: captured ({self.captures} times so far), replayed {self.replays} times"
        return f"CUDA graph: to be captured after {WARM_UPS - self._warm} more equal steps"

    def release(self, reason: str = "the session is closed") -> None:
        """Drops the recording, and records no more."""
        with self._lock:
            self._forget()
            self.reason = reason

    # ---- one step, with the lock held

    def _is_ready(self, step: Any, feeds: Sequence[torch.Tensor]) -> bool:
        """Whether there is a recording of exactly this step; makes one when it has warmed up."""
        if self._is_another(feeds):
            self._forget()
            if self.captures == MOST_CAPTURES:
                self.reason = f"shapes or buffers have changed {MOST_CAPTURES} times"
                return False
            self._shapes, self._rounds = [x.shape for x in feeds], tensor_float_32_execution_enabled()
            self._buffers = self._present_buffers()
        if self._captured:
            return True
        if any([buffer is None for buffer in self._buffers]):
            return False  # the step will fail, or initialises variables
        if self._warm == WARM_UPS:
            self._capture(step, feeds)
            return self._captured
        if self._recorder is None:
            self._recorder = self._made_recorder()
        self._warm += 1
        return False

    def _is_another(self, feeds: Sequence[torch.Tensor]) -> bool:
        """Whether the step differs from the one before in something that a recording depends on."""
        if not self._warm or [x.shape for x in feeds] != self._shapes:
            return True
        if self._rounds != tensor_float_32_execution_enabled():
            return True
        return any(
            [getattr(v, "tensor", None) is not buffer for v, buffer in zip(self._variables, self._buffers)]
        )

    def _present_buffers(self) -> list[torch.Tensor | None]:
        return [getattr(variable, "tensor", None) for variable in self._variables]

    def _replay(self, feeds: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        assert self._recorder is not None
        for place, value in zip(self._feeds, feeds):
            place.copy_(value)
        self._recorder.replay()
        self.replays += 1
        return tuple([result.clone() for result in self._results])

    def _forget(self) -> None:
        if self._recorder is not None:
            self._recorder.release()
        self._recorder, self._captured, self._warm = None, False, 0
        self._feeds, self._results, self._shapes, self._buffers = [], [], [], []

    # ---- the capture

    def _made_recorder(self) -> Recorder | None:
        try:
            return self._new_recorder(self._device, self._generators)
        except (RuntimeError, AttributeError) as error:
            self.reason = f"the device does not record it: {_first_line(error)}"
            return None

    def _capture(self, step: Any, feeds: Sequence[torch.Tensor]) -> None:
        """Records the step, without running it; `reason` says why if that cannot be done."""
        failure = self._host_variable()
        if not failure:
            try:
                self._feeds = [torch.empty_like(x).copy_(x) for x in feeds]
                self._results = self._recorded(step)
            except Exception as error:
                failure = f"the capture failed: {_first_line(error)}"
            failure = self._restored() or failure
        if failure:
            self._forget()
            self.reason = failure
            return
        self._captured = True
        self.captures += 1

    def _host_variable(self) -> str:
        """Says which variable is not in the device's memory, where recorded work reads it; "" if all are."""
        for variable, buffer in zip(self._variables, self._buffers):
            if not isinstance(buffer, torch.Tensor) or buffer.device != self._device:
                return f"variable {variable.name} is not in the device's memory"
        return ""

    def _restored(self) -> str:
        """Gives variables the buffers that they had before the capture, which computed no new contents; says
        which variable had got another one."""
        found = ""
        for variable, before in zip(self._variables, self._buffers):
            if getattr(variable, "tensor", None) is not before:
                setattr(variable, "tensor", before)  # noqa: B010
                found = f"variable {variable.name} gets another buffer in the step"
        return found

    def _recorded(self, step: Any) -> list[torch.Tensor]:
        recorder = self._recorder
        assert recorder is not None
        with _one_capture, collector.paused(), recorder.beside():
            recorder.begin()
            try:
                results = self._function(step, *self._feeds)
            except BaseException:
                with contextlib.suppress(RuntimeError):
                    recorder.end()
                raise
            recorder.end()
        return list(results)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
