"""Kernels: how an operation's declaration says what a step shall call.

A kernel factory `kernel(node, env)` (`KernelFactory`) runs once per plan. It reads attributes, static shapes
and constant inputs, solves geometry, and returns a `Kernel`, one of

===================  =====================================================================================
returned             what the generated code of a step does
===================  =====================================================================================
a callable ``f``     ``f(*inputs)``
`Call`               calls a function with a chosen arrangement of inputs and constants, often ATen's own
`Value`              nothing: the output is this object in every step (constants, variables)
`StepCall`           ``f(step, *inputs)``: the kernel wants the step (its deadline, its cancellation)
`AsyncCall`          ``f(step, done, *inputs)``: starts the kernel, which later calls `done` (asynchronous
                     ops only, see the class)
===================  =====================================================================================

Values that flow along edges: torch tensors; for strings NumPy object arrays of `bytes`; for references and
resources the object itself (`flowstone.framework.declarations.containers.Variable` …). An operation with
several outputs returns a tuple or list of them. A kernel never keeps or overwrites an input unless its
declaration says so (``mutates``), and says in its declaration which inputs its outputs may share memory with
(``aliases``).

>>> import torch
>>> Call(torch.sum, X0, [1], keepdim=True)
sum(X0, [1], keepdim=True)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from flowstone.framework import errors
from flowstone.framework.machine import machine

if TYPE_CHECKING:
    from flowstone.framework.declarations.containers import ResourceStore
    from flowstone.framework.graphs.function_library import FunctionBody
    from flowstone.framework.machine.machine import Machine
    from flowstone.framework.tensors.node import Node

CPU = "CPU"
GPU = "GPU"


class Input:
    """Stands for the node's input of this index in the arguments of a `Call`."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __repr__(self) -> str:
        return f"X{self.index}"


X0, X1, X2, X3, X4, X5, X6, X7 = (Input(i) for i in range(8))


class Call:
    """A call of `function` with `Input`s, constants, other calls, lists of these and keywords as arguments.

    `overwrites` maps the index of an input to a `Call` that leaves the result in that input's buffer. The
    plan takes it where the input is nobody else's any more and has the output's type and shape.
    """

    __slots__ = ("arguments", "function", "keywords", "overwrites")

    def __init__(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
        self.function, self.arguments, self.keywords = function, arguments, keywords
        self.overwrites: dict[int, Call] = {}

    def or_in_place(self, index: int, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Call:
        """Adds the variant that overwrites input `index`; returns self."""
        self.overwrites[index] = Call(function, *arguments, **keywords)
        return self

    def __repr__(self) -> str:
        words = [repr(argument) for argument in self.arguments]
        words += [f"{key}={value!r}" for key, value in self.keywords.items()]
        return f"{getattr(self.function, '__name__', self.function)}({', '.join(words)})"

    def __call__(self, *inputs: Any) -> Any:
        """Runs the call on actual inputs (constant folding and node-by-node execution; steps have it
        generated).
        """
        arguments = [_evaluate(value, inputs) for value in self.arguments]
        keywords = {key: _evaluate(value, inputs) for key, value in self.keywords.items()}
        return self.function(*arguments, **keywords)


def _evaluate(argument: Any, inputs: tuple[Any, ...]) -> Any:
    if type(argument) is Input:
        return inputs[argument.index]
    if type(argument) is list:
        return [_evaluate(item, inputs) for item in argument]
    return argument(*inputs) if type(argument) is Call else argument


class Value:
    """An output that is the same object in every step."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class StepCall:
    """A kernel that is called with the step before its inputs. `keeps`: it keeps something with the step, of
    which each execution needs its own then."""

    __slots__ = ("function", "keeps")

    def __init__(self, function: Callable[..., Any], keeps: bool = False) -> None:
        self.function, self.keeps = function, keeps


class AsyncCall:
    """A kernel that need not be finished when it returns (white paper 5.3), and holds no thread meanwhile.

    `function(step, done, *inputs)` starts it. Later, or at once, and from any thread, the kernel calls
    ``done(outputs, error)`` exactly once: the tuple of outputs and None, or None and an exception. A kernel
    that waits registers ``remove = step.on_cancel(callback)``; if the step ends early it calls `callback()`,
    and the kernel then gives up what it waits for and calls `done` with a CancelledError. The kernel calls
    ``remove()`` when it is done. Only declarations with the trait ``asynchronous`` return one.

    `at_once(*inputs)`, if given, does it if it need not wait, and returns the tuple of outputs, or True if
    there are none; a false value if it would wait, having changed nothing.
    """

    __slots__ = ("at_once", "function")

    def __init__(self, function: Callable[..., Any], at_once: Callable[..., Any] | None = None) -> None:
        self.function, self.at_once = function, at_once


Kernel: TypeAlias = "Callable[..., Any] | Value | StepCall | AsyncCall"
KernelFactory: TypeAlias = "Callable[[Node, Environment], Kernel]"
FunctionCall: TypeAlias = "Callable[..., Sequence[Any]]"  # of the step and the arguments; the results


class Environment:
    """What a kernel factory may know of the place its kernel will run at.

    `device_type` (CPU, GPU or a registered type), `device` (torch's), `resources` (the session's or target's
    named state; None while folding constants), `states` (objects that kernels of one session share between
    plans, such as random generators, by node name; the session's end calls their `release`, if they have
    one), `memory` (of a device of a registered type, what its `open` returned; else None) and `machine` (what
    the choice of a kernel asks, `machine.py`). Doors lead back into the runtime, which fills them:
    `function` compiles a function of the graph's library, `compile_nodes(nodes, inputs, outputs,
    lowered)` some nodes of the plan as a function of the step and their inputs, `blocking` makes a kernel
    that waits for files, and `new_step()` gives work beside the steps one of its own, to be cancelled when
    its owner ends. `name` is the device's full name, and `collectives` where collective operations meet
    (`runtime/steps/collectives.py`).
    """

    __slots__ = (
        "collectives", "compile_function", "compile_nodes", "device", "device_type", "memory", "name",
        "new_step", "resources", "run_blocking", "states",
    )  # fmt: skip

    def __init__(
        self,
        device_type: str = CPU,
        device: torch.device | None = None,
        resources: ResourceStore | None = None,
        states: dict[str, Any] | None = None,
        memory: Any = None,
        name: str = "",
    ) -> None:
        self.device_type, self.name = device_type, name
        self.device = torch.device("cpu") if device is None else device
        self.resources = resources
        self.states = {} if states is None else states
        self.memory = memory
        self.compile_function: Any = None
        self.compile_nodes: Any = None
        self.run_blocking: Any = None
        self.new_step: Any = None
        self.collectives: Any = None

    def open_doors(
        self,
        compile_function: Callable[[FunctionBody], FunctionCall],
        compile_nodes: Callable[..., FunctionCall],
        run_blocking: Callable[[Callable[[], None]], None],
        new_step: Callable[[], Any],
        collectives: Any,
    ) -> None:
        """Sets the doors into the runtime."""
        self.compile_function, self.run_blocking, self.new_step = compile_function, run_blocking, new_step
        self.collectives = collectives
        self.compile_nodes = functools.partial(compile_nodes, self)

    @property
    def machine(self) -> Machine:
        """The machine whose kernels are chosen."""
        return machine.current()

    def state(self, node: Node, make: Callable[[], Any]) -> Any:
        """The object that the kernels of this node share across plans of one session; made on first use."""
        found = self.states.get(node.name)
        if found is None:
            found = self.states.setdefault(node.name, make())
        return found

    def function(self, node: Node, name: str) -> FunctionCall:
        """The function `name` of the library of the node's graph: ``call(step, *arguments)`` computes its
        results on the CPU, for any number of threads at once, which are in torch's inference mode.

        Each call of `function` compiles it, with state of its own (random generators). NotFoundError for a
        function that is not there, InvalidArgumentError for one that cannot be planned.
        """
        body = node.origin.graph._functions.body(name)  # type: ignore[attr-defined]
        return self.compile_function(body)  # type: ignore[no-any-return]

    def blocking(self, function: Callable[..., tuple[Any, ...]]) -> AsyncCall:
        """The kernel of an asynchronous op that waits for files: ``function(*inputs)``, which returns the
        tuple of outputs, runs in a thread of its own kind, so that no thread of a step waits.
        """
        run = self.run_blocking

        def start(step: Any, done: Callable[..., None], *inputs: Any) -> None:
            report = _Once(done)

            def work() -> None:
                try:
                    outputs = function(*inputs)
                except Exception as error:
                    report(None, error)
                else:
                    report(outputs, None)
                remove()

            remove = step.on_cancel(report.cancel)
            run(work)

        return AsyncCall(start)


class _Once:
    """Calls `done` the first time alone: with what a kernel reports, or because its step ends before."""

    def __init__(self, done: Callable[..., None]) -> None:
        self._done: list[Callable[..., None]] = [done]

    def __call__(self, outputs: Any, error: BaseException | None) -> None:
        try:
            done = self._done.pop()  # one operation, so that two threads cannot both have it
        except IndexError:
            return
        done(outputs, error)

    def cancel(self) -> None:
        """Gives up waiting; what the kernel has begun, it ends unobserved."""
        self(None, errors.CancelledError(None, None, "The step ended while it waited for a file."))


FOLDING = Environment()
