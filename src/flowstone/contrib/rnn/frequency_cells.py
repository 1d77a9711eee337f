"""LSTM cells that run along time and frequency: the inputs of a step are cut into overlapping bands
(Li et al. 2016, LSTM time and frequency recurrence for automatic speech recognition)."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.rnn.cell_parts import clipped, known_depth, matrix_in_parts
from flowstone.layers.recurrent_cells import RNNCell

__all__ = ["BidirectionalGridLSTMCell", "GridLSTMCell", "TimeFreqLSTMCell"]

_TIME, _FREQUENCY = "time", "freq"


def _bands(inputs: Any, first: int, count: int, size: int, skip: int) -> list[Any]:
    return [tf.slice(inputs, [0, first + i * skip], [-1, size]) for i in range(count)]


class TimeFreqLSTMCell(RNNCell):
    """The LSTM whose cell also sees the output of the band of frequencies below.

    Args:
        num_units: the size of c and h of a band. use_peepholes: whether gates see c.
        cell_clip: the greatest size of an element of c. initializer: not used; as in
            TensorFlow, variables start as the scope says.
        num_unit_shards: how many variables make the kernel. forget_bias: is added to the forget gate.
        feature_size: the size of a band; frequency_skip: from one band's first frequency to the next one's.
        reuse: whether the variables must be there already.

    Inputs [batch, depth]; the state [batch, 2 * num_units * bands] holds c and h of each band; the output
    [batch, num_units * bands] every h. Variables: W_0 … [feature_size + 2 * num_units, 4 * num_units], B and
    W_F_diag, W_I_diag, W_O_diag [num_units].
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int = 1,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._use_peepholes, self._cell_clip = num_units, use_peepholes, cell_clip
        self._num_unit_shards = num_unit_shards
        self._forget_bias, self._frequency_skip = forget_bias, frequency_skip
        self._feature_size = feature_size

    @property
    def state_size(self) -> Any:
        """2 * num_units: c and h of one band."""
        return 2 * self._num_units

    @property
    def output_size(self) -> Any:
        """num_units, of one band."""
        return self._num_units

    def _make_tf_features(self, input_feat: Any) -> list[Any]:
        depth = known_depth(input_feat)
        size = self._feature_size or depth
        return _bands(input_feat, 0, (depth - size) // self._frequency_skip + 1, size, self._frequency_skip)

    def _step(self, x: Any, c: Any, kernel: Any, bias: Any, peepholes: dict[str, Any]) -> tuple[Any, Any]:
        i, j, f, o = tf.split(value=tf.nn.bias_add(tf.matmul(x, kernel), bias), num_or_size_splits=4, axis=1)
        f = f + self._forget_bias
        if peepholes:
            f, i = f + peepholes["F"] * c, i + peepholes["I"] * c
        c = clipped(tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(j), self._cell_clip)
        if peepholes:
            o = o + peepholes["O"] * c
        return c, tf.sigmoid(o) * tf.tanh(c)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, num_units * bands] and the new state."""
        units, dtype, bands = self._num_units, inputs.dtype, self._make_tf_features(inputs)
        rows, shape = known_depth(bands[0]) + 2 * units, [4 * units]
        kernel = matrix_in_parts("W", [rows, *shape], dtype, self._num_unit_shards)
        bias = tf.get_variable("B", shape, dtype, tf.zeros_initializer())
        names = "FIO" if self._use_peepholes else ""
        peepholes = {gate: tf.get_variable(f"W_{gate}_diag", [units], dtype) for gate in names}
        below = tf.zeros([int(inputs.get_shape()[0]), units], dtype)
        states, outputs = [], []
        for i, band in enumerate(bands):
            c = tf.slice(state, [0, 2 * i * units], [-1, units])
            h = tf.slice(state, [0, (2 * i + 1) * units], [-1, units])
            c, below = self._step(tf.concat([band, h, below], 1), c, kernel, bias, peepholes)
            states += [c, below]
            outputs.append(below)
        return tf.concat(outputs, 1), tf.concat(states, 1)


class _Block:
    """The variables of one block of bands, for the recurrences along frequency and time."""

    def __init__(self, cell: GridLSTMCell, block: int, depth: int, dtype: Any) -> None:
        units, self.cell = cell._num_units, cell
        shape = [depth + 2 * units, cell._num_gates * units]
        shared = cell._share_time_frequency_weights
        self.kernels: dict[str, tuple[Any, Any]] = {}
        for which in (_FREQUENCY,) if shared else (_FREQUENCY, _TIME):
            end = f"{which[0]}_{block}"
            kernel = matrix_in_parts(f"W_{end}", shape, dtype, cell._num_unit_shards)
            bias = tf.get_variable(f"B_{end}", shape[1:], dtype, tf.zeros_initializer())
            self.kernels[which] = kernel, bias
        gates = ("I", "O") if cell._couple_input_forget_gates else ("F", "I", "O")
        self.peepholes: dict[tuple[str, str], tuple[Any, Any]] = {}
        for which in self.kernels if cell._use_peepholes else ():
            for gate in gates:
                one, other = (
                    tf.get_variable(f"W_{gate}_diag_{which}{seen}_{block}", [units], dtype) for seen in "ft"
                )
                self.peepholes[gate, which] = one, other
        if shared:
            self.kernels[_TIME] = self.kernels[_FREQUENCY]
            self.peepholes.update({(g, _TIME): self.peepholes[g, w] for g, w in list(self.peepholes)})

    def gates(self, x: Any) -> dict[str, dict[str, Any]]:
        """The inputs of gates i, j, f and o, of both recurrences."""
        names = "ijo" if self.cell._couple_input_forget_gates else "ijfo"
        found: dict[str, dict[str, Any]] = {}
        for which in (_FREQUENCY, _TIME):
            if which == _TIME and self.cell._share_time_frequency_weights:
                found[which] = found[_FREQUENCY]
                continue
            kernel, bias = self.kernels[which]
            product = tf.nn.bias_add(tf.matmul(x, kernel), bias)
            parts = tf.split(value=product, num_or_size_splits=len(names), axis=1)
            found[which] = dict(zip(names, parts, strict=True))
        return found

    def opened(self, gate: str, which: str, value: Any, cs: dict[str, Any]) -> Any:
        """The gate's value in (0, 1), having seen c along frequency and time."""
        if (gate, which) in self.peepholes:
            of_frequency, of_time = self.peepholes[gate, which]
            value = value + of_frequency * cs[_FREQUENCY] + of_time * cs[_TIME]
        return tf.sigmoid(value)

    def step(self, x: Any, cs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The new c and h along both directions."""
        gates, new = self.gates(x), {}
        for which in (_FREQUENCY, _TIME):
            own = gates[which]
            i = self.opened("I", which, own["i"], cs)
            if self.cell._couple_input_forget_gates:
                f = 1.0 - i
            else:
                f = self.opened("F", which, own["f"] + self.cell._forget_bias, cs)
            new[which] = clipped(f * cs[which] + i * tf.tanh(own["j"]), self.cell._cell_clip)
        h = {w: self.opened("O", w, gates[w]["o"], new) * tf.tanh(new[w]) for w in (_FREQUENCY, _TIME)}
        return new, h


class GridLSTMCell(RNNCell):
    """The grid LSTM: memories of their own along time and along frequency (Kalchbrenner et al. 2015,
    https://arxiv.org/abs/1507.01526).

    Args:
        num_units: the size of c and h of a band. use_peepholes: whether gates see both memories.
        share_time_frequency_weights: whether both directions have the same variables.
        cell_clip: the greatest size of an element of c. initializer: not used; as in
            TensorFlow, variables start as the scope says.
        num_unit_shards: how many variables make a kernel. forget_bias: is added to forget gates.
        feature_size: the size of a band; frequency_skip: from one band's first frequency to the next one's.
        num_frequency_blocks: how many bands each block has. A block has variables of its own.
        start_freqindex_list, end_freqindex_list: the frequencies that each block begins with and ends before.
        couple_input_forget_gates: whether what is forgotten is what is written.
        state_is_tuple: whether the state is a named tuple of c and m of each band, or one tensor of all.
        reuse: whether the variables must be there already.

    Inputs [batch, depth]; the output [batch, 2 * num_units * bands] holds h along time and frequency of each
    band. Variables: W_f_<block>_<shard>, B_f_<block>, W_t_…, B_t_…, W_F_diag_freqf_<block> and its kin.
    ValueError without num_frequency_blocks.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        state_is_tuple: bool = True,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if num_frequency_blocks is None:
            raise ValueError("Must specify num_frequency_blocks")
        self._num_units, self._use_peepholes, self._cell_clip = num_units, use_peepholes, cell_clip
        self._share_time_frequency_weights = share_time_frequency_weights
        self._couple_input_forget_gates = couple_input_forget_gates
        self._num_unit_shards = num_unit_shards
        self._forget_bias, self._frequency_skip = forget_bias, frequency_skip
        self._feature_size, self._num_frequency_blocks = feature_size, list(num_frequency_blocks)
        self._start_freqindex_list = start_freqindex_list
        self._end_freqindex_list = end_freqindex_list
        self._state_is_tuple = state_is_tuple
        self._num_gates = 3 if couple_input_forget_gates else 4
        self._state_tuple_type: Any = self._tuple_type("GridLSTMStateTuple", [""]) if state_is_tuple else None

    def _tuple_type(self, name: str, prefixes: list[str]) -> Any:
        fields = [
            f"{prefix}state_f{i:02d}_b{block:02d}_{part}"
            for prefix in prefixes
            for block, count in enumerate(self._num_frequency_blocks)
            for i in range(count)
            for part in "cm"
        ]
        return namedtuple(name, fields)

    @property
    def output_size(self) -> Any:
        """2 * num_units * bands."""
        return 2 * self._num_units * sum(self._num_frequency_blocks)

    @property
    def state_size(self) -> Any:
        """The sizes of c and m of each band, or their sum."""
        if self._state_tuple_type is None:
            return 2 * self._num_units * sum(self._num_frequency_blocks)
        return self._state_tuple_type(*[self._num_units] * len(self._state_tuple_type._fields))

    @property
    def state_tuple_type(self) -> Any:
        """The class of the state, None if it is one tensor."""
        return self._state_tuple_type

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, 2 * num_units * bands] and the new state."""
        bands = self._make_tf_features(inputs)
        outputs, states = self._run(bands, self._parts(state, self._num_units), inputs)
        joined = tf.concat(states, 1) if self._state_tuple_type is None else self._state_tuple_type(*states)
        return tf.concat(outputs, 1), joined

    def _parts(self, state: Any, units: int) -> list[Any]:
        """c and m of each band, one after the other."""
        if self._state_tuple_type is not None:
            return list(state)
        count = 2 * sum(self._num_frequency_blocks)
        return [tf.slice(state, [0, i * units], [-1, units]) for i in range(count)]

    def _run(self, bands: list[list[Any]], parts: list[Any], inputs: Any) -> tuple[list[Any], list[Any]]:
        """The outputs and states of each band of each block."""
        batch = inputs.get_shape()[0].value
        batch = tf.shape(inputs)[0] if batch is None else batch
        outputs: list[Any] = []
        states: list[Any] = []
        units, dtype = self._num_units, inputs.dtype
        for number, block in enumerate(bands):
            m_frequency = tf.zeros([batch, units], dtype)
            c_frequency = tf.zeros([batch, units], dtype)
            variables = _Block(self, number, known_depth(block[0]), dtype)
            for band in block:
                c, m = parts[len(states)], parts[len(states) + 1]
                x = tf.concat([band, m, m_frequency], 1)
                cs, hs = variables.step(x, {_FREQUENCY: c_frequency, _TIME: c})
                c_frequency, m_frequency = cs[_FREQUENCY], hs[_FREQUENCY]
                states += [cs[_TIME], hs[_TIME]]
                outputs += [hs[_TIME], hs[_FREQUENCY]]
        return outputs, states

    def _make_tf_features(self, input_feat: Any, slice_offset: int = 0) -> list[list[Any]]:
        """The bands of each block. ValueError if they are not as many as num_frequency_blocks says."""
        depth = known_depth(input_feat)
        if slice_offset > 0:
            input_feat = tf.pad(input_feat, [[0, 0], [0, slice_offset]])
        elif slice_offset < 0:
            input_feat = tf.pad(input_feat, [[0, 0], [-slice_offset, 0]])
            slice_offset = 0
        starts, ends = self._start_freqindex_list or [0], self._end_freqindex_list or [depth]
        if len(starts) != len(ends):
            raise ValueError(
                f"Length of start and end freqindex_list does not match {len(starts)} {len(ends)}"
            )
        if len(self._num_frequency_blocks) != len(starts):
            raise ValueError(
                "Length of num_frequency_blocks is not equal to start_freqindex_list"
                f" {len(self._num_frequency_blocks)} {len(starts)}"
            )
        found, skip = [], self._frequency_skip or 1
        for start, end, expected in zip(starts, ends, self._num_frequency_blocks, strict=True):
            size = self._feature_size or end - start
            count = (end - start - size) // skip + 1
            if count != expected:
                raise ValueError(
                    f"Invalid num_frequency_blocks, requires {expected} but gets {count}, please check the"
                    " input size and filter config are correct."
                )
            found.append(_bands(input_feat, slice_offset + start, count, size, skip))
        return found


class BidirectionalGridLSTMCell(GridLSTMCell):
    """The grid LSTM along frequency in both directions, each with its own variables under fwd/ and bwd/.

    The arguments are `GridLSTMCell`'s; `backward_slice_offset` shifts the bands of the backward direction.
    The output [batch, 4 * num_units * bands] holds the forward ones before the backward ones.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        backward_slice_offset: int = 0,
        reuse: Any = None,
    ) -> None:
        super().__init__(
            num_units,
            use_peepholes,
            share_time_frequency_weights,
            cell_clip,
            initializer,
            num_unit_shards,
            forget_bias,
            feature_size,
            frequency_skip,
            num_frequency_blocks,
            start_freqindex_list,
            end_freqindex_list,
            couple_input_forget_gates,
            True,
            reuse,
        )
        self._backward_slice_offset = int(backward_slice_offset)
        self._state_tuple_type = self._tuple_type("BidirectionalGridLSTMStateTuple", ["fwd_", "bwd_"])

    @property
    def output_size(self) -> Any:
        """4 * num_units * bands."""
        return 2 * super().output_size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, 4 * num_units * bands] and the new state."""
        parts = list(state)
        half = len(parts) // 2
        forward = self._make_tf_features(inputs)
        backward = [
            list(reversed(block)) for block in self._make_tf_features(inputs, self._backward_slice_offset)
        ]
        with tf.variable_scope("fwd"):
            outputs, states = self._run(forward, parts[:half], inputs)
        with tf.variable_scope("bwd"):
            outputs_back, states_back = self._run(backward, parts[half:], inputs)
        make_state: Any = self._state_tuple_type
        new_state = make_state(*states, *states_back)
        return tf.concat([*outputs, *outputs_back], 1), new_state
