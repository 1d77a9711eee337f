"""The native tier: clusters of small operations as machine code of our own (white paper, section 10).

It stands between partition and lowering and knows neither graphs nor sessions. `clusters.py` says what can be
compiled: a `Cluster` of typed element-wise steps. `kernels.py` makes a function of Python of it, which works
at once, by the ATen calls that it is given, and by machine code once that is compiled; results are the same
within the units in the last place that `transcendental.py` states. Below these, each by its own:
`elements.py` (what each operation means for one vector), `emitter.py` (LLVM's text), `loop_code.py` (a
cluster's loops over rows and columns, and the team of threads), `entry_points.py` (functions that CPython
calls with tensors), `llvm.py` (llvmlite's library), `compiler.py` (the cache on disk), `making.py` (which
thread makes what, and when), `object_code.py` (what is in the cache without LLVM) and `host.py` (this
processor and torch).

Where a part of this is missing, `host.reason()` says so, and graphs are planned without clusters.
"""
