"""The native tier: what graphs compute as machine code of our own (white paper, section 10).

It stands between partition and lowering and knows neither graphs nor sessions. A room's values say what can
be compiled (a `Cluster` of typed element-wise steps, a `Program`, an `Update`, a `Product`), `…_code.py` is
the text that LLVM compiles of it, and `…_kernels.py` or `kernels.py` the function of Python around the
machine code. A kernel works at once, by the ATen calls that it is given, and by machine code once that is
compiled; results are the same within the units in the last place that `numerics/transcendental.py` states.

The rooms, each of which imports only from those before it: `codegen` (`emitter.py` and `structured.py` write
LLVM's text, `compiler.py` and `llvm.py` compile it, `object_code.py` loads what is in the cache without LLVM,
`making.py` says which thread makes what, and when, `host.py` knows this processor and torch), `numerics`,
`clusters`, `products`, `matrices` and `randomness`, `networks`, `images` and `arrays`, `programs`, `updates`.
`offers.py` fills the slots by which kernels of the rooms below use what is here.

Where a part of this is missing, `codegen/host.reason()` says so, and graphs are planned without machine code.
"""
