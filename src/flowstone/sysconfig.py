"""`flowstone.sysconfig`: where the package is, and how it was built."""

from flowstone.framework.process.build_facts import (
    CXX11_ABI_FLAG,
    CXX_VERSION,
    MONOLITHIC_BUILD,
    get_build_info,
    get_compile_flags,
    get_include,
    get_lib,
    get_link_flags,
)
