"""`flowstone.random`: random values and the seed of the graph."""

from flowstone.ops.arrays.joining import split
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
from flowstone.ops.randomness.random_choice import multinomial
from flowstone.ops.randomness.random_choice import random_shuffle as shuffle
