"""All operations: declarations (`framework/declarations/operation.py`) and the public functions over them,
a folder a family. Operations that only plans contain are in `lowering` and `partition`.

Importing this package declares the ops of most programs. The files below it that are not named here are
imported when a program asks for one of their names. For an op that is not declared yet those are imported
whose text has its name in quotes; if none of them declares it, all, and the packages that add ops
(`framework/declarations/op_packages.py`). A declaration that lacks an obligatory part is an error then.
"""

from functools import cache as _cache
from importlib import import_module as _import_module
from pathlib import Path as _Path
from pkgutil import walk_packages as _walk_packages
from sys import modules as _modules

from flowstone.framework.declarations.op_packages import import_packages as _import_packages
from flowstone.framework.declarations.operation import registry
from flowstone.framework.process.collector import paused as _paused
from flowstone.ops.algebra import batch_matrices, diagonals, einstein_sums, matrices, tensor_contractions
from flowstone.ops.arrays import (
    arrays,
    broadcasting,
    choice,
    constants,
    gathering,
    grids,
    identities,
    image_patches,
    indexing,
    joining,
    masks,
    packing,
    padding,
    rearranging,
    selection,
    shape_tensors,
    shapes,
    slice_geometry,
    slicing,
    space_moves,
)
from flowstone.ops.control import (
    checks,
    conditionals,
    control_flow,
    critical_sections,
    functional,
    functional_forms,
    loop_context,
    loops,
    mutexes,
    reporting,
    script,
    type_checks,
)
from flowstone.ops.images import image_resizing
from flowstone.ops.lists import (
    stacks,
    tensor_array,
    tensor_array_elements,
    tensor_array_ops,
    tensor_list_rows,
    tensor_lists,
)
from flowstone.ops.networks import (
    activations,
    average_pooling,
    convolution,
    convolution_layers,
    cross_entropies,
    embedding,
    local_response,
    morphology,
    neural_net,
    normalization,
    pooling,
    pooling_layers,
    sampled_losses,
    softmax,
    sparse_cross_entropies,
    windows,
)
from flowstone.ops.numbers import (
    accumulations,
    arithmetic,
    bitwise,
    casts,
    clipping,
    comparisons,
    complex_numbers,
    division,
    elementwise,
    extreme_positions,
    functions,
    host_tanh,
    operators,
    ranking,
    reductions,
    segment_reductions,
    special_functions,
    sums,
    unsigned_integers,
)
from flowstone.ops.queues import (
    accumulator_ops,
    accumulators,
    barriers,
    queue_ops,
    queue_state,
    queue_storage,
    queues,
    staging,
    staging_areas,
)
from flowstone.ops.randomness import candidate_sampling, class_distributions, random, random_choice
from flowstone.ops.readers import files
from flowstone.ops.sparse import (
    index_rows,
    sparse_placeholders,
    sparse_segment_reductions,
    sparse_tensor_maps,
    sparse_to_dense,
)
from flowstone.ops.summaries import summaries
from flowstone.ops.variables import (
    assignments,
    counting,
    initial_values,
    initializers,
    partitioned_variables,
    reference_variable,
    resource_gathering,
    resource_variable,
    save_slice_info,
    scatter,
    stateful,
    template,
    updates,
    variable_collections,
    variable_scope,
    variable_store,
    variables,
)


@_cache
def _late_files() -> dict[str, str]:
    """The text of the files that are not imported, by modules' names; of those that are there as text."""
    found: dict[str, str] = {}
    for path in __path__:
        for file in sorted(_Path(path).glob("*/*.py")):
            name = f"{__name__}.{file.parent.name}.{file.stem}"
            if file.stem != "__init__" and name not in _modules:
                found[name] = file.read_text("utf-8")
    return found


def _import_naming(op: str) -> None:
    quoted = f'"{op}"'
    with _paused():
        for name, text in _late_files().items():
            if quoted in text:
                _import_module(name)


def _import_all() -> None:
    _late_files.cache_clear()
    with _paused():
        for file in _walk_packages(__path__, f"{__name__}."):
            _import_module(file.name)
        _import_packages()


registry.check_complete()
registry.load_late_by(_import_all, _import_naming)
