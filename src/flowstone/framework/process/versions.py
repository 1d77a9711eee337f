"""What this library calls itself.

Programs compare `VERSION` with TensorFlow's releases, so it names the release whose Python interface is
followed; flowstone's own is `FLOWSTONE_VERSION`.
"""

from __future__ import annotations

import platform

VERSION = "1.15.0"
FLOWSTONE_VERSION = "0.1.0"
GIT_VERSION = f"flowstone-{FLOWSTONE_VERSION}"
COMPILER_VERSION = f"{platform.python_implementation()} {platform.python_version()}"

# Of the graphs that are written here: those of TensorFlow 1.4.
GRAPH_DEF_VERSION = 24
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
