"""`tf.contrib.constrained_optimization`: an objective is minimised under inequality constraints."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

_ROOM = "flowstone.contrib.constrained_optimization"

__getattr__, __dir__ = package_names(
    globals(),
    {
        f"{_ROOM}.candidates": "find_best_candidate_distribution find_best_candidate_index",
        f"{_ROOM}.constrained_minimization_problem": "ConstrainedMinimizationProblem",
        f"{_ROOM}.constrained_optimizer": "ConstrainedOptimizer",
        f"{_ROOM}.external_regret_optimizer": "AdditiveExternalRegretOptimizer",
        f"{_ROOM}.swap_regret_optimizer": "AdditiveSwapRegretOptimizer MultiplicativeSwapRegretOptimizer",
    },
)
