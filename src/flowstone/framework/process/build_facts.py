"""Where the package is and how it was built. Kernels are torch's: flags for compilers are those for it."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any

import torch

__all__ = [
    "CXX11_ABI_FLAG", "CXX_VERSION", "MONOLITHIC_BUILD", "get_build_info", "get_compile_flags", "get_include",
    "get_lib", "get_link_flags",
]  # fmt: skip

CXX11_ABI_FLAG = int(torch.compiled_with_cxx11_abi())
"""1 if torch's libraries have the C++ 11 ABI of texts and lists, else 0."""
CXX_VERSION = 201703
"""The C++ standard that torch's headers need."""
MONOLITHIC_BUILD = 0
"""0: the libraries are separate files."""


def get_include() -> str:
    """The folder of the C++ headers that kernels outside are compiled with: torch's."""
    return os.path.join(os.path.dirname(torch.__file__), "include")


def get_lib() -> str:
    """The folder of the libraries that kernels outside are linked with: torch's."""
    return os.path.join(os.path.dirname(torch.__file__), "lib")


def get_compile_flags() -> list[str]:
    """A compiler's arguments for kernels outside."""
    return [f"-I{get_include()}", f"-D_GLIBCXX_USE_CXX11_ABI={CXX11_ABI_FLAG}", "--std=c++17"]


def get_link_flags() -> list[str]:
    """A linker's arguments for kernels outside."""
    return [f"-L{get_lib()}", "-ltorch", "-lc10"]


def get_build_info() -> Any:
    """An ordered dict: `is_cuda_build`, `is_rocm_build`, `is_tensorrt_build`, and CUDA's version if any."""
    found: OrderedDict[str, Any] = OrderedDict()
    if torch.version.cuda is not None:
        found["cuda_version"] = torch.version.cuda
    found["is_cuda_build"] = torch.version.cuda is not None
    found["is_rocm_build"] = getattr(torch.version, "hip", None) is not None
    found["is_tensorrt_build"] = False
    return found
