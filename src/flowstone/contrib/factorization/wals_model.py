"""`WALSModel`: a sparse matrix as a product of two thin ones, by weighted alternating least squares.

    A ≈ U Vᵀ minimises Σ w_ij (A_ij − u_i · v_j)² + λ (‖U‖² + ‖V‖²)

where w_ij is the unobserved weight, and for the elements that are there also the weight of the row times that
of the column. With V given, each row of U solves a system of its own, and the other way round:

    model = WALSModel(rows, columns, 10)
    _, update, loss, regularization, _ = model.update_row_factors(sp_input=part)
    for each sweep, before the rows' updates: row_update_prep_gramian_op, initialize_row_update_op; `update`
    for each part; then the same of the columns

Y. Hu, Y. Koren and C. Volinsky, "Collaborative filtering for implicit feedback datasets", 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from numbers import Real
from typing import Any

import flowstone as tf

__all__ = ["WALSModel"]

_RANDOM = "random"


class _Axis:
    """The rows or the columns: variables in shards, and what updates of the other axis read of them.

    `name`: "row" or "col". `weights` is None where all weights are the unobserved one.
    """

    def __init__(self, name: str, size: int, shards: int, is_scoped: bool) -> None:
        self.name, self.size, self.shards, self.is_scoped = name, size, shards, is_scoped
        each, more = divmod(size, shards)
        self.sizes = [each + 1] * more + [each] * (shards - more)
        self.weights: Any = None
        self.factors: list[Any] = []
        self.gramian: Any = None
        self.factors_read: Any = None
        self.weights_read: Any = None
        self.gramian_read: Any = None

    def make_weights(self, given: Any) -> None:
        """A variable a shard. AssertionError for another number of them, ValueError for another form."""
        if given is None:
            return
        if isinstance(given, Iterable):
            lists: Any = list(given)
            if self.shards == 1 and len(lists) == self.size:
                lists = [lists]
            assert len(lists) == self.shards
            values = [partial(lists.__getitem__, i) for i in range(self.shards)]
        elif isinstance(given, Real) and float(given) >= 0:
            values = [partial(tf.fill, [size], float(given)) for size in self.sizes]
        else:
            raise ValueError(
                "Invalid weight initialization argument. Must be one of these: None, a real non-negative "
                "real number, or a list of lists of non-negative real numbers (or equivalent iterables) "
                "corresponding to sharded factors."
            )
        self.weights = self._variables("weights", values)

    def make_factors(self, components: int, given: Any) -> None:
        """A variable [size, components] a shard: random, or what is given, in a list for several shards."""
        given = given() if callable(given) else given
        if isinstance(given, str) and given == _RANDOM:
            values = [partial(tf.random_normal, [size, components]) for size in self.sizes]
        else:
            listed: Any = given if isinstance(given, list) or self.shards > 1 else [given]
            assert len(listed) == self.shards
            values = [partial(list(listed).__getitem__, i) for i in range(self.shards)]
        self.factors = self._variables("factors", values)

    def make_gramian(self, components: int) -> None:
        """The variable [components, components] that holds the factors' products."""
        self.gramian = tf.Variable(tf.zeros([components, components]), name=f"{self.name}_gramian")

    def _variables(self, kind: str, values: Sequence[Callable[[], Any]]) -> list[Any]:
        name = f"{self.name}_{kind}"
        with tf.name_scope(name) if self.is_scoped else nullcontext():
            return [
                tf.Variable(value, dtype=tf.float32, name=f"{name}_shard_{i}")
                for i, value in enumerate(values)
            ]

    def computed_gramian(self) -> Any:
        """The operation that sets the Gramian to the factors' products."""
        parts = [tf.matmul(factors, factors, transpose_a=True) for factors in self.factors]
        return tf.assign(self.gramian, tf.add_n(parts)).op

    def place(self, ids: Any) -> tuple[Any, Any]:
        """In which shard rows of the factors are, and at which place there."""
        each, more = divmod(self.size, self.shards)
        shard = tf.maximum(ids // (each + 1), (ids - more) // each)
        return shard, tf.where(shard < more, ids % (each + 1), (ids - more) % each)


class _Cache:
    """Copies of variables that a task keeps, or the variables themselves; what fills and empties them."""

    def __init__(self, variables: Any, name: str, is_kept: bool) -> None:
        if variables is None or not is_kept:
            self.values, self.fill, self.empty = variables, tf.no_op(), tf.no_op()
            return
        listed = variables if isinstance(variables, list) else [variables]
        names = [f"{name}_shard_{i}" for i in range(len(listed))] if listed is variables else [name]
        copies = [_transient(each) for each in names]
        filled: list[Any] = []
        for copy, variable in zip(copies, listed):  # one after another, to hold few values at a time
            with tf.control_dependencies(filled[-1:]):
                filled.append(tf.assign(copy, variable, validate_shape=False))
        self.values = copies if listed is variables else copies[0]
        self.fill = tf.group(*filled)
        self.empty = tf.group(*(tf.assign(copy, 1.0, validate_shape=False) for copy in copies))


def _transient(name: str) -> Any:
    local = [tf.GraphKeys.LOCAL_VARIABLES]
    return tf.Variable(1.0, trainable=False, collections=local, validate_shape=False, name=name)


class WALSModel:
    """The model; see the module.

    Args:
        input_rows, input_cols: the sizes of the matrix.
        n_components: the number of columns of the factors.
        unobserved_weight: the weight of elements that are not there.
        regularization: λ; None: there is none.
        row_init, col_init: what factors begin with: "random", an array or tensor, a function that returns
            one, or a list of these, one a shard.
        num_row_shards, num_col_shards: into how many variables factors and weights are divided.
        row_weights, col_weights: a number, a list of numbers for a single shard, lists for several; both
            None: all weights are `unobserved_weight`.
        use_factors_weights_cache, use_gramian_cache: whether a task copies what its updates read.
        use_scoped_vars: whether variables are in name scopes of their own.

    Raises AssertionError where one of the weights alone is None, ValueError for weights of another form.
    """

    def __init__(
        self,
        input_rows: int,
        input_cols: int,
        n_components: int,
        unobserved_weight: float = 0.1,
        regularization: float | None = None,
        row_init: Any = _RANDOM,
        col_init: Any = _RANDOM,
        num_row_shards: int = 1,
        num_col_shards: int = 1,
        row_weights: Any = 1,
        col_weights: Any = 1,
        use_factors_weights_cache: bool = True,
        use_gramian_cache: bool = True,
        use_scoped_vars: bool = False,
    ) -> None:
        assert (row_weights is None) == (col_weights is None)
        self._components, self._unobserved_weight = n_components, unobserved_weight
        self._regularization = regularization
        self._rows = _Axis("row", input_rows, num_row_shards, use_scoped_vars)
        self._cols = _Axis("col", input_cols, num_col_shards, use_scoped_vars)
        self._rows.make_weights(row_weights)
        self._cols.make_weights(col_weights)
        self._rows.make_factors(n_components, row_init)
        self._cols.make_factors(n_components, col_init)
        for axis in (self._rows, self._cols):
            axis.make_gramian(n_components)
        with tf.name_scope("row_prepare_gramian"):
            self._prepare_rows = self._cols.computed_gramian()
        with tf.name_scope("col_prepare_gramian"):
            self._prepare_cols = self._rows.computed_gramian()
        with tf.name_scope("transient_vars"):
            self._make_caches(use_factors_weights_cache, use_gramian_cache)

    def _make_caches(self, keeps_factors: bool, keeps_gramian: bool) -> None:
        axes = (self._rows, self._cols)
        factors = [_Cache(each.factors, f"{each.name}_factors_cache", keeps_factors) for each in axes]
        weights = [_Cache(each.weights, f"{each.name}_wt_cache", keeps_factors) for each in axes]
        gramians = [_Cache(each.gramian, f"{each.name}_gramian_cache", keeps_gramian) for each in axes]
        for i, axis in enumerate(axes):
            axis.factors_read, axis.weights_read = factors[i].values, weights[i].values
            axis.gramian_read = gramians[i].values
        self._start_rows, self._start_cols = (
            tf.group(factors[other].fill, factors[own].empty, gramians[other].fill, gramians[own].empty)
            for own, other in ((0, 1), (1, 0))
        )
        self._worker_init = tf.group(*(each.fill for each in weights), name="worker_init")

    row_factors = property(lambda self: self._rows.factors, doc="The variables of the rows' factors.")
    col_factors = property(lambda self: self._cols.factors, doc="The variables of the columns' factors.")
    row_weights = property(
        lambda self: self._rows.weights, doc="The variables of the rows' weights, or None."
    )
    col_weights = property(lambda self: self._cols.weights, doc="The same of the columns.")
    worker_init = property(lambda self: self._worker_init, doc="Copies the weights; once a task.")
    row_update_prep_gramian_op = property(
        lambda self: self._prepare_rows, doc="Computes what all updates of rows share; by one task."
    )
    col_update_prep_gramian_op = property(lambda self: self._prepare_cols, doc="The same for columns.")
    initialize_row_update_op = property(
        lambda self: self._start_rows, doc="Copies what updates of rows read; by every task."
    )
    initialize_col_update_op = property(lambda self: self._start_cols, doc="The same for columns.")

    @property
    def initialize_op(self) -> Any:
        """The operation that initialises factors, Gramians and weights."""
        found = [*self._rows.factors, *self._cols.factors, self._rows.gramian, self._cols.gramian]
        return tf.variables_initializer([*found, *(self._rows.weights or ()), *(self._cols.weights or ())])

    # ---- updates and projections

    def update_row_factors(self, sp_input: Any = None, transpose_input: bool = False) -> tuple[Any, ...]:
        """The update of the rows that `sp_input` has elements of.

        Args:
            sp_input: whole rows of the matrix, a SparseTensor with the matrix' own indices.
            transpose_input: whether it has them as columns.

        Returns (the new factors of these rows in the order of their first elements; the operation that keeps
        them; the loss of these rows without regularisation, times the number of rows over theirs;
        the regularisation; the sum of the weights, so scaled).
        """
        return self._solved(self._rows, self._cols, sp_input, transpose_input, None)

    def update_col_factors(self, sp_input: Any = None, transpose_input: bool = False) -> tuple[Any, ...]:
        """The update of the columns that `sp_input` has elements of; see `update_row_factors`."""
        return self._solved(self._cols, self._rows, sp_input, not transpose_input, None)

    def project_row_factors(
        self, sp_input: Any = None, transpose_input: bool = False, projection_weights: Any = None
    ) -> Any:
        """The factors that rows would have, which need not be rows of the matrix.

        `projection_weights`: their weights, a number or one a row; 1 by default.
        """
        weights = 1 if projection_weights is None else projection_weights
        return self._solved(self._rows, self._cols, sp_input, transpose_input, weights)[0]

    def project_col_factors(
        self, sp_input: Any = None, transpose_input: bool = False, projection_weights: Any = None
    ) -> Any:
        """The factors that columns would have; see `project_row_factors`."""
        weights = 1 if projection_weights is None else projection_weights
        return self._solved(self._cols, self._rows, sp_input, not transpose_input, weights)[0]

    def _solved(
        self, axis: _Axis, other: _Axis, sp_input: Any, is_transposed: bool, given_weights: Any
    ) -> tuple[Any, ...]:
        assert isinstance(sp_input, tf.SparseTensor)
        part = _Part(sp_input, is_transposed)
        right = tf.nn.embedding_lookup(other.factors_read, part.other_ids, partition_strategy="div")
        system = self._unobserved_weight * other.gramian_read
        if self._regularization is not None:
            system += self._regularization * tf.eye(self._components)
        if axis.weights is None:
            weights = None
            sums = self._unobserved_weight * part.products(right)
            new = tf.transpose(tf.matrix_solve(system, tf.transpose(sums)))
        else:
            weights = self._weights_of(axis, other, part, given_weights)
            added, sums = tf.raw_ops.WALSComputePartialLhsAndRhs(
                factors=right, factor_weights=weights[1], unobserved_weights=self._unobserved_weight,
                input_weights=weights[0], input_indices=part.indices, input_values=part.values,
                entry_weights=[], input_block_size=part.size, input_is_transpose=is_transposed,
                name="wals_compute_partial_lhs_rhs",
            )  # fmt: skip
            new = tf.squeeze(
                tf.matrix_solve(tf.expand_dims(system, 0) + added, tf.expand_dims(sums, -1)), [2]
            )
        update = self.scatter_update(axis.factors, part.ids, new, axis.place, name=f"{axis.name}_update")
        return (new, update, *self._losses(axis, other, part, new, right, weights))

    @staticmethod
    def _weights_of(axis: _Axis, other: _Axis, part: _Part, given: Any) -> tuple[Any, Any]:
        """The weights of the part's rows, those given or the model's, and of the other axis."""
        others = tf.nn.embedding_lookup(other.weights_read, part.other_ids, partition_strategy="div")
        if given is None:
            return tf.nn.embedding_lookup(axis.weights_read, part.ids, partition_strategy="div"), others
        given = tf.cast(tf.convert_to_tensor(given), tf.float32)
        return given + tf.zeros([tf.shape(part.ids)[0]]), others

    def _losses(
        self, axis: _Axis, other: _Axis, part: _Part, new: Any, right: Any, weights: Any
    ) -> tuple[Any, Any, Any]:
        """The loss, the regularisation and the sum of the weights."""
        found = tf.reduce_sum(tf.gather(new, part.row) * tf.gather(right, part.column), 1)
        squares = tf.square(part.values - found)
        products, gramian = tf.matmul(new, new, transpose_a=True), other.gramian_read
        scale = axis.size / tf.cast(part.size, tf.float32)
        everywhere = tf.trace(tf.matmul(products, gramian))
        loss = self._unobserved_weight * (
            tf.reduce_sum(squares) - tf.reduce_sum(tf.square(found)) + everywhere
        )
        total = tf.constant(self._unobserved_weight * float(axis.size * other.size))
        if weights is not None:
            each = tf.gather(weights[0], part.row) * tf.gather(weights[1], part.column)
            loss += tf.reduce_sum(each * squares)
            total += tf.reduce_sum(each) * scale
        if self._regularization is None:
            return loss * scale, tf.constant(0.0), total
        penalty = self._regularization * (tf.trace(products) * scale + tf.trace(gramian))
        return loss * scale, penalty, total

    @classmethod
    def scatter_update(
        cls,
        factor: list[Any],
        indices: Any,
        values: Any,
        sharding_func: Callable[[Any], Any],
        name: Any = None,
    ) -> Any:
        """The operation that sets rows of a variable in shards.

        `sharding_func`: from the rows' numbers to their shards and the places there.
        """
        if len(factor) == 1:
            return tf.scatter_update(factor[0], indices, values, name=name).op
        shards, places = sharding_func(indices)
        shards, count = tf.cast(shards, tf.int32), len(factor)
        parts = zip(
            factor, tf.dynamic_partition(places, shards, count), tf.dynamic_partition(values, shards, count)
        )
        return tf.group(*(tf.scatter_update(*part) for part in parts), name=name)


class _Part:
    """Some rows of the matrix: those that a SparseTensor has elements of, numbered anew.

    `ids` and `other_ids` are the numbers in the matrix of its rows and of the columns that it has elements
    in; `row` and `column` say for each element which of these it is in.
    """

    def __init__(self, sp_input: Any, is_transposed: bool) -> None:
        first, second = (tf.unique(sp_input.indices[:, i], out_idx=tf.int64) for i in (0, 1))
        self.values = sp_input.values
        self.indices = tf.stack([first[1], second[1]], axis=1)
        own, other = (second, first) if is_transposed else (first, second)
        self.ids, self.row = own
        self.other_ids, self.column = other
        self.size = tf.size(self.ids, out_type=tf.int64)

    def products(self, right: Any) -> Any:
        """The part times `right`, which has a row for each of `other_ids`."""
        terms = tf.expand_dims(self.values, 1) * tf.gather(right, self.column)
        return tf.unsorted_segment_sum(terms, self.row, self.size)
