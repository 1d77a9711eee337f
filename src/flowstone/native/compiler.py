"""From LLVM's text to addresses of machine code; the only file that imports llvmlite.

Object code is kept on disk under the hash of its text, the processor and the versions, so that a program's
second start compiles nothing, and does not even load LLVM where `object_code.py` can load the code. A damaged
or unwritable cache costs time, and nothing else.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from flowstone.framework import flags
from flowstone.native import host, object_code

__all__ = ["Module", "compiled", "kept"]

_Key = TypeVar("_Key")
_LOCK = threading.Lock()
_VERSION = "1"  # of what the text means to this file
_LEVEL = 2


class Module:
    """Machine code that stays loaded as long as the object lives; `address(name)` of each function."""

    def __init__(self, owner: Any, addresses: Mapping[str, int]) -> None:
        self._owner, self._addresses = owner, addresses

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


def _machine() -> Any:
    name, features = host.features()
    target = _llvm().Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, opt=_LEVEL)


def compiled(text: str, names: Sequence[str], is_rough: bool = False) -> Module:
    """The functions `names` of a module of LLVM's text as machine code. A text that `is_rough` goes through
    all of LLVM's passes. Any other already says what is to be done in which order, and takes less than half
    the time: its variables become registers, its instructions get their simplest forms.

    Raises RuntimeError where LLVM refuses the text, which is a defect of whoever wrote it.
    """
    path = _path(text, is_rough)
    with _LOCK:
        found = _read(path)
        if found is not None:
            try:
                return _loaded(found, names)
            except Exception:
                path.unlink(missing_ok=True)
        made = _object_code(text, is_rough)
        _write(path, made)
        return _loaded(made, names)


def kept(modules: dict[_Key, Module], key: _Key, make: Callable[[], Module]) -> Module:
    """The module of this key, which is made if there is none. Of two threads that make it, both use that of
    the first: the other's is freed."""
    return modules.get(key) or modules.setdefault(key, make())


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
    llvm = _llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Module(engine, {name: int(engine.get_function_address(name)) for name in names})


# ---- the cache


def _path(text: str, is_rough: bool) -> pathlib.Path:
    words = [_VERSION, str(is_rough), host.llvm_version(), *host.features(), text]
    name = hashlib.sha256("\0".join(words).encode()).hexdigest()
    return pathlib.Path(flags.CACHE).expanduser() / "flowstone" / "native" / f"{name[:40]}.o"


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
