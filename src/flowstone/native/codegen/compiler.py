"""From LLVM's text to addresses of machine code.

Object code is kept on disk under the hash of its text, the processor and the versions, so that a program's
second start compiles nothing, and does not even load LLVM where `object_code.py` can load the code. A damaged
or unwritable cache costs time, and nothing else. Code that is made `quickly` takes a quarter of the time,
runs slower, and computes the same bits: no text allows LLVM to reorder or to contract arithmetic. It is the
code of the functions that are asked for, and of those that they call.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flowstone.framework import flags
from flowstone.native.codegen import host, llvm, object_code

__all__ = ["Module", "compiled", "idle_s", "kept", "reachable"]

_VERSION = "1"  # of what the text means to this file
_LEVEL, _QUICK_LEVEL = 2, 0
_PASSES = ("SROA", "SimplifyCFG", "InstCombine")
_BEGIN, _END = re.compile(r"\n *define "), re.compile(r"\n *}(?=\n|$)")  # of functions
_NAME = re.compile(r"@([\w.]+)")
NO_PARTS: Mapping[str, Any] = {}
_symbols_lock = threading.Lock()


class Module:
    """Machine code that stays loaded as long as the object lives; `address(name)` of each function.
    `is_quick`: it was made quickly."""

    def __init__(self, owner: Any, addresses: Mapping[str, int]) -> None:
        self._owner, self._addresses = owner, addresses
        self.is_quick = False
        self.parts: Sequence[Module] = ()  # others whose functions it calls

    def address(self, name: str) -> int:
        """Where the function of this name begins."""
        return self._addresses[name]


def compiled(
    text: str,
    names: Sequence[str],
    is_rough: bool = False,
    quickly: bool = False,
    parts: Mapping[str, Module] = NO_PARTS,
    runs_once: bool = False,
) -> Module:
    """The functions `names` of a module of LLVM's text as machine code. A text that `is_rough` goes through
    all of LLVM's passes. Any other already says what is to be done in which order, and takes less than half
    the time: its variables become registers, its instructions get their simplest forms. `quickly`: code that
    is not in the cache is made with as little work as possible. Where a call runs each instruction but once
    (`runs_once`), the variables of such code stay in memory: to find registers for them takes as long as all
    else. `parts`: the modules of functions that it declares and that are in no library.

    Raises RuntimeError where LLVM refuses the text, which is a defect of whoever wrote it.
    """
    if quickly:
        _Making.asked = time.monotonic()
    path = _path(text, is_rough)
    others = _addresses(parts)
    found = _from_file(path, names, others)
    if found is None and quickly:
        place = _quick(path, names)
        found = _from_file(place, names, others)
        if found is None:
            passes = () if runs_once else _PASSES[:1]
            found = _made(reachable(text, names), names, place, _QUICK_LEVEL, passes, others)
        found.is_quick = True
    elif found is None:
        found = _made(text, names, path, _LEVEL, llvm.EVERY if is_rough else _PASSES, others)
        with contextlib.suppress(OSError):
            for old in path.parent.glob(f"{path.stem}.*.quick.o"):
                old.unlink(missing_ok=True)
    found.parts = tuple(parts.values())
    found.is_quick = found.is_quick or any(part.is_quick for part in found.parts)
    return found


def kept(
    text: str, names: Sequence[str], is_rough: bool = False, parts: Mapping[str, Module] = NO_PARTS
) -> Module | None:
    """The same as far as the cache has it."""
    found = _from_file(_path(text, is_rough), names, _addresses(parts))
    if found is not None:
        found.parts = tuple(parts.values())
    return found


def _addresses(parts: Mapping[str, Module]) -> dict[str, int]:
    return {name: part.address(name) for name, part in parts.items()}


def idle_s() -> float:
    """Seconds since something was last compiled quickly, or looked for to be."""
    return time.monotonic() - _Making.asked


def reachable(text: str, names: Sequence[str]) -> str:
    """The text without functions that neither are named nor called by those that stay."""
    pieces = list(_pieces("\n" + text))
    texts = {name: piece for name, piece in pieces if name}
    kept = {name for name in names if name in texts}
    waiting = list(kept)
    while waiting:
        called = texts.keys() & set(_NAME.findall(texts[waiting.pop()])) - kept
        kept |= called
        waiting += called
    return "".join([piece for name, piece in pieces if not name or name in kept])[1:]


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """The functions by their names, and what is between them, without one. (One expression for a whole
    function takes ten times as long, as it looks for the end at each character.)"""
    end = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < end:
            continue
        yield "", text[end : begin.start()]
        closed = _END.search(text, begin.end())
        end = closed.end() if closed else len(text)
        function = text[begin.start() : end]
        yield _NAME.findall(function.partition("{")[0])[0], function
    yield "", text[end:]


def _from_file(path: pathlib.Path, names: Sequence[str], others: Mapping[str, int]) -> Module | None:
    code = _read(path)
    if code is None:
        return None
    try:
        return _loaded(code, names, others)
    except Exception:
        path.unlink(missing_ok=True)
        return None


def _made(
    text: str,
    names: Sequence[str],
    path: pathlib.Path,
    level: int,
    passes: Sequence[str],
    others: Mapping[str, int],
) -> Module:
    with _Making():
        code = llvm.object_code(text, host.features(), level, passes)
    _write(path, code)
    return _loaded(code, names, others)


def _loaded(code: bytes, names: Sequence[str], others: Mapping[str, int] = NO_PARTS) -> Module:
    symbols = {**host.symbols(), **others} if others else host.symbols()
    try:
        return Module(*object_code.loaded(code, symbols, names))
    except object_code.Unsupported:
        return _loaded_by_llvm(code, names, others)


def _loaded_by_llvm(code: bytes, names: Sequence[str], others: Mapping[str, int] = NO_PARTS) -> Module:
    from llvmlite import binding

    with _Making(), _symbols_lock:  # LLVM has one address of a name
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        for name, address in {**host.symbols(), **others}.items():
            binding.add_symbol(name, address)
        cpu, features = host.features()
        machine = binding.Target.from_default_triple().create_target_machine(cpu=cpu, features=features)
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        engine.add_object_file(binding.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return Module(engine, {name: int(engine.get_function_address(name)) for name in names})


# ---- forks


class _Making:
    """While LLVM works. A child must not begin in the middle of that: a fork waits for the end of it, and
    what would begin meanwhile waits for the fork."""

    asked = 0.0  # when code was last wanted quickly
    _condition = threading.Condition()
    _at_work = 0

    def __enter__(self) -> None:
        with _Making._condition:
            _Making._at_work += 1

    def __exit__(self, *_: object) -> None:
        with _Making._condition:
            _Making._at_work -= 1
            _Making._condition.notify_all()

    @classmethod
    def hold(cls) -> None:
        """Before a fork."""
        cls._condition.acquire()
        cls._condition.wait_for(lambda: not cls._at_work)

    @classmethod
    def go_on(cls) -> None:
        """After a fork, in either process."""
        cls._condition.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_Making.hold, after_in_parent=_Making.go_on, after_in_child=_Making.go_on)


# ---- the cache


def _path(text: str, is_rough: bool) -> pathlib.Path:
    words = [_VERSION, str(is_rough), host.llvm_version(), *host.features(), text]
    name = hashlib.sha256("\0".join(words).encode()).hexdigest()
    return pathlib.Path(flags.CACHE).expanduser() / "flowstone" / "native" / f"{name[:40]}.o"


def _quick(path: pathlib.Path, names: Sequence[str]) -> pathlib.Path:
    """Where code of these functions that was made quickly is kept."""
    return path.with_suffix(f".{'-'.join(names)}.quick.o")


def _read(path: pathlib.Path) -> bytes | None:
    """The object code of the file, which ends with its hash; None if there is none, or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    code, digest = content[:-32], content[-32:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(path: pathlib.Path, code: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(code + hashlib.sha256(code).digest())
        os.replace(name, path)
    except OSError:
        return
