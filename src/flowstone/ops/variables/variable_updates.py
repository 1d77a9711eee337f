"""`VariableUpdates`: the methods of variables that change them, which both kinds share.

A kind says with four methods how an update is added to the graph. The result is the variable after the
update: for a reference variable its reference, for a resource variable an `UpdatedVariable`.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.tensors.composite import IndexedSlices


class VariableUpdates:
    """Updates of a variable; see the module."""

    # ---- what a kind says

    def _assigned(self, kind: str, value: Any, use_locking: bool, name: str | None, read_value: bool) -> Any:
        """The update ``Assign``, ``AssignAdd`` or ``AssignSub`` by a whole value."""
        raise TypeError(f"{type(self).__name__} is no kind of variable")

    def _counted_up_to(self, limit: int) -> Any:
        raise TypeError(f"{type(self).__name__} is no kind of variable")

    def _scattered(self, kind: str, delta: IndexedSlices, use_locking: bool, name: str | None) -> Any:
        """The update ``Add``, ``Mul`` … of rows."""
        raise TypeError(f"{type(self).__name__} is no kind of variable")

    def _scattered_nd(self, kind: str, indices: Any, updates: Any, name: str | None) -> Any:
        """The update ``Add``, ``Sub`` or ``Update`` at index tuples."""
        raise TypeError(f"{type(self).__name__} is no kind of variable")

    # ---- whole values

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Gives it a value of its shape; the operation if `read_value` is False, else the result.

        ValueError for another static shape.
        """
        return self._assigned("Assign", value, use_locking, name, read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds a value of its shape; returns as `assign`."""
        return self._assigned("AssignAdd", delta, use_locking, name, read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts a value of its shape; returns as `assign`."""
        return self._assigned("AssignSub", delta, use_locking, name, read_value)

    def count_up_to(self, limit: int) -> Any:
        """The value, which then grows by 1; a step fails with OutOfRangeError at `limit`."""
        return self._counted_up_to(limit)

    # ---- rows: TypeError unless `sparse_delta` is an IndexedSlices

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtracts IndexedSlices."""
        return self._scattered("Sub", _slices(sparse_delta), use_locking, name)

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Adds IndexedSlices."""
        return self._scattered("Add", _slices(sparse_delta), use_locking, name)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Assigns IndexedSlices."""
        return self._scattered("Update", _slices(sparse_delta), use_locking, name)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiplies rows by IndexedSlices."""
        return self._scattered("Mul", _slices(sparse_delta), use_locking, name)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divides rows by IndexedSlices."""
        return self._scattered("Div", _slices(sparse_delta), use_locking, name)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Raises rows to IndexedSlices."""
        return self._scattered("Max", _slices(sparse_delta), use_locking, name)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Lowers rows to IndexedSlices."""
        return self._scattered("Min", _slices(sparse_delta), use_locking, name)

    # ---- elements

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtracts at index tuples."""
        return self._scattered_nd("Sub", indices, updates, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Adds at index tuples."""
        return self._scattered_nd("Add", indices, updates, name)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Assigns at index tuples."""
        return self._scattered_nd("Update", indices, updates, name)


def _slices(sparse_delta: Any) -> IndexedSlices:
    if not isinstance(sparse_delta, IndexedSlices):
        raise TypeError(f"sparse_delta is not IndexedSlices: {sparse_delta}")
    return sparse_delta
