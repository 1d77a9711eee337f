"""Benchmarks written as classes: methods ``benchmark…`` of subclasses of `Benchmark`, run by
``--benchmarks=pattern``.
"""

from __future__ import annotations

import inspect
import re
import sys
import time
from typing import Any

__all__ = ["Benchmark"]

_registered: list[type] = []


class Benchmark:
    """The base of benchmarks. `report_benchmark` prints a result, `run_op_benchmark` measures a step and
    prints the result.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _registered.append(cls)

    @classmethod
    def is_abstract(cls) -> bool:
        """Whether it is `Benchmark` itself, which has nothing to run."""
        return cls is Benchmark

    def _benchmark_name(self, name: str | None) -> str:
        if name is None:
            frame = inspect.currentframe()
            while frame is not None:
                if frame.f_locals.get("self") is self and frame.f_code.co_name.startswith("benchmark"):
                    name = frame.f_code.co_name
                    break
                frame = frame.f_back
        return f"{type(self).__name__}.{name or 'benchmark'}"

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: dict[str, Any] | None = None,
        name: str | None = None,
        metrics: list[dict[str, Any]] | None = None,
    ) -> None:
        """Prints a result: times in seconds per iteration, throughput in MB/s, extras as they are."""
        figures: dict[str, Any] = {
            "iters": iters,
            "cpu_time": cpu_time,
            "wall_time": wall_time,
            "throughput": throughput,
        }
        figures |= {**(extras or {}), **({"metrics": metrics} if metrics else {})}
        text = ", ".join(f"{key}: {value}" for key, value in figures.items() if value is not None)
        print(f"{self._benchmark_name(name)}: {text}", file=sys.stderr)

    def run_op_benchmark(
        self,
        sess: Any,
        op_or_tensor: Any,
        feed_dict: Any = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        store_trace: bool = False,
        store_memory_usage: bool = True,
        name: str | None = None,
        extras: dict[str, Any] | None = None,
        mbs: float = 0,
    ) -> dict[str, Any]:
        """Runs a step `burn_iters` times, then `min_iters` times, and reports the median.

        Returns ``iters``, ``wall_time`` in seconds, ``extras`` (with the distribution), ``name`` and
        ``throughput`` in MB/s if a step handles `mbs` megabytes. The value itself is not fetched.
        """
        target = getattr(op_or_tensor, "op", op_or_tensor)
        for _ in range(burn_iters):
            sess.run(target, feed_dict=feed_dict)
        times = []
        for _ in range(min_iters):
            start = time.perf_counter()
            sess.run(target, feed_dict=feed_dict)
            times.append(time.perf_counter() - start)
        times.sort()
        median = times[len(times) // 2] if times else -1.0
        spread = (
            {"wall_time_mean": sum(times) / len(times), "wall_time_stdev": _deviation(times)} if times else {}
        )
        result: dict[str, Any] = {
            "iters": min_iters,
            "wall_time": median,
            "extras": {**(extras or {}), **spread},
            "name": self._benchmark_name(name),
            "throughput": mbs / median if median > 0 else 0.0,
        }
        self.report_benchmark(
            iters=min_iters,
            wall_time=median,
            throughput=result["throughput"],
            extras=result["extras"],
            name=name,
        )
        return result


def _deviation(times: list[float]) -> float:
    mean = sum(times) / len(times)
    return float((sum((t - mean) ** 2 for t in times) / len(times)) ** 0.5)


def run_benchmarks(pattern: str) -> list[str]:
    """Runs the benchmarks whose ``Class.method`` matches a regular expression ("all" or ".": all); returns
    their names.
    """
    expression = re.compile(".*" if pattern == "all" else pattern)
    names = []
    for cls in _registered:
        for method in sorted(name for name in dir(cls) if name.startswith("benchmark")):
            name = f"{cls.__name__}.{method}"
            if expression.search(name) and callable(getattr(cls, method)):
                getattr(cls(), method)()
                names.append(name)
    return names
