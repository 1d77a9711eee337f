"""Comparisons of values for tests: numeric closeness, bounds, shapes, messages, devices, errors.

A mix-in for absl's `TestCase`, which has those of containers and texts; `evaluate`, which `test_case.py`
defines, gives the values of tensors.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl.testing import absltest

from flowstone.framework import errors
from flowstone.framework.graphs.device_name import canonical_name
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes

__all__ = ["Assertions"]

ErrorPredicate = str | Callable[[BaseException], Any]
_HALF_TYPES = {"float16": "half", "bfloat16": "bfloat16"}
_PRODUCER, _MIN_CONSUMER = 24, 0


class Assertions(absltest.TestCase):
    """The assertions of `TestCase`; see the module."""

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors."""
        raise AssertionError("a test case evaluates tensors in a session")

    def _GetNdArray(self, a: Any) -> np.ndarray[Any, Any]:
        if isinstance(a, Tensor) or hasattr(a, "_as_graph_element"):
            a = self.evaluate(a)
        return a if isinstance(a, np.ndarray) else np.array(a)

    # ---- closeness

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None) -> None:
        """Checks ``|a − b| <= atol + rtol · |b|`` for all elements; a and b are arrays or equally nested
        structures.

        NaN equals NaN. Shapes must be equal; the message shows the offending elements.
        """
        self._assert_all_close(a, b, rtol, atol, "", msg)

    def _assert_all_close(self, a: Any, b: Any, rtol: float, atol: float, path: str, msg: Any) -> None:
        where = f" at {path}" if path else ""
        if isinstance(a, Mapping) != isinstance(b, Mapping):
            self.fail(
                self._formatMessage(msg, f"Can't compare a dict with something else{where}: {a!r} and {b!r}")
            )
        if isinstance(a, Mapping):
            if set(a) != set(b):
                self.fail(self._formatMessage(msg, f"mismatched keys{where}: {sorted(a)} and {sorted(b)}"))
            for key in a:
                self._assert_all_close(a[key], b[key], rtol, atol, f"{path}[{key!r}]", msg)
        elif isinstance(a, (list, tuple)):
            self._assert_lists_close(a, b, rtol, atol, path, msg)
        else:
            self._assert_arrays_close(a, b, rtol, atol, path, msg)

    def _assert_lists_close(self, a: Any, b: Any, rtol: float, atol: float, path: str, msg: Any) -> None:
        try:
            a_array, b_array = self._GetNdArray(a), self._GetNdArray(b)
        except (ValueError, TypeError):
            a_array = b_array = np.array(None)
        if a_array.dtype != object and b_array.dtype != object:
            self._assert_arrays_close(a_array, b_array, rtol, atol, path, msg)
            return
        if len(a) != len(b):
            self.fail(self._formatMessage(msg, f"Mismatched length at {path}: {len(a)} and {len(b)}"))
        for i, (x, y) in enumerate(zip(a, b)):
            self._assert_all_close(x, y, rtol, atol, f"{path}[{i}]", msg)

    def _assert_arrays_close(self, a: Any, b: Any, rtol: float, atol: float, path: str, msg: Any) -> None:
        a, b = _wide(self._GetNdArray(a)), _wide(self._GetNdArray(b))
        where = f" Mismatched value at {path}." if path else ""
        if a.shape != b.shape:
            text = f"Shape mismatch: expected {b.shape}, got {a.shape}.{where}"
            self.fail(self._formatMessage(msg, text))
        if np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
            return
        bad = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
        with np.errstate(invalid="ignore"):
            text = "\n".join(
                [
                    f"Not equal to tolerance rtol={rtol}, atol={atol}.{where}",
                    f"not close where = {_places(bad)}",
                    f"not close lhs = {a[bad]}",
                    f"not close rhs = {b[bad]}",
                    f"not close dif = {np.abs(a[bad] - b[bad])}",
                    f"not close tol = {atol + rtol * np.abs(b[bad])}",
                    f"dtype = {a.dtype}, shape = {a.shape}",
                ]
            )
        self.fail(self._formatMessage(msg, text))

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: Any = None,
    ) -> None:
        """`assertAllClose` with the widest of the tolerances that the element types of a and b call for."""
        a, b = self._GetNdArray(a), self._GetNdArray(b)
        names = {str(a.dtype), str(b.dtype)}
        if names & {"float32", "complex64"}:
            rtol, atol = max(rtol, float_rtol), max(atol, float_atol)
        if "float16" in names:
            rtol, atol = max(rtol, half_rtol), max(atol, half_atol)
        if "bfloat16" in names:
            rtol, atol = max(rtol, bfloat16_rtol), max(atol, bfloat16_atol)
        self.assertAllClose(a, b, rtol=rtol, atol=atol, msg=msg)

    def assertNotAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
    ) -> None:
        """Checks that `assertAllClose` would fail."""
        try:
            self.assertAllClose(a, b, rtol=rtol, atol=atol)
        except AssertionError:
            return
        self.fail(self._formatMessage(msg, f"The two values are close at all elements: {a!r} and {b!r}"))

    def assertNear(self, f1: float, f2: float, err: float, msg: Any = None) -> None:
        """Checks that two numbers, or arrays of one element, differ by at most `err`."""
        first, second, most = (np.asarray(number).item() for number in (f1, f2, err))
        near = first == second or math.fabs(first - second) <= most
        difference = f"{first:f} != {second:f} +/- {most:f}"
        self.assertTrue(near, f"{difference}{f' ({msg})' if msg is not None else ''}")

    def assertArrayNear(
        self, farray1: Sequence[float], farray2: Sequence[float], err: float, msg: Any = None
    ) -> None:
        """Checks that two sequences of numbers differ by at most `err` element by element."""
        self.assertEqual(len(farray1), len(farray2), msg=msg)
        for f1, f2 in zip(farray1, farray2):
            self.assertNear(float(f1), float(f2), err, msg=msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: Any = None) -> None:
        """Checks that the Euclidean norm of the difference of two arrays is below `err`."""
        distance = np.linalg.norm((np.asarray(ndarray1) - np.asarray(ndarray2)).ravel())
        self.assertTrue(distance < err, self._formatMessage(msg, f"distance {distance} is not below {err}"))

    # ---- elements

    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Checks that two arrays have the same shape and elements; NaN equals NaN."""
        a, b = self._GetNdArray(a), self._GetNdArray(b)
        if a.shape != b.shape:
            self.fail(self._formatMessage(msg, f"Shape mismatch: expected {b.shape}, got {a.shape}."))
        same = a == b
        if np.issubdtype(a.dtype, np.inexact) and np.issubdtype(b.dtype, np.inexact):
            same = np.logical_or(same, np.logical_and(np.isnan(a), np.isnan(b)))
        if np.all(same):
            return
        bad = np.logical_not(same)
        lines = [
            f"not equal where = {_places(bad)}",
            f"not equal lhs = {a[bad]}",
            f"not equal rhs = {b[bad]}",
        ]
        self.fail(self._formatMessage(msg, "\n".join(lines)))

    def assertNotAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Checks that two arrays differ somewhere."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        self.fail(self._formatMessage(msg, f"The two values are equal at all elements: {a!r}"))

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Checks that all elements are greater than a number."""
        self._assert_all(a, np.greater, comparison_target, "greater than")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Checks that all elements are less than a number."""
        self._assert_all(a, np.less, comparison_target, "less than")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Checks that all elements are at least a number."""
        self._assert_all(a, np.greater_equal, comparison_target, "greater than or equal to")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Checks that all elements are at most a number."""
        self._assert_all(a, np.less_equal, comparison_target, "less than or equal to")

    def _assert_all(self, a: Any, holds: Callable[[Any, Any], Any], target: Any, what: str) -> None:
        a = self._GetNdArray(a)
        bad = np.logical_not(holds(a, target))
        if np.any(bad):
            self.fail(f"Not all elements are {what} {target}: {a[bad]} at {_places(bad)}")

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Checks that all elements lie between the bounds, inclusive unless a bound is open."""
        target = self._GetNdArray(target)
        if not np.issubdtype(target.dtype, np.number) or np.issubdtype(target.dtype, np.complexfloating):
            self.fail(f"The value of dtype {target.dtype} does not appear to be an ordered numeric type.")
        below = target <= lower_bound if open_lower_bound else target < lower_bound
        above = target >= upper_bound if open_upper_bound else target > upper_bound
        bad = below | above | np.isnan(target)
        if np.any(bad):
            left, right = "(" if open_lower_bound else "[", ")" if open_upper_bound else "]"
            limits = f"{left}{lower_bound}, {upper_bound}{right}"
            self.fail(f"Subscript(s) and value(s) of the offending elements outside {limits}: "
                      f"{_places(bad)}, {target[bad]}")  # fmt: skip

    def assertAllInSet(self, target: Any, expected_set: Iterable[Any]) -> None:
        """Checks that all elements are members of a set."""
        target, expected = self._GetNdArray(target), set(expected_set)
        extra = set(np.unique(target).tolist()) - expected
        if extra:
            self.fail(f"{len(extra)} unique element(s) are not in the set {expected}: {sorted(extra)}")

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: Any = None) -> None:
        """Checks that an array's shape is a tensor's static shape."""
        if not isinstance(np_array, (np.ndarray, np.generic)):
            raise TypeError("np_array must be a Numpy ndarray or Numpy scalar")
        if not isinstance(tf_tensor, Tensor) and not hasattr(tf_tensor, "get_shape"):
            raise TypeError("tf_tensor must be a Tensor")
        self.assertAllEqual(np_array.shape, tf_tensor.get_shape().as_list(), msg=msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Checks the element type of a tensor, variable or array, or of every array of a list."""
        expected = dtypes.as_dtype(expected_dtype)
        items = target if isinstance(target, list) else [target]
        for i, item in enumerate(items):
            found = dtypes.as_dtype(item.dtype if hasattr(item, "dtype") else np.array(item).dtype).base_dtype
            if found != expected:
                self.fail(f"Element {i} has dtype {found!r}, expected {expected!r}")

    # ---- messages and devices

    def assertProtoEquals(self, expected_message_maybe_ascii: Any, message: Any, msg: Any = None) -> None:
        """Checks that a protocol buffer message equals another one, or the one that a text describes; shows
        both as text if not.
        """
        expected = expected_message_maybe_ascii
        if isinstance(expected, (str, bytes)):
            from google.protobuf import text_format  # slow to import

            expected = text_format.Merge(expected, type(message)())
        elif type(expected).__name__ != type(message).__name__:
            self.fail(self._formatMessage(msg, f"Can't compare {type(message)} with {type(expected)}"))
        if expected != message:
            self.assertEqual(str(expected), str(message), msg)
            self.fail(self._formatMessage(msg, "messages differ"))

    def assertProtoEqualsVersion(
        self,
        expected: str,
        actual: Any,
        producer: int = _PRODUCER,
        min_consumer: int = _MIN_CONSUMER,
        msg: Any = None,
    ) -> None:
        """`assertProtoEquals` for a GraphDef whose text lacks the versions."""
        if actual.HasField("library") and not actual.library.ByteSize():
            actual = type(actual).FromString(actual.SerializeToString())
            actual.ClearField("library")  # an empty library is the same as none
        versions = f"versions {{ producer: {producer} min_consumer: {min_consumer} }}"
        self.assertProtoEquals(f"{versions}\n{expected}", actual, msg=msg)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: Any = None) -> None:
        """Checks that two device names, in any spelling, mean the same device."""
        first, second = canonical_name(device1), canonical_name(device2)
        self.assertEqual(
            first, second, f"Devices {first} and {second} are not equal.{f' ({msg})' if msg else ''}"
        )

    # ---- errors

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(  # type: ignore[override]
        self, exception_type: Any, expected_err_re_or_predicate: ErrorPredicate
    ) -> Iterator[None]:
        """Checks that the block raises an exception of this type whose message matches a pattern, or that a
        function accepts.

        The pattern may also match the names of the operation of a step's error, and of its inputs.
        """
        if callable(expected_err_re_or_predicate):
            accepts = expected_err_re_or_predicate
        else:
            pattern = expected_err_re_or_predicate

            def accepts(error: BaseException) -> Any:
                return re.search(pattern, _full_message(error))

        try:
            yield
        except exception_type as error:
            if not accepts(error):
                raise AssertionError(f"Exception of type {type(error)}: {error}") from error
        else:
            self.fail(f"{getattr(exception_type, '__name__', exception_type)} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: ErrorPredicate) -> Any:
        """Checks that the block raises an `errors.OpError` that matches."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)

    def assertRaisesIncompatibleShapesError(
        self,
        exception_type: Any = errors.InvalidArgumentError,
        expected_err_re_or_predicate: str = r"Incompatible shapes",
    ) -> Any:
        """Checks that the block raises an error about shapes that do not fit."""
        return self.assertRaisesWithPredicateMatch(exception_type, expected_err_re_or_predicate)


def _places(bad: Any) -> Any:
    """Where a boolean array, or one boolean, is true."""
    return np.nonzero(np.atleast_1d(bad))


def _wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Half-width floats as float32, which NumPy can compare."""
    return array.astype(np.float32) if str(array.dtype) in _HALF_TYPES else array


def _full_message(error: BaseException) -> str:
    if not isinstance(error, errors.OpError):
        return str(error)
    text, op = error.message, error.op
    if op is not None:
        text += f"\nCaused by op: {op.name}"
        text += "".join(f"\nCaused by input op: {tensor.op.name}" for tensor in op.inputs)
    return text
