"""`tf.GradientTape`: gradients along the operations that were added while the tape was open.

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    dy_dx = tape.gradient(y, x)     # adds the nodes that `tf.gradients` would

In a graph the tape differs from `tf.gradients` in what counts: operations that depend on what was watched
before them, and that were added by this thread while the tape recorded (`framework/tensors/recording.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.process import logging
from flowstone.framework.tensors import nest, scope
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.recording import Recording
from flowstone.framework.tensors.tensor import Tensor
from flowstone.gradients import jacobians
from flowstone.gradients.gradient_computation import UnconnectedGradients, gradients_within, is_trainable
from flowstone.ops.variables.variables import Variable

__all__ = ["GradientTape"]

_NONE = UnconnectedGradients.NONE


class GradientTape:
    """Records operations for gradients; see the module.

    Args:
        persistent: whether `gradient` and the Jacobians may be asked for more than once.
        watch_accessed_variables: whether a trainable variable is watched when it is read.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent, self._watch_accessed_variables = persistent, watch_accessed_variables
        self._tape: Recording | None = None
        self._recording = False
        self._watched_variables: tuple[Any, ...] = ()

    # ---- recording

    def __enter__(self) -> GradientTape:
        self._push_tape()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._recording:
            self._pop_tape()

    def _push_tape(self) -> None:
        if self._recording:
            raise ValueError("Tape is already recording.")
        if self._tape is None:
            self._tape = Recording(self._watch_accessed_variables)
        scope.recordings.items.append(self._tape)
        self._recording = True

    def _pop_tape(self) -> None:
        if not self._recording:
            raise ValueError("Tape is not recording.")
        scope.recordings.items.remove(self._tape)
        self._recording = False

    def watch(self, tensor: Any) -> None:
        """Makes what is computed from now on depend on `tensor`: a tensor or variable, or a structure of
        them.

        ValueError for anything else, and before the tape has recorded.
        """
        tape = self._tape
        if tape is None:
            raise ValueError("Tape is not recording.")
        for x in nest.flatten(tensor):
            _check(x)
            _warn_of_type(x, "watched tensor")
            if isinstance(x, Variable):
                tape.watch_variable(x)
            else:
                tape.watch(x)

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Within the context nothing is recorded. ValueError if the tape does not record."""
        self._pop_tape()
        try:
            yield
        finally:
            self._push_tape()

    def reset(self) -> None:
        """Forgets what was recorded and watched. ValueError if the tape does not record."""
        self._pop_tape()
        self._tape = None
        self._watched_variables = ()
        self._push_tape()

    def watched_variables(self) -> tuple[Any, ...]:
        """The variables that are watched, in the order in which they were read."""
        return self._watched_variables if self._tape is None else self._tape.variables

    # ---- derivatives

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: str = _NONE,
    ) -> Any:
        """The gradients of the sum of `target` with respect to `sources`, in their structure.

        Args:
            target: a tensor or variable, or a structure of them.
            sources: as `target`.
            output_gradients: a gradient (or None: ones) for each tensor of `target`, in its structure.
            unconnected_gradients: what stands for a source that no recorded path leads to.

        Raises RuntimeError for a second call of a tape that is not persistent, ValueError for what is no
        tensor, and what `tf.gradients` raises.
        """
        tape = self._used()
        ys = [self._target(tape, y) for y in nest.flatten(target)]
        xs = nest.flatten(sources)
        for x in xs:
            _check(x)
            _warn_of_type(x, "source tensor")
        flows = None if output_gradients is None else nest.flatten(output_gradients)
        found = self._gradients(tape, ys, xs, flows, unconnected_gradients)
        return nest.pack_sequence_as(sources, found)

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: str = _NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivatives of all elements of `target` by each of `sources`: of both shapes, one after the
        other.

        It is a loop over the elements, with `experimental_use_pfor` and without. See `gradient` for the
        rest.
        """
        tape = self._used()
        target, flat = self._target(tape, target), nest.flatten(sources)
        for x in flat:
            _check(x)
        with self._recorded(tape):
            found = jacobians.jacobian(
                target,
                flat,
                lambda y: self._gradients(tape, [y], flat, None, unconnected_gradients),
                parallel_iterations,
            )
        return nest.pack_sequence_as(sources, found)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: str = _NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Tensor:
        """The derivatives of all elements of ``target[i]`` by ``source[i]``, for each i.

        Zeros if no recorded path leads to `source`. ValueError if one of them has fewer than two axes or
        their first sizes differ. See `jacobian`.
        """
        shape, source_shape = target.shape.with_rank_at_least(2), source.shape.with_rank_at_least(2)
        if not shape[0].is_compatible_with(source_shape[0]):
            raise ValueError(
                f"Need first dimension of target shape ({shape}) and source shape ({source_shape}) to match."
            )
        tape = self._used()
        target = self._target(tape, target)
        with self._recorded(tape):
            found = jacobians.batch_jacobian(
                target,
                source,
                lambda y: self._gradients(tape, [y], [source], None, unconnected_gradients),
                parallel_iterations,
            )
        return jacobians.no_batch_jacobian(target, source) if found is None else found

    def _used(self) -> Recording:
        """What was recorded. A tape that is not persistent ends."""
        tape = self._tape
        if tape is None:
            raise RuntimeError("GradientTape.gradient can only be called once on non-persistent tapes.")
        if not self._persistent:
            if self._recording:
                self._pop_tape()
            self._watched_variables, self._tape = tape.variables, None
        return tape

    @contextlib.contextmanager
    def _recorded(self, tape: Recording) -> Iterator[None]:
        """Within the context what is made of the target on the way is recorded, too."""
        if self._recording:
            yield
        else:
            with scope.recordings.entered(tape):
                yield

    def _target(self, tape: Recording, y: Any) -> Any:
        _check(y)
        _warn_of_type(y, "target tensor")
        if not isinstance(y, Variable):
            return y
        with self._recorded(tape):
            return y.value()

    @staticmethod
    def _gradients(tape: Recording, ys: Any, xs: Any, flows: Any, unconnected: str) -> list[Any]:
        if flows is None:
            flows = [F.OnesLike(y) if y.dtype.base_dtype.is_complex else None for y in ys]
        return gradients_within(tape, ys, xs, flows, "gradients_of_tape", unconnected_gradients=unconnected)


def _check(x: Any) -> None:
    if not isinstance(x, (Tensor, Variable, IndexedSlices)):
        raise ValueError(f"Passed in object of type {type(x)}, not tf.Tensor")


def _warn_of_type(x: Any, role: str) -> None:
    if not is_trainable(x):
        logging.warn(
            f"The dtype of the {role} must be floating (e.g. tf.float32), got {x.dtype.base_dtype!r}"
        )
