"""`LocalCLIDebugWrapperSession`: a session that stops before and after its runs and takes commands.

Commands come from standard input, a line each; `help` lists them. `run` (dumped), `run -n`, `run -t TIMES`
and `run -f FILTER` go on; `lt`, `pt TENSOR`, `ni NODE`, `li NODE` and `lo NODE` show the run that has ended.
With `run -f has_inf_or_nan` runs go on until one has a tensor of which the filter is true; its dumps stay.
"""

from __future__ import annotations

import argparse
import cmd
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from flowstone.debugger.dump_folder import DebugDumpDir
from flowstone.debugger.dumps import has_inf_or_nan
from flowstone.debugger.wrapper_sessions import DebugWrapperSession
from flowstone.io import file_system

__all__ = ["LocalCLIDebugWrapperSession"]

Filter = Callable[[Any, Any], bool]


class _Choice(NamedTuple):
    """What the command `run` said of the next run."""

    no_debug: bool = False
    times: int = 1
    until: str = ""


class _CommandError(Exception):
    """A command's arguments are wrong; the message says how."""


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise _CommandError(f"{self.prog}: {message}")

    def exit(self, status: int = 0, message: str | None = None) -> Any:
        raise _CommandError(message or "")


class _Commands(cmd.Cmd):
    """The commands at one stop: `dump` is that of the run that has ended, None before the first."""

    prompt = "tfdbg> "

    def __init__(self, session: LocalCLIDebugWrapperSession, title: str, dump: DebugDumpDir | None) -> None:
        super().__init__()
        self.use_rawinput = sys.stdin.isatty()
        self._session, self._dump, self.intro = session, dump, title

    def onecmd(self, line: str) -> Any:
        try:
            return super().onecmd(line)
        except (_CommandError, ValueError, KeyError, LookupError) as error:
            print(error.args[0] if error.args else error)
            return False

    def emptyline(self) -> bool:
        return False

    def default(self, line: str) -> Any:
        if line == "EOF":
            return self.do_exit("")
        raise _CommandError(f"There is no command {line.split()[0]!r}: help lists them")

    # ---- going on

    def do_run(self, line: str) -> bool:
        """run [-n] [-t TIMES] [-f FILTER]: run, dumped; -n: not dumped; -t: dump the last of TIMES runs; -f:
        run until a tensor is found for which FILTER is true."""
        parser = _Arguments("run")
        parser.add_argument("-n", "--no_debug", action="store_true")
        parser.add_argument("-t", "--times", type=int, default=1)
        parser.add_argument("-f", "--till_filter_pass", default="")
        given = parser.parse_args(shlex.split(line))
        if given.till_filter_pass:
            self._session.filter_named(given.till_filter_pass)
        self._session.go_on(given.no_debug, given.times, given.till_filter_pass)
        return True

    do_r = do_run

    def do_exit(self, line: str) -> bool:
        """exit: leave the program."""
        self._session.leave()
        return True

    do_quit = do_exit

    # ---- what was dumped

    def _dumped(self) -> DebugDumpDir:
        if self._dump is None:
            raise _CommandError("No run has been dumped yet: run")
        return self._dump

    def do_lt(self, line: str) -> None:
        """lt [-f FILTER] [-n PATTERN]: list the dumped tensors, those of a filter or whose node matches."""
        parser = _Arguments("lt")
        parser.add_argument("-f", "--tensor_filter", default="")
        parser.add_argument("-n", "--node_name_filter", default="")
        given = parser.parse_args(shlex.split(line))
        dump = self._dumped()
        chosen = dump.dumped_tensor_data
        if given.tensor_filter:
            chosen = dump.find(self._session.filter_named(given.tensor_filter))
        names = [each for each in chosen if given.node_name_filter in each.node_name]
        print(f"{len(names)} dumped tensor(s):")
        for datum in names:
            kind = dump.node_op_type(datum.node_name) if dump.node_exists(datum.node_name) else ""
            micros = datum.timestamp - (dump.t0 or 0)
            print(f"[{micros / 1000:.3f}] {datum.dump_size_bytes:>8} B  {kind:20} {datum.tensor_name}")

    do_list_tensors = do_lt

    def do_pt(self, line: str) -> None:
        """pt TENSOR: print the values of a tensor, NODE or NODE:SLOT."""
        (name,) = self._words(line, 1)
        node, _, slot = name.partition(":")
        for key in self._dumped().debug_watch_keys(node):
            if not slot or key.startswith(f"{node}:{slot}:"):
                for datum in self._dumped().watch_key_to_data(key):
                    value = datum.get_tensor()
                    about = f"  dtype: {value.dtype}  shape: {value.shape}" if hasattr(value, "dtype") else ""
                    print(f'Tensor "{key}":{about}\n{value}')

    do_print_tensor = do_pt

    def do_ni(self, line: str) -> None:
        """ni NODE: the op, device, inputs and recipients of a node, and where the program made it."""
        (node,) = self._words(line, 1)
        dump = self._dumped()
        print(f"Node {node}\n\n  Op: {dump.node_op_type(node)}\n  Device: {dump.node_device(node)}")
        print(f"  Inputs: {', '.join(dump.node_inputs(node)) or '-'}")
        print(f"  Recipients: {', '.join(dump.node_recipients(node)) or '-'}")
        for file, number, function, text in dump.node_traceback(node):
            print(f"    {file}:{number} in {function}: {text or ''}")

    do_node_info = do_ni

    def do_li(self, line: str) -> None:
        """li NODE: list the nodes whose outputs a node takes."""
        (node,) = self._words(line, 1)
        print("\n".join(self._dumped().node_inputs(node)))

    do_list_inputs = do_li

    def do_lo(self, line: str) -> None:
        """lo NODE: list the nodes that take a node's outputs."""
        (node,) = self._words(line, 1)
        print("\n".join(self._dumped().node_recipients(node)))

    do_list_outputs = do_lo

    def do_ri(self, line: str) -> None:
        """ri: what is fetched and fed."""
        print(self._session.about_run())

    do_run_info = do_ri

    @staticmethod
    def _words(line: str, count: int) -> list[str]:
        words = shlex.split(line)
        if len(words) != count:
            raise _CommandError(f"The command takes {count} argument(s), not {len(words)}")
        return words


class LocalCLIDebugWrapperSession(DebugWrapperSession):
    """A session that asks before each run what to do, and after a dumped one what to show.

    Args:
        sess: the session.
        dump_root: the folder for dumps; None for a temporary one. ValueError if it is a file, or not empty.
        ui_type: "curses" or "readline": both are lines here. ValueError for others.
        thread_name_filter: see `DebugWrapperSession`.
    """

    def __init__(
        self,
        sess: Any,
        dump_root: str | None = None,
        log_usage: bool = True,
        ui_type: str = "curses",
        thread_name_filter: str | None = None,
        config_file_path: Any = False,
    ) -> None:
        super().__init__(sess, thread_name_filter)
        if ui_type not in ("curses", "readline"):
            raise ValueError(f"ui_type must be 'curses' or 'readline', not {ui_type!r}")
        if dump_root is not None and file_system.file_exists(dump_root):
            if not file_system.is_directory(dump_root):
                raise ValueError(f"dump_root path points to a file: {dump_root}")
            if file_system.list_directory(dump_root):
                raise ValueError(f"dump_root path points to a non-empty directory: {dump_root}")
        self._dump_root = dump_root or tempfile.mkdtemp(prefix="tfdbg_")
        self._filters: dict[str, Filter] = {}
        self.add_tensor_filter("has_inf_or_nan", has_inf_or_nan)
        self._choice: _Choice | None = None  # of the next run; None asks before it
        self._leaves = False
        self._about = ""

    # ---- filters

    def add_tensor_filter(self, filter_name: str, tensor_filter: Filter) -> None:
        """Adds a filter for `run -f` and `lt -f`: a function of a DebugTensorDatum and its value.

        Raises TypeError for a name that is no text or a filter that cannot be called, ValueError for an empty
        name.
        """
        if not isinstance(filter_name, str):
            raise TypeError("Input argument filter_name is expected to be str, but is not.")
        if not filter_name:
            raise ValueError("Input argument filter_name cannot be empty.")
        if not callable(tensor_filter):
            raise TypeError("Input argument tensor_filter is expected to be callable, but is not.")
        self._filters[filter_name] = tensor_filter

    def filter_named(self, name: str) -> Filter:
        """The filter of that name. ValueError if there is none."""
        if name not in self._filters:
            raise ValueError(f"There is no tensor filter named {name!r}, but {', '.join(self._filters)}")
        return self._filters[name]

    # ---- what commands say

    def go_on(self, no_debug: bool, times: int, until: str) -> None:
        """Runs next: not dumped, or the last of so many runs, or until a filter passes."""
        self._choice = _Choice(no_debug, times, until)

    def leave(self) -> None:
        """Ends the program after the commands."""
        self._leaves = True

    def about_run(self) -> str:
        """What the present run fetches and feeds."""
        return self._about

    # ---- runs

    def _folder_of_run(self, fetches: Any, feed_dict: Any) -> str | None:
        feeds = ", ".join(str(getattr(key, "name", key)) for key in feed_dict or {}) or "none"
        self._about = f"run #{self._run_call_count}: fetches {fetches!r}; feeds: {feeds}"
        if self._choice is None:
            self._stop(f"{self._about}\n`run` goes on, `help` lists the commands.", None)
        choice = self._choice or _Choice()
        if not choice.until:
            is_last = choice.no_debug or choice.times <= 1
            self._choice = None if is_last else choice._replace(times=choice.times - 1)
            if choice.no_debug or not is_last:
                return None
        return os.path.join(self._dump_root, f"run_{time.time_ns() // 1000}_{self._run_call_count}")

    def _after_run(self, folder: str, error: Exception | None) -> None:
        dump = DebugDumpDir(folder, validate=False)
        dump.set_python_graph(self.graph)
        title = f"run #{self._run_call_count} has ended: {dump.size} tensors in {folder}"
        if error is not None:
            title = f"run #{self._run_call_count} has failed: {error}\n{dump.size} tensors in {folder}"
        elif self._choice is not None and self._choice.until:
            found = dump.find(self._filters[self._choice.until], first_n=1)
            if not found:
                file_system.delete_recursively(folder)
                return
            title += f"\nthe filter {self._choice.until} passed first for {found[0].tensor_name}"
        self._choice = None
        self._stop(title, dump)

    def _stop(self, title: str, dump: DebugDumpDir | None) -> None:
        _Commands(self, title, dump).cmdloop()
        if self._leaves:
            self.close()
            sys.exit(1)
