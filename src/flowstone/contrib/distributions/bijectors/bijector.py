"""The base class of contrib's bijectors, whose determinants are summed over the event that a call names.

The rank of an event is said with each call, ``forward_log_det_jacobian(x, event_ndims=1)``, and a bijector
has the least rank that it works on. Programs of TensorFlow 1.4 say the rank once, ``event_ndims`` of the
constructor: it then holds for calls that name none. A subclass that names no least rank, but ``event_ndims``,
sums over the event itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import flowstone as tf
from flowstone.distributions.bijectors.bijector import Bijector as CoreBijector
from flowstone.framework.tensors.node import static_value

__all__ = ["Bijector"]


@dataclass
class _Pair:
    """One x with its y under a condition; the logarithm of |dx/dy| there if it is known."""

    x: Any
    y: Any
    condition: dict[str, Any] = field(default_factory=dict)
    inverse_log_det_jacobian: Any = None

    def is_under(self, condition: dict[str, Any]) -> bool:
        same = self.condition.keys() == condition.keys()
        return same and all(condition[key] is value for key, value in self.condition.items())


class Bijector(CoreBijector):
    """A function `forward` with an `inverse`, of events of at least a least rank.

    Subclasses define `_forward`, `_inverse` and one of `_forward_log_det_jacobian` and
    `_inverse_log_det_jacobian`, which sum over events of the least rank. One that maps several x to a y
    sets ``_is_injective = False`` and gives tuples as inverses.

    Args:
        graph_parents: tensors that the bijector was made of. ValueError for another thing.
        is_constant_jacobian: whether the determinant depends on no x.
        validate_args: whether steps check values.
        dtype: of x and y; None for any. TypeError for tensors of other types.
        forward_min_event_ndims: the least rank of an x; that of a y by default.
        inverse_min_event_ndims: the least rank of a y; that of an x by default.
        name: the scope of its operations, the class's name by default.
        event_ndims: the rank of an event for calls that name none. TensorFlow 1.4 has it first; a number
            in the place of `graph_parents` is taken for it.
    """

    _is_injective = True

    def __init__(
        self,
        graph_parents: Any = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        dtype: Any = None,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str | None = None,
        event_ndims: Any = None,
    ) -> None:
        if isinstance(graph_parents, int):
            graph_parents, event_ndims = None, graph_parents
        if type(validate_args) is int:  # TensorFlow 1.4's subclasses have the rank in this place
            validate_args, event_ndims = False, validate_args
        super().__init__(
            event_ndims=event_ndims,
            graph_parents=graph_parents,
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            dtype=dtype,
            name=name,
        )
        for ndims in (forward_min_event_ndims, inverse_min_event_ndims):
            if ndims is not None and (not isinstance(ndims, int) or ndims < 0):
                raise ValueError(f"The least rank of an event is a number of at least 0, not {ndims!r}.")
        given = [each for each in (forward_min_event_ndims, inverse_min_event_ndims) if each is not None]
        own = self._stated_event_ndims()
        default = given[0] if given else own if isinstance(own, int) else None
        self._forward_min_event_ndims: Any = (
            default if forward_min_event_ndims is None else forward_min_event_ndims
        )
        self._inverse_min_event_ndims: Any = (
            default if inverse_min_event_ndims is None else inverse_min_event_ndims
        )
        self._pairs: list[_Pair] = []
        self._constant_sums: dict[int, Any] = {}

    @property
    def forward_min_event_ndims(self) -> Any:
        """The least rank of the events of x."""
        return self._forward_min_event_ndims

    @property
    def inverse_min_event_ndims(self) -> Any:
        """The least rank of the events of y."""
        return self._inverse_min_event_ndims

    def forward(self, x: Any, name: str = "forward") -> Any:
        """y = f(x)."""
        return self._call_forward(x, name)

    def inverse(self, y: Any, name: str = "inverse") -> Any:
        """The x with f(x) = y; a tuple of several if there are several."""
        return self._call_inverse(y, name)

    def forward_log_det_jacobian(  # type: ignore[override]
        self, x: Any, event_ndims: Any = None, name: str = "forward_log_det_jacobian"
    ) -> Any:
        """log |det dy/dx| at x, summed over events of x of the rank `event_ndims`.

        ValueError if the rank is less than the least one.
        """
        return self._call_forward_log_det_jacobian(x, event_ndims, name)

    def inverse_log_det_jacobian(  # type: ignore[override]
        self, y: Any, event_ndims: Any = None, name: str = "inverse_log_det_jacobian"
    ) -> Any:
        """log |det dx/dy| at y, summed over events of y of the rank `event_ndims`; a tuple for several x.

        ValueError if the rank is less than the least one.
        """
        return self._call_inverse_log_det_jacobian(y, event_ndims, name)

    # ---- the same with conditions

    def _call_forward(self, x: Any, name: str, **condition: Any) -> Any:
        with self._scope(name):
            x = self._tensor(x, "x")
            return (
                self._pair_from(x, condition).y if self._is_injective else self._own("_forward", x, condition)
            )

    def _call_inverse(self, y: Any, name: str, **condition: Any) -> Any:
        with self._scope(name):
            y = self._tensor(y, "y")
            return (
                self._pair_to(y, condition).x if self._is_injective else self._own("_inverse", y, condition)
            )

    def _call_forward_log_det_jacobian(self, x: Any, event_ndims: Any, name: str, **condition: Any) -> Any:
        if isinstance(event_ndims, str):
            event_ndims, name = None, event_ndims
        with self._scope(name):
            x = self._tensor(x, "x")
            if not self._is_injective:
                raise NotImplementedError("A function that maps several x to a y has no determinant at x.")
            known = None if condition else self._constant_sum(x, event_ndims)
            if known is not None:
                return -known
            ndims = self._checked_event_ndims(event_ndims, self.forward_min_event_ndims)
            jacobian, sample = self._unreduced_forward(x, condition)
            return -self._summed(jacobian, sample, self.forward_min_event_ndims, ndims, condition)

    def _call_inverse_log_det_jacobian(self, y: Any, event_ndims: Any, name: str, **condition: Any) -> Any:
        if isinstance(event_ndims, str):
            event_ndims, name = None, event_ndims
        with self._scope(name):
            y = self._tensor(y, "y")
            least = self.inverse_min_event_ndims
            known = None if condition else self._constant_sum(y, event_ndims)
            if known is not None:
                return known
            ndims = self._checked_event_ndims(event_ndims, least)
            if not self._is_injective:
                parts = self._own("_inverse_log_det_jacobian", y, condition)
                return tuple(self._reduced(part, y, least, ndims) for part in parts)
            jacobian, sample = self._unreduced_inverse(y, condition)
            return self._summed(jacobian, sample, least, ndims, condition)

    def _constant_sum(self, value: Any, event_ndims: Any) -> Any:
        """The determinant's logarithm over events of a rank, if it is the same everywhere and known."""
        known = self._constant_sums.get(event_ndims) if isinstance(event_ndims, int) else None
        return known if known is not None and known.graph is value.graph else None

    def _summed(self, jacobian: Any, sample: Any, least: Any, event_ndims: Any, condition: Any) -> Any:
        result = self._reduced(jacobian, sample, least, event_ndims)
        if self.is_constant_jacobian and not condition and isinstance(event_ndims, int):
            self._constant_sums[event_ndims] = result
        return result

    def _unreduced_forward(self, x: Any, condition: dict[str, Any]) -> tuple[Any, Any]:
        """The logarithm of |dx/dy| before sums over events, and x or its y, whichever it is for."""
        constant = None if condition else self._constant_in(x)
        if constant is not None:
            return constant, x
        pair = self._known(condition, x=x)
        if pair is not None and pair.inverse_log_det_jacobian is not None:
            return pair.inverse_log_det_jacobian, x
        sample = x
        try:
            result = -self._own("_forward_log_det_jacobian", x, condition)
        except NotImplementedError:
            pair = self._pair_from(x, condition)
            sample, result = pair.y, self._own("_inverse_log_det_jacobian", pair.y, condition)
        return self._kept(pair, condition, result), sample

    def _unreduced_inverse(self, y: Any, condition: dict[str, Any]) -> tuple[Any, Any]:
        """As `_unreduced_forward`, at y."""
        constant = None if condition else self._constant_in(y)
        if constant is not None:
            return constant, y
        pair = self._known(condition, y=y)
        if pair is not None and pair.inverse_log_det_jacobian is not None:
            return pair.inverse_log_det_jacobian, y
        sample = y
        try:
            result = self._own("_inverse_log_det_jacobian", y, condition)
        except NotImplementedError:
            pair = self._pair_to(y, condition)
            sample, result = pair.x, -self._own("_forward_log_det_jacobian", pair.x, condition)
        return self._kept(pair, condition, result), sample

    def _kept(self, pair: _Pair | None, condition: dict[str, Any], result: Any) -> Any:
        if self.is_constant_jacobian and not condition:
            self._constant_jacobian = result
        if pair is not None:
            pair.inverse_log_det_jacobian = result
        return result

    def _known(self, condition: dict[str, Any], x: Any = None, y: Any = None) -> _Pair | None:
        for pair in self._pairs:
            if (pair.x is x if y is None else pair.y is y) and pair.is_under(condition):
                return pair
        return None

    def _pair_from(self, x: Any, condition: dict[str, Any]) -> _Pair:
        pair = self._known(condition, x=x)
        if pair is None:
            pair = _Pair(x, self._own("_forward", x, condition), condition)
            self._pairs.append(pair)
        return pair

    def _pair_to(self, y: Any, condition: dict[str, Any]) -> _Pair:
        pair = self._known(condition, y=y)
        if pair is None:
            pair = _Pair(self._own("_inverse", y, condition), y, condition)
            self._pairs.append(pair)
        return pair

    def _own(self, method: str, value: Any, condition: dict[str, Any]) -> Any:
        """The method of a subclass under the condition. NotImplementedError if none defines it."""
        if getattr(type(self), method) is getattr(CoreBijector, method):
            condition = {}
        return getattr(self, method)(value, **condition)

    # ---- sums over events

    def _stated_event_ndims(self) -> Any:
        """The constructor's event_ndims: a number, a tensor whose value is not known, or None."""
        if self.event_ndims is None:
            return None
        known = static_value(self.event_ndims)
        return self.event_ndims if known is None else int(known)

    def _checked_event_ndims(self, event_ndims: Any, least: Any) -> Any:
        """The rank of a call: a number, or a tensor whose value is not known."""
        if event_ndims is None:
            stated = self._stated_event_ndims()
            event_ndims = least if stated is None else stated
        if event_ndims is None or least is None:
            return least
        event_ndims = tf.convert_to_tensor(event_ndims, name="event_ndims")
        if not event_ndims.dtype.is_integer:
            raise ValueError(f"event_ndims must be a whole number, but its type is {event_ndims.dtype.name}.")
        if event_ndims.shape.ndims not in (None, 0):
            raise ValueError(f"event_ndims must be one number, but its shape is {event_ndims.shape}.")
        known = static_value(event_ndims)
        if known is None:
            return event_ndims
        if int(known) < least:
            raise ValueError(f"event_ndims is {int(known)}, but {self.name} needs at least {least}.")
        return int(known)

    def _reduced(self, jacobian: Any, sample: Any, least: Any, event_ndims: Any) -> Any:
        """Sums over the dimensions of an event that the least rank leaves; tiles what is one for several."""
        if event_ndims is None:
            return jacobian
        is_known = isinstance(event_ndims, int)
        axes = list(range(least - event_ndims, 0)) if is_known else tf.range(least - event_ndims, 0)
        rank = tf.rank(sample)
        sizes = tf.shape(sample)[rank - event_ndims : rank - least]
        return tf.reduce_sum(tf.ones(sizes, dtype=jacobian.dtype) * jacobian, axis=axes)
