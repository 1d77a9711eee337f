"""What a profile shows: `ProfileOptionBuilder` for programs, `Options` for this package.

Options travel as a dictionary of TensorFlow's names, for programs change it by hand.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

# The names in the order in which a report lists them.
NAMES = (
    "max_depth", "min_bytes", "min_peak_bytes", "min_residual_bytes", "min_output_bytes", "min_micros",
    "min_accelerator_micros", "min_cpu_micros", "min_params", "min_float_ops", "min_occurrence", "step",
    "order_by", "account_type_regexes", "start_name_regexes", "trim_name_regexes", "show_name_regexes",
    "hide_name_regexes", "account_displayed_op_only", "select", "output",
)  # fmt: skip

MEASURES = (
    "micros", "accelerator_micros", "cpu_micros", "bytes", "peak_bytes", "residual_bytes", "output_bytes",
    "params", "float_ops",
)  # fmt: skip
COLUMNS = (*MEASURES, "device", "input_shapes", "occurrence", "op_types", "tensor_value")
ORDERS = ("name", "depth", *MEASURES, "occurrence")
OUTPUTS = ("stdout", "file", "timeline", "pprof", "none")

_DEFAULTS: dict[str, Any] = {
    "max_depth": 100,
    "min_bytes": 0,
    "min_micros": 0,
    "min_params": 0,
    "min_float_ops": 0,
    "min_occurrence": 0,
    "order_by": "name",
    "account_type_regexes": [".*"],
    "start_name_regexes": [".*"],
    "trim_name_regexes": [],
    "show_name_regexes": [".*"],
    "hide_name_regexes": [],
    "account_displayed_op_only": False,
    "select": ["micros"],
    "step": -1,
    "output": "stdout",
}


class ProfileOptionBuilder:
    """Builds the options of `tf.profiler.profile` and of `tf.profiler.Profiler`.

    Three functions give options for common questions; the methods change single ones and return the builder:

        options = ProfileOptionBuilder(ProfileOptionBuilder.time_and_memory()).with_max_depth(3).build()

    Args:
        options: a dictionary of options to begin with; None begins with the defaults.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options: dict[str, Any] = copy.deepcopy(dict(_DEFAULTS if options is None else options))

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Options that count the parameters of the trainable variables, for the view 'scope'."""
        return {
            **copy.deepcopy(_DEFAULTS),
            "max_depth": 10000,
            "account_type_regexes": ["_trainable_variables"],
            "account_displayed_op_only": True,
            "select": ["params"],
        }

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Options that count floating-point operations, the most expensive first.

        Counted are the ops of `flowstone.profiling.float_operations` whose shapes are known: statically, or
        from the RunMetadata that the profile is given.
        """
        return {
            **copy.deepcopy(_DEFAULTS),
            "max_depth": 10000,
            "min_float_ops": 1,
            "order_by": "float_ops",
            "account_displayed_op_only": True,
            "select": ["float_ops"],
        }

    @staticmethod
    def time_and_memory(
        min_micros: int = 1,
        min_bytes: int = 1,
        min_accelerator_micros: int = 0,
        min_cpu_micros: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> dict[str, Any]:
        """Options that show time and memory, the slowest first.

        Shown is what has at least `min_micros` microseconds and `min_bytes` requested bytes, and likewise
        for the others: time on an accelerator and on the host, bytes at the peak, held after the op, and of
        the outputs.
        """
        return {
            **copy.deepcopy(_DEFAULTS),
            "max_depth": 10000,
            "min_bytes": min_bytes,
            "min_peak_bytes": min_peak_bytes,
            "min_residual_bytes": min_residual_bytes,
            "min_output_bytes": min_output_bytes,
            "min_micros": min_micros,
            "min_accelerator_micros": min_accelerator_micros,
            "min_cpu_micros": min_cpu_micros,
            "order_by": "micros",
            "account_displayed_op_only": True,
            "select": ["micros", "bytes"],
        }

    def build(self) -> dict[str, Any]:
        """The options, as a new dictionary."""
        return copy.deepcopy(self._options)

    def with_max_depth(self, max_depth: int) -> ProfileOptionBuilder:
        """Shows nodes down to this depth; the root has depth 1. Of the view 'op', this many kinds after the
        first."""
        return self._set(max_depth=max_depth)

    def with_min_memory(
        self,
        min_bytes: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> ProfileOptionBuilder:
        """Shows what requested, held at its peak, kept, and put out at least so many bytes."""
        return self._set(
            min_bytes=min_bytes,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
        )

    def with_min_execution_time(
        self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0
    ) -> ProfileOptionBuilder:
        """Shows what took at least so many microseconds: in all, on an accelerator, on the host."""
        return self._set(
            min_micros=min_micros,
            min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros,
        )

    def with_min_parameters(self, min_params: int) -> ProfileOptionBuilder:
        """Shows what has at least so many parameters."""
        return self._set(min_params=min_params)

    def with_min_occurrence(self, min_occurrence: int) -> ProfileOptionBuilder:
        """Shows nodes that ran, or kinds of ops that stand in the graph, at least so often."""
        return self._set(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops: int) -> ProfileOptionBuilder:
        """Shows what has at least so many floating-point operations."""
        return self._set(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes: Sequence[str]) -> ProfileOptionBuilder:
        """Counts only nodes one of whose types matches one of the regular expressions.

        The types of a node are its op, the device it ran on, ``_trainable_variables`` for a trainable
        variable, and those that an OpLogProto gives it.
        """
        return self._set(account_type_regexes=copy.copy(account_type_regexes))

    def with_node_names(
        self,
        start_name_regexes: Sequence[str] | None = None,
        show_name_regexes: Sequence[str] | None = None,
        hide_name_regexes: Sequence[str] | None = None,
        trim_name_regexes: Sequence[str] | None = None,
    ) -> ProfileOptionBuilder:
        """Chooses nodes by regular expressions that match their whole names; None changes nothing.

        Args:
            start_name_regexes: the tree begins at these.
            show_name_regexes: only these are shown.
            hide_name_regexes: these are not shown.
            trim_name_regexes: below these nothing is shown.
        """
        given = {
            "start_name_regexes": start_name_regexes,
            "show_name_regexes": show_name_regexes,
            "hide_name_regexes": hide_name_regexes,
            "trim_name_regexes": trim_name_regexes,
        }
        return self._set(**{name: copy.copy(value) for name, value in given.items() if value is not None})

    def account_displayed_op_only(self, is_true: bool) -> ProfileOptionBuilder:
        """Whether sums are over the nodes that are shown, or over all."""
        return self._set(account_displayed_op_only=is_true)

    def with_empty_output(self) -> ProfileOptionBuilder:
        """Prints nothing; the profile is only returned."""
        return self._set(output="none")

    def with_stdout_output(self) -> ProfileOptionBuilder:
        """Prints the profile."""
        return self._set(output="stdout")

    def with_file_output(self, outfile: str) -> ProfileOptionBuilder:
        """Writes the text into this file."""
        return self._set(output=f"file:outfile={outfile}")

    def with_timeline_output(self, timeline_file: str) -> ProfileOptionBuilder:
        """Writes a trace for chrome://tracing into this file, with the step appended to its name."""
        return self._set(output=f"timeline:outfile={timeline_file}")

    def with_pprof_output(self, pprof_file: str) -> ProfileOptionBuilder:
        """Writes a profile for the tool pprof into this file; for the view 'code', with one attribute
        selected."""
        return self._set(output=f"pprof:outfile={pprof_file}")

    def order_by(self, attribute: str) -> ProfileOptionBuilder:
        """Sorts by this attribute: ``name``, or one that `select` takes, the greatest first."""
        return self._set(order_by=attribute)

    def select(self, attributes: Sequence[str]) -> ProfileOptionBuilder:
        """Shows these attributes: micros, bytes, peak_bytes, residual_bytes, output_bytes,
        accelerator_micros, cpu_micros, params, float_ops, device, op_types, occurrence, input_shapes."""
        return self._set(select=copy.copy(attributes))

    def with_step(self, step: int) -> ProfileOptionBuilder:
        """Shows this step of a `tf.profiler.Profiler`; -1 shows the average of all."""
        return self._set(step=step)

    def _set(self, **values: Any) -> ProfileOptionBuilder:
        self._options.update(values)
        return self


class Options:
    """Options as the views ask for them: each is an attribute, and one that was not given has its default."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.values: dict[str, Any] = {name: given.get(name, _DEFAULTS.get(name, 0)) for name in NAMES}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def output_kind(self) -> str:
        """One of `OUTPUTS`."""
        return str(self.output).partition(":")[0]

    @property
    def output_file(self) -> str:
        """The file to write; empty if there is none."""
        return str(self.output).partition("outfile=")[2]

    @cached_property
    def is_accounted(self) -> Callable[[str], bool]:
        """Whether a type is one of those that are counted."""
        return _matcher(self.account_type_regexes)

    @cached_property
    def starts(self) -> Callable[[str], bool]:
        """Whether the tree begins at this name."""
        return _matcher(self.start_name_regexes)

    @cached_property
    def trims(self) -> Callable[[str], bool]:
        """Whether nothing below this name is shown."""
        return _matcher(self.trim_name_regexes)

    @cached_property
    def shows_name(self) -> Callable[[str], bool]:
        """Whether this name is to be shown and not hidden."""
        shown, hidden = _matcher(self.show_name_regexes), _matcher(self.hide_name_regexes)
        return lambda name: shown(name) and not hidden(name)


def _matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    if ".*" in patterns:
        return lambda text: True
    compiled = [re.compile(pattern) for pattern in patterns]
    known: dict[str, bool] = {}

    def matches(text: str) -> bool:
        found = known.get(text)
        if found is None:
            found = known[text] = any(pattern.fullmatch(text) for pattern in compiled)
        return found

    return matches
