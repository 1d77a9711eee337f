"""`flowstone.random`: random values and the seed of the graph."""

from flowstone.framework.names.late_names import late_names as _late_names
from flowstone.ops.randomness.random import (
    get_seed,
    set_random_seed,
    truncated_normal,
)
from flowstone.ops.randomness.random import (
    random_gamma as gamma,
)
from flowstone.ops.randomness.random import (
    random_normal as normal,
)
from flowstone.ops.randomness.random import (
    random_poisson as poisson,
)
from flowstone.ops.randomness.random import (
    random_uniform as uniform,
)
from flowstone.ops.randomness.random_choice import categorical, multinomial
from flowstone.ops.randomness.random_choice import random_shuffle as shuffle

__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.ops.randomness.candidate_sampling": "all_candidate_sampler fixed_unigram_candidate_sampler"
        " learned_unigram_candidate_sampler log_uniform_candidate_sampler uniform_candidate_sampler",
        "flowstone.ops.randomness.generators": "Algorithm Generator create_rng_state get_global_generator"
        " set_global_generator",
        "flowstone.ops.randomness.seeds": "fold_in split",
        "flowstone.ops.randomness.stateless_rejection": "stateless_binomial stateless_gamma"
        " stateless_parameterized_truncated_normal stateless_poisson",
        "flowstone.ops.randomness.stateless": "stateless_categorical stateless_multinomial stateless_normal"
        " stateless_truncated_normal stateless_uniform",
    },
)
