"""From LLVM's text to addresses of machine code; the only file that imports llvmlite.

Object code is kept on disk under the hash of its text, the processor and the versions, so that a program's
second start compiles nothing, and does not even load LLVM where `object_code.py` can load the code. A damaged
or unwritable cache costs time, and nothing else. Code that is made `quickly` takes a third of the time, runs
slower, and computes the same bits: no text allows LLVM to reorder or to contract arithmetic.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from flowstone.framework import flags
from flowstone.native import host, object_code

__all__ = ["Module", "compiled"]

_LOCK = threading.Lock()
_VERSION = "1"  # of what the text means to this file
_LEVEL, _QUICK_LEVEL = 2, 0


class Module:
    """Machine code that stays loaded as long as the object lives; `address(name)` of each function.
    `is_quick`: it was made quickly."""

    def __init__(self, owner: Any, addresses: Mapping[str, int]) -> None:
        self._owner, self._addresses = owner, addresses
        self.is_quick = False

    def address(self, name: str) -> int:
        """Where the function of this name begins."""
        return self._addresses[name]


@functools.cache
def _llvm() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for name, address in host.symbols().items():
        binding.add_symbol(name, address)
    return binding


def _machine(level: int = _LEVEL) -> Any:
    name, features = host.features()
    target = _llvm().Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, opt=level)


def compiled(text: str, names: Sequence[str], is_rough: bool = False, quickly: bool = False) -> Module:
    """The functions `names` of a module of LLVM's text as machine code. A text that `is_rough` goes through
    all of LLVM's passes. Any other already says what is to be done in which order, and takes less than half
    the time: its variables become registers, its instructions get their simplest forms. `quickly`: code that
    is not in the cache is made with as little work as possible.

    Raises RuntimeError where LLVM refuses the text, which is a defect of whoever wrote it.
    """
    path = _path(text, is_rough)
    found = _from_file(path, names)
    if found is not None:
        return found
    if quickly:
        found = _from_file(_quick(path), names) or _made(text, names, _quick(path), is_rough, True)
        found.is_quick = True
        return found
    found = _made(text, names, path, is_rough, False)
    with contextlib.suppress(OSError):
        _quick(path).unlink(missing_ok=True)
    return found


def _from_file(path: pathlib.Path, names: Sequence[str]) -> Module | None:
    code = _read(path)
    if code is None:
        return None
    try:
        return _loaded(code, names)
    except Exception:
        path.unlink(missing_ok=True)
        return None


def _made(text: str, names: Sequence[str], path: pathlib.Path, is_rough: bool, quickly: bool) -> Module:
    with _LOCK:
        code = _quick_code(text) if quickly else _object_code(text, is_rough)
    _write(path, code)
    return _loaded(code, names)


def _quick_code(text: str) -> bytes:
    llvm, machine = _llvm(), _machine(_QUICK_LEVEL)
    module = llvm.parse_assembly(text)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(_QUICK_LEVEL)))
    return bytes(machine.emit_object(module))


def _object_code(text: str, is_rough: bool) -> bytes:
    llvm, machine = _llvm(), _machine()
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(_LEVEL)
    options.loop_vectorization = options.slp_vectorization = False  # the text is in vectors already
    builder = llvm.create_pass_builder(machine, options)
    if is_rough:
        passes = builder.getModulePassManager()
    else:
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
    passes.run(module, builder)
    return bytes(machine.emit_object(module))


def _loaded(code: bytes, names: Sequence[str]) -> Module:
    try:
        return Module(*object_code.loaded(code, host.symbols(), names))
    except object_code.Unsupported:
        return _loaded_by_llvm(code, names)


def _loaded_by_llvm(code: bytes, names: Sequence[str]) -> Module:
    with _LOCK:
        llvm = _llvm()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return Module(engine, {name: int(engine.get_function_address(name)) for name in names})


if hasattr(os, "register_at_fork"):  # a child must not begin in the middle of LLVM's work
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


# ---- the cache


def _path(text: str, is_rough: bool) -> pathlib.Path:
    words = [_VERSION, str(is_rough), host.llvm_version(), *host.features(), text]
    name = hashlib.sha256("\0".join(words).encode()).hexdigest()
    return pathlib.Path(flags.CACHE).expanduser() / "flowstone" / "native" / f"{name[:40]}.o"


def _quick(path: pathlib.Path) -> pathlib.Path:
    """Where code that was made quickly is kept."""
    return path.with_suffix(".quick.o")


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
