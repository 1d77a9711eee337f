"""Where the names of `tensorflow.contrib.…` are found: the table behind its alias modules.

`module_names.txt` lists which modules TensorFlow 1.4 and 1.15 had. A package `tensorflow.contrib.NAME` that
is here is the package `flowstone.contrib.NAME` itself. The names of a module within it are looked up in the
file of the module's own name, then in the package: those of `tf.contrib.rnn.python.ops.core_rnn_cell` in
`flowstone.contrib.rnn.core_rnn_cell`, then in `flowstone.contrib.rnn`. A folder of the package keeps its
modules: `tf.contrib.slim.python.slim.nets.vgg` is `flowstone.contrib.slim.nets.vgg`, and
`tf.contrib.gan.python.eval.python.summaries_impl` is `flowstone.contrib.gan.eval.summaries`. `ELSEWHERE`
lists the modules whose names lie elsewhere.

    >>> find_contrib_sources("tensorflow.contrib.rnn.python.ops.core_rnn_cell")
    ('flowstone.contrib.rnn.core_rnn_cell', 'flowstone.contrib.rnn')
    >>> find_contrib_sources("tensorflow.contrib.nonsense") is None
    True
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["ELSEWHERE", "find_contrib_sources", "is_ours", "module_names"]

_ROOT = "tensorflow.contrib"

# The module's name below tensorflow.contrib, and the modules of flowstone that have its names.
ELSEWHERE: dict[str, str] = {
    "boosted_trees.proto.learner_pb2": "io.proto.learner_pb2",
    "boosted_trees.proto.quantiles_pb2": "io.proto.quantiles_pb2",
    "boosted_trees.proto.split_info_pb2": "io.proto.split_info_pb2",
    "boosted_trees.proto.tree_config_pb2": "io.proto.tree_config_pb2",
    "decision_trees.proto.generic_tree_model_pb2": "io.proto.decision_trees_pb2",
    "framework.nest": "framework.tensors.nest framework.tensors.shallow_nest",
    "framework.python.ops.audio_ops": "ops.audio.spectra ops.audio.wave_files",
    "keras": "keras",
    "learn.python.learn.basic_session_run_hooks": "train",
    "learn.python.learn.monitored_session": "train training.sessions.layered_sessions",
    "learn.python.learn.session_run_hook": "train",
    "nccl.ops.gen_nccl_ops": "framework.declarations.generated_ops",
    "nccl.python.ops.nccl_ops": "ops.collectives.nccl_ops",
    "rnn.python.ops.core_rnn": "nn",
    "saved_model": "keras.exported_models",
    "staging": "ops.queues.staging_areas",
    "tensor_forest.proto.fertile_stats_pb2": "io.proto.fertile_stats_pb2",
    "tensor_forest.proto.tensor_forest_params_pb2": "io.proto.tensor_forest_params_pb2",
    "tensor_forest.python.tensor_forest": "contrib.tensor_forest.tensor_forest",
    "tfprof.model_analyzer": "contrib.tfprof profiler",
    "tfprof.tfprof_logger": "profiler compat.internals.util_deprecation",
}


def _read_names() -> dict[str, frozenset[str]]:
    text = (Path(__file__).parent / "module_names.txt").read_text(encoding="utf-8")
    names: dict[str, frozenset[str]] = {}
    for block in text.split("\n\n", 1)[1].replace("\n  ", " ").splitlines():
        package, _, below = block.partition(":")
        names[package] = frozenset(below.split())
    return names


_NAMES = _read_names()


def module_names() -> dict[str, frozenset[str]]:
    """The packages of `tensorflow.contrib` in TensorFlow 1.4 and 1.15, and the modules below each."""
    return _NAMES


def is_ours(package: str) -> bool:
    """Whether `tensorflow.contrib.PACKAGE` is a package or a file of this room."""
    here = Path(__file__).parent
    return (here / package / "__init__.py").exists() or (here / f"{package}.py").exists()


def find_contrib_sources(name: str) -> tuple[str, ...] | None:
    """The modules in which names of the module `name` are looked up; None if this room does not know it.

    A package that is a package here too is not an alias: it has no sources either.
    """
    if name == _ROOT or not name.startswith(f"{_ROOT}."):
        return None
    path = name.removeprefix(f"{_ROOT}.")
    if path in ELSEWHERE:
        return tuple(f"flowstone.{source}" for source in ELSEWHERE[path].split())
    package, _, below = path.partition(".")
    if not below or below not in _NAMES.get(package, ()) or not is_ours(package):
        return None
    leaf = below.rpartition(".")[2]
    if leaf.startswith("gen_") and leaf.endswith(("_ops", "_op")):
        return ("flowstone.framework.declarations.generated_ops",)
    own = f"flowstone.contrib.{package}"
    here = Path(__file__).parent / package
    folder = next((part for part in reversed(below.split(".")[:-1]) if (here / part).is_dir()), "")
    if leaf in ("python", "ops", package):
        return (f"{own}.{folder}", own) if folder else (own,)
    if folder:
        leaf = leaf.removesuffix("_impl")
        return (f"{own}.{folder}.{leaf}", f"{own}.{folder}", own)
    return (f"{own}.{leaf}", own)
