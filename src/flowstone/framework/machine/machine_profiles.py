"""Profiles of processors: the numbers that `machine.py` answers from, as data.

A profile with `processors` was measured there; the pages of docs/design named below say how. `X86` and `ARM`
take a kernel of their own choice only where that saves work on every processor: fewer passes over memory,
fewer calls. ``flowstone calibrate`` measures a machine that has no profile.
"""

from __future__ import annotations

import platform
from typing import NamedTuple

NEVER = 1 << 62
"""A threshold that nothing reaches."""


class Winograd(NamedTuple):
    """Costs of Winograd's algorithm in one direction, in multiplications of direct convolutions.

    `efficiency` is the part of their rate that is left to filters of one tap in a direction; `moved` the cost
    of an element of what a product takes or makes, and `uncached` what is added to it where the caches do not
    hold an image; `called` that of a product's calls; `summed` that of a filter's element.
    """

    efficiency: float
    moved: float
    called: float
    summed: float
    uncached: float = 15


class Tiles(NamedTuple):
    """Costs of convolutions in tiles, in multiplications of a library's convolution.

    `called` is that of a call, `library` that of a library's; `left` of a multiplication that is left,
    `moved` of an element of a tile's matrices and `summed` of a filter's, both once more for gradients by
    filters; `product` of two vectors where small images are convolved directly. A library that is `padded`
    multiplies whole vectors of both channels, others of the results' alone. What is read of a filter's
    matrices costs `uncached` times as much where no cache holds them.
    """

    called: float = 1.5e6
    library: float = 0
    left: float = 1
    moved: float = 12
    summed: float = 30
    moved_by_filter: float = 18
    summed_by_filter: float = 30
    product: float = 26
    uncached: float = 1
    padded: bool = True


class Profile(NamedTuple):
    """What is known of a kind of processor; the defaults choose ATen's own kernels.

    `processors`: as `processor` names them, with all of `features`: they decide more than the model, which a
    hypervisor may name otherwise. Rates are those of one core for float32; placement goes by them.
    Sizes are in bytes, `product…`, `convolution…` and `team…` in multiplications. `NEVER` switches a choice
    off.
    """

    name: str
    processors: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    # Placement's estimates.
    operations_per_us: float = 50e3  # floating-point operations of products
    bytes_per_us: float = 10e3  # read and written, out of the caches
    call_us: float = 1.0

    # Calls and caches.
    call_elements: int = 4096  # that a kernel passes over, cached, in the time of another call
    core_cache: int = 4 << 20  # one core's share of the caches: kernels in a row find so much there
    all_caches: int = 32 << 20
    shared_payload: int = 1 << 18  # bytes between processes from which shared memory is faster than a socket

    # Products. oneDNN's cost more to set up than BLAS's.
    product_by_onednn: int = NEVER  # from which oneDNN's are faster, if BLAS has none for the processor
    block_by_onednn: int = NEVER  # the same where neither side is short: its set-up costs others the cache
    transposed_by_onednn: int = NEVER  # the same where the first operand is transposed, which oneDNN copies
    narrow_columns: int = 0  # results of at most so many are computed, and kept, column by column
    narrow_plain: bool = True  # also where the first operand is not transposed
    packed_rows: int = 0  # of the other operand, up to which weights in oneDNN's own order are read faster
    packed_weights: int = 1 << 20  # elements of such weights, from which they are in no near cache
    slow_columns: int = 1024  # rows of a multiple of so many columns are read at half the memory's speed
    updates_by_rows: int = NEVER  # elements of a matrix that BLAS updates faster a few rows at a time

    # Multiplications of a product in a loop up to which the loop is machine code, and where values are kept
    # for gradients.
    looped_products: int = 1 << 18
    looped_products_with_gradients: int = 1 << 18

    joined_products: int = 4  # by one matrix, from which one product of all is faster
    joined_rows: int = 256  # of one of them, up to which it does not fill the machine alone
    grouped_updates: int = 4  # from which the lists for one call of them all cost less than the calls

    # Convolutions.
    convolution_by_onednn: int = NEVER  # from which oneDNN's own call, which adds a bias as well, pays
    pointwise_strides: bool = False  # 1x1 convolutions with strides first copy the positions that they keep
    pointwise_positions: int = 0  # of an image, up to which 1x1 convolutions are one row of positions
    pointwise_positions_in_all: int = 0  # of all images, up to which a filter's gradient is a product
    pointwise_products: int = 0  # multiplications up to which 1x1 convolutions are products of matrices
    pointwise_rows: int = 0  # positions of all images up to which they are, whatever they multiply
    window_products: int = 20_000_000  # of sizes that only the step knows, up to which they are products
    window_sums: int = 2_000_000  # the same of convolutions channel by channel, which are sums
    tiny_images: int = 0  # their elements, times output channels, up to which convolutions are products
    tiny_gradients: int = 0  # the same of the gradients
    streamed_rows: int = 0  # of a product by a matrix that no cache holds, up to which it is machine code
    direct_products: int = 0  # of two vectors, up to which small images are convolved by machine code
    tiles: Tiles = Tiles()
    band_channels: int = 0  # up to which a product with a band matrix adds up neighbouring channels fastest
    filter_elements: int = 1 << 12  # from which a filter's order in memory matters
    scaled_images: int = 1 << 15  # elements from which a filter is scaled instead of the image
    pooled_places: int = 1 << 19  # from which places of maxima are worth two calls that make them narrow
    sliding_maxima: int = NEVER  # elements from which maxima of shifted slices are faster than windows
    winograd: Winograd | None = None  # of convolutions, and gradients of the images
    winograd_by_filter: Winograd | None = None
    winograd_channels: int = 32  # the fewest for which it is considered
    winograd_gain: float = 0.93  # of the direct convolution's time, from which the algorithm is taken

    # Elements of few results a position, and of folded images, in multiplications of a direct convolution.
    spread_element: float = 40  # of a product, when it is added to the results
    spread_uncached: float = 40  # the same where the product takes more than `spread_cache`
    spread_cache: int = 400_000
    spread_vector: float = 250  # of products of machine code, when it is added to the results
    folded_element: float = 25  # of images that are cut up for strides
    resized_channels: int = 16  # from which ATen's loops over images with channels last are vectorised

    # Recurrent layers in one kernel.
    layer_cells: int = NEVER  # from which arranging the weights pays
    layer_weights: int = 1 << 22  # up to which two threads do not multiply them as fast one by one
    # The same from which BLAS's products and machine code between them are faster than oneDNN's layer; where
    # gradients are wanted, they are so for fewer, too.
    layers_by_products: int = NEVER

    # Of float32 rows, up to which soft-max is faster by whole passes than by rows that fill no vector.
    softmax_columns: int = 0

    # Fourier transforms of lengths with a prime factor from 17 on: the longest that are products with a
    # matrix, the same over axes that few numbers follow, and of complex numbers how often the prime may be in
    # them.
    prime_length: int = 0
    narrow_prime_length: int = 0
    prime_multiples: int = 4
    # Of lengths that 4 divides: the primes from the first up to the last, as the largest factor, whose sums
    # the library computes by the definition there, though it has a faster way for the prime alone.
    first_summed_prime: int = NEVER
    last_summed_prime: int = 0

    # Triangular systems of many right-hand sides in float32: whether the transposed ones are solved faster.
    transposed_systems: bool = False

    # Hyperbolic tangents: elements from which exponentials pay, and oneDNN's.
    tanh_by_exponentials: int = NEVER
    tanh_by_onednn: int = NEVER

    # Teams of threads. Below the first no kernel starts one; from the second on it pays for one node; nodes
    # from the third on keep it awake for each other, and pay together from the fourth on.
    team_starts: int = 10_000
    team_alone: int = 1_500_000
    team_by_element: int = 1_500_000  # as team_alone, of what does a little for every element
    team_among_others: int = 500_000
    team_together: int = 6_000_000
    team_asleep: int = 50_000_000  # mean work of nodes for which waking its threads each time pays
    element_cost: float = 6  # of an element-wise operation, in multiplications of a product

    # Machine code. Work is in additions of an element.
    native_team: int = 200_000  # work from which a team of threads shares a cluster's loops
    native_unlocked: int = 1_000_000  # work during which other threads of Python may run
    native_alone: int = 1 << 12  # elements from which code for one comparison, or the like, is worth making
    native_framed: int = 1 << 14  # elements from which machine code makes, pads and pools arrays
    native_hot: int = 1 << 17  # elements of one-hot rows from which machine code is faster than picked rows
    native_reduction: int = 1 << 16  # elements up to which a reduction alone is faster than ATen's
    native_update_unlocked: int = 1 << 17  # elements of rows' updates, as native_unlocked
    # The same as native_team, of other functions than clusters'.
    product_team: int = 400_000  # multiplications
    update_team: int = 400_000  # additions of an optimiser's update
    direct_team: int = 100_000  # products of two vectors, of convolutions of small images
    depthwise_team: int = 500_000  # products of an element and a filter's
    loop_team: int = 2_000_000  # of all iterations of a loop by rows, which threads share
    sparse_team: int = 50_000  # products of two numbers
    pool_team: int = 50_000  # elements of images
    copies_team: int = 1 << 21  # bytes of rows that are copied, or added to others
    copies_unlocked: int = 1 << 20  # bytes of copied rows, as native_unlocked
    large_results: int = 1 << 25  # bytes from which results need memory that the caches have seen
    streamed_copies: int = 1 << 25  # bytes of an array of copied rows, from which it goes past the caches
    placed_team: int = 200_000  # elements put at random places: lines of caches move between cores
    # Work of a call that takes longer by ATen, or by code made quickly, than good code takes to make.
    cluster_much: float = 5e6  # so that its best code is waited for, not made quickly, if ATen begins
    tiles_much: float = 2.5e8  # multiplications of a convolution in tiles; such ones wait for good code
    depthwise_much: float = 2e7  # products of a convolution channel by channel; the same
    normalization_much: float = 1e6  # elements


# torch's own linear layers keep weights column by column, and so do these.
ARM = Profile("arm", narrow_columns=32)

X86 = Profile(
    "x86",
    narrow_columns=32,  # 007
    convolution_by_onednn=1_000_000,  # ATen calls oneDNN as well, and adds the bias in another pass
    layer_cells=8,  # oneDNN compiles layers for all of x86; elsewhere it has a plain reference
    band_channels=48,
    direct_products=20_000,
    prime_length=68,  # 045
    narrow_prime_length=48,
)

# MKL has no kernels with AVX-512 for AMD's processors, and oneDNN's take half its time in float32.
AMD = X86._replace(
    name="amd",
    processors=("AuthenticAMD",),
    product_by_onednn=500_000,
    block_by_onednn=1_250_000,
    transposed_by_onednn=1_500_000,
)

# EPYC 7003, two cores, without AVX-512; torch 2.13. There MKL reaches 45 billion multiplications a second and
# core, whatever is transposed, and oneDNN 25 to 42. A step of five kernels of 1 to 1.6 million
# multiplications (word vectors with sampled losses) took 370 us on one thread and 500 on two. Sums and
# squares of 125,000 elements take 28 and 20 us on one thread, 18 and 12 on two; after a pause of 3 ms 34 and
# 26, 25 and 19.
ZEN3 = AMD._replace(
    name="amd-zen3",
    processors=("AuthenticAMD 25 1", "AuthenticAMD 25 33", "AuthenticAMD 25 80"),
    product_by_onednn=NEVER,
    block_by_onednn=NEVER,
    transposed_by_onednn=NEVER,
    team_alone=2_000_000,
    team_by_element=750_000,
    team_together=8_000_000,
)

# EPYC 9004, two cores, with AVX-512; torch 2.13. There MKL's products take half of oneDNN's time up to a
# million multiplications and as long at ten (104 x 104 x 104: 19 us, so 39; 256 x 256 x 256: 174, so 167).
# With the first operand transposed they take less up to many more (512 x 1024 x 512: 2.9 ms, so 3.6; but
# 200 x 400 x 10000: 12, so 8).
ZEN4 = AMD._replace(
    name="amd-zen4",
    processors=("AuthenticAMD 25 17", "AuthenticAMD 25 97", "AuthenticAMD 25 160"),
    product_by_onednn=4_700_000,
    block_by_onednn=16_000_000,
    transposed_by_onednn=500_000_000,
    narrow_plain=False,
    packed_rows=64,
    updates_by_rows=1 << 22,
    pointwise_positions_in_all=4096,
    pointwise_products=1 << 26,
    pointwise_rows=1024,
    tiny_images=800,
    tiny_gradients=256,
    sliding_maxima=50_000,
    winograd=Winograd(0.88, 18, 5_000_000, 50),
    winograd_by_filter=Winograd(0.84, 14, 10_000_000, 150),
    softmax_columns=15,
    team_by_element=750_000,
    prime_multiples=1,
    transposed_systems=True,
)

# EPYC 9005, two cores, with AVX-512; torch 2.13 with MKL and oneDNN.
ZEN5 = AMD._replace(
    name="amd-zen5",
    processors=("AuthenticAMD 26",),
    packed_rows=64,  # 017
    updates_by_rows=1 << 19,  # 024
    pointwise_strides=True,  # 021
    pointwise_positions=64,
    pointwise_positions_in_all=512,
    direct_products=400_000,  # 042
    band_channels=128,
    sliding_maxima=100_000,  # 016
    winograd=Winograd(0.88, 18, 5_000_000, 50),  # 019
    winograd_by_filter=Winograd(0.84, 14, 10_000_000, 150),
    softmax_columns=15,  # 030
    tanh_by_exponentials=6_000,
    tanh_by_onednn=40_000,
    team_by_element=750_000,  # 008
    prime_length=53,  # 045
    prime_multiples=1,
    transposed_systems=True,
)

# Servers from Skylake on, told by their vectors. Measured on a guest of two cores, with AMX: 039.
INTEL = X86._replace(
    name="intel-avx512",
    processors=("GenuineIntel 6",),
    features=("avx512f", "avx512dq", "avx512bw", "avx512vl"),
    operations_per_us=150e3,
    convolution_by_onednn=1_800_000,  # a call of oneDNN costs 22 us there
    pointwise_positions_in_all=4096,
    pointwise_products=1 << 26,
    pointwise_rows=1024,
    tiny_images=800,
    tiny_gradients=256,
    direct_products=400_000,  # 042
    looped_products=1 << 21,  # 034
    looped_products_with_gradients=1 << 20,
    streamed_rows=16,  # 036
    tiles=Tiles(1.6e6, 3.5e6, 1.1, 15, 40, 36, 22, uncached=3, padded=False),  # 033
    narrow_plain=False,  # 007
    packed_rows=64,
    layer_cells=16,
    layers_by_products=1 << 18,  # 023
    band_channels=128,
    sliding_maxima=100_000,
    spread_uncached=160,  # 033
    folded_element=60,
    softmax_columns=15,
    first_summed_prime=79,  # 045
    last_summed_prime=149,
    team_by_element=1_000_000,
    placed_team=8_000_000,  # two threads take twice as long for 250,000
    streamed_copies=3 << 24,  # what is read next comes from the third cache below
)

PROFILES = (ZEN5, ZEN4, ZEN3, AMD, INTEL, X86, ARM)
"""All of them; of those for a processor the most special one first."""


def generic() -> Profile:
    """The profile that suits every processor of this architecture."""
    return X86 if platform.machine().lower() in ("x86_64", "amd64", "i386", "i686") else ARM
