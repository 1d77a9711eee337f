"""LLVM, as the package llvmlite brings it, by the functions in C of its library.

llvmlite's own module for Python loads in 27 ms, while the library takes 7, and lets one thread at a time into
it. Here every call has an LLVM context to itself, so that threads compile at once, and the interpreter's lock
is free meanwhile. The functions are those of llvmlite 0.50, which alone the package may be installed with.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import pathlib
import sys
import threading
from collections.abc import Sequence
from typing import Any

__all__ = ["EVERY", "object_code", "processor"]

EVERY = ("every pass",)
"""In the place of passes: all that LLVM has for a level, but for those that make vectors."""
_PREFIX = "LLVMPY_"
_Text, _Texts = ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)
_Address, _Number = ctypes.c_void_p, ctypes.c_int
_FUNCTIONS: dict[str, tuple[Any, ...]] = {  # what each gives and takes
    "InitializeNativeTarget": (None,),
    "InitializeNativeAsmPrinter": (None,),
    "GetHostCPUName": (None, _Texts),
    "GetHostCPUFeatures": (_Number, _Texts),
    "GetDefaultTargetTriple": (None, _Texts),
    "DisposeString": (None, _Text),
    "ContextCreate": (_Address,),
    "ContextDispose": (None, _Address),
    "ParseAssembly": (_Address, _Address, _Text, _Texts),
    "VerifyModule": (ctypes.c_bool, _Address, _Texts),
    "DisposeModule": (None, _Address),
    "GetTargetFromTriple": (_Address, _Text, _Texts),
    "CreateTargetMachine": (
        _Address, _Address, _Text, _Text, _Text, _Number, _Text, _Text, _Number, _Number, _Text
    ),
    "DisposeTargetMachine": (None, _Address),
    "CreatePipelineTuningOptions": (_Address,),
    "PTOSetLoopVectorization": (None, _Address, ctypes.c_bool),
    "PTOSetSLPVectorization": (None, _Address, ctypes.c_bool),
    "DisposePipelineTuningOptions": (None, _Address),
    "CreatePassBuilder": (_Address, _Address, _Address),
    "DisposePassBuilder": (None, _Address),
    "CreateNewModulePassManager": (_Address,),
    "buildPerModuleDefaultPipeline": (_Address, _Address, _Number),
    "module_AddSROAPass": (None, _Address),
    "module_AddSimplifyCFGPass": (None, _Address),
    "module_AddInstCombinePass": (None, _Address),
    "RunNewModulePassManager": (None, _Address, _Address, _Address),
    "DisposeNewModulePassManger": (None, _Address),
    "TargetMachineEmitToMemory": (_Address, _Address, _Address, _Number, _Texts),
    "GetBufferStart": (_Address, _Address),
    "GetBufferSize": (ctypes.c_size_t, _Address),
    "DisposeMemoryBuffer": (None, _Address),
}  # fmt: skip
_found: dict[str, Any] = {}
_lock = threading.Lock()


def processor() -> tuple[str, str]:
    """The host's processor and its features, in order, as LLVM calls them."""
    name, features = _told("GetHostCPUName")[1], _told("GetHostCPUFeatures")[1]
    return name, ",".join(sorted(features.split(","), key=lambda feature: feature[1:]))


def object_code(text: str, target: tuple[str, str], level: int, passes: Sequence[str]) -> bytes:
    """A relocatable file of what LLVM's text says, for a processor and its features, by these of LLVM's
    passes (``SROA``, ``SimplifyCFG``, ``InstCombine``, or EVERY) and its code generator at a level, 0 to 3.

    Raises RuntimeError where LLVM refuses the text, of which it asks more at levels above 0.
    """
    with contextlib.ExitStack() as end:

        def made(disposes: str, name: str, *arguments: Any) -> Any:
            address = _made(name, *arguments)
            end.callback(_call, disposes, address)
            return address

        context = made("ContextDispose", "ContextCreate")
        module = made("DisposeModule", "ParseAssembly", context, text.encode())
        if level:
            is_wrong, why = _told("VerifyModule", module)
            if is_wrong:
                raise RuntimeError(why)
        machine = made("DisposeTargetMachine", "CreateTargetMachine", *_described(target, level))
        options = made("DisposePipelineTuningOptions", "CreatePipelineTuningOptions")
        for name in ("LoopVectorization", "SLPVectorization"):
            _call(f"PTOSet{name}", options, False)
        builder = made("DisposePassBuilder", "CreatePassBuilder", machine, options)
        how: tuple[Any, ...] = ("CreateNewModulePassManager",)
        if passes is EVERY:
            how = ("buildPerModuleDefaultPipeline", builder, level)
        manager = made("DisposeNewModulePassManger", *how)
        for name in passes if passes is not EVERY else ():
            _call(f"module_Add{name}Pass", manager)
        _call("RunNewModulePassManager", manager, module, builder)
        buffer = made("DisposeMemoryBuffer", "TargetMachineEmitToMemory", machine, module, 1)
        return ctypes.string_at(_call("GetBufferStart", buffer), _call("GetBufferSize", buffer))


def _described(target: tuple[str, str], level: int) -> tuple[Any, ...]:
    """The arguments that describe the machine to LLVM: this system, with addresses of 64 bits."""
    triple = _told("GetDefaultTargetTriple")[1]
    found = _made("GetTargetFromTriple", triple.encode())
    form = f"{triple}-elf" if os.name == "nt" else triple
    return (found, form.encode(), *[x.encode() for x in target], level, b"default", b"jitdefault", 0, 0, b"")


def _made(name: str, *arguments: Any) -> Any:
    """The address of what a function makes; RuntimeError if it makes nothing."""
    address, why = (
        _told(name, *arguments) if _FUNCTIONS[name][-1] is _Texts else (_call(name, *arguments), "")
    )
    if not address:
        raise RuntimeError(why or name)
    return address


def _told(name: str, *arguments: Any) -> tuple[Any, str]:
    """The result of a function that takes a place for a text at last, and the text."""
    text = ctypes.c_char_p()
    try:
        return _call(name, *arguments, ctypes.byref(text)), (text.value or b"").decode()
    finally:
        if text:
            _call("DisposeString", text)


def _call(name: str, *arguments: Any) -> Any:
    if not _found:
        with _lock:
            if not _found:
                _found.update(_loaded())
    return _found[name](*arguments)


def _loaded() -> dict[str, Any]:
    """The library's functions, with LLVM ready to write code for this machine."""
    package = importlib.util.find_spec("llvmlite")
    assert package is not None and package.origin is not None
    names = {"darwin": "libllvmlite.dylib", "win32": "llvmlite.dll"}
    file = pathlib.Path(package.origin).parent / "binding" / names.get(sys.platform, "libllvmlite.so")
    library = ctypes.CDLL(str(file))
    found = {}
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, _PREFIX + name)
        function.restype, function.argtypes = result, arguments
        found[name] = function
    found["InitializeNativeTarget"]()
    found["InitializeNativeAsmPrinter"]()
    return found
