"""`flowstone.nn`: activations, losses, convolutions, pooling, normalisation, embeddings."""

from flowstone import rnn_cell
from flowstone.framework.names.late_names import late_names as _late_names
from flowstone.gradients.swish import swish
from flowstone.gradients.swish import swish as silu
from flowstone.layers.dynamic_recurrent import bidirectional_dynamic_rnn, dynamic_rnn
from flowstone.layers.raw_recurrent import raw_rnn
from flowstone.layers.recurrent import static_bidirectional_rnn, static_rnn, static_state_saving_rnn
from flowstone.ops.arrays.space_moves import depth_to_space, space_to_batch, space_to_depth
from flowstone.ops.networks.activations import crelu, elu, leaky_relu, relu, relu6, selu, softplus, softsign
from flowstone.ops.networks.convolution_layers import (
    atrous_conv2d,
    atrous_conv2d_transpose,
    conv1d,
    conv2d,
    conv2d_backprop_filter,
    conv2d_backprop_input,
    conv2d_transpose,
    conv3d,
    conv3d_backprop_filter_v2,
    conv3d_transpose,
    convolution,
)
from flowstone.ops.networks.convolution_layers import (
    conv3d_backprop_filter_v2 as conv3d_backprop_filter,
)
from flowstone.ops.networks.cross_entropies import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    weighted_cross_entropy_with_logits,
)
from flowstone.ops.networks.depthwise_layers import (
    depthwise_conv2d,
    depthwise_conv2d_backprop_filter,
    depthwise_conv2d_backprop_input,
    depthwise_conv2d_native,
    depthwise_conv2d_native_backprop_filter,
    depthwise_conv2d_native_backprop_input,
    separable_conv2d,
)
from flowstone.ops.networks.embedding import embedding_lookup, embedding_lookup_sparse
from flowstone.ops.networks.local_response import local_response_normalization, lrn
from flowstone.ops.networks.morphology import dilation2d, erosion2d
from flowstone.ops.networks.neural_net import (
    bias_add,
    dropout,
    l2_loss,
    l2_normalize,
    log_poisson_loss,
    relu_layer,
    xw_plus_b,
    zero_fraction,
)
from flowstone.ops.networks.normalization import (
    batch_norm_with_global_normalization,
    batch_normalization,
    fused_batch_norm,
    moments,
    normalize_moments,
    sufficient_statistics,
    weighted_moments,
)
from flowstone.ops.networks.pooling_layers import (
    avg_pool,
    avg_pool2d,
    avg_pool3d,
    max_pool,
    max_pool2d,
    max_pool3d,
    max_pool_with_argmax,
    pool,
)
from flowstone.ops.networks.sampled_losses import nce_loss, sampled_softmax_loss
from flowstone.ops.networks.softmax import log_softmax, softmax
from flowstone.ops.networks.sparse_cross_entropies import sparse_softmax_cross_entropy_with_logits
from flowstone.ops.numbers.functions import sigmoid, tanh
from flowstone.ops.numbers.ranking import in_top_k, top_k
from flowstone.ops.randomness.candidate_sampling import (
    all_candidate_sampler,
    compute_accidental_hits,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)

__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.layers.average_loss": "compute_average_loss scale_regularization_loss",
        "flowstone.ops.networks.convolution_by_rank": "conv1d_transpose conv_transpose",
        "flowstone.ops.networks.ctc": "ctc_loss ctc_loss_v2 ctc_unique_labels",
        "flowstone.ops.networks.ctc_decoding": (
            "ctc_beam_search_decoder ctc_beam_search_decoder_v2 ctc_greedy_decoder"
        ),
        "flowstone.ops.networks.fractional_pooling": "fractional_avg_pool fractional_max_pool",
        "flowstone.ops.networks.pooling_by_rank": "avg_pool1d avg_pool_v2 max_pool1d max_pool_v2",
        "flowstone.ops.networks.repeated_labels": "collapse_repeated",
        "flowstone.ops.networks.spread_windows": "with_space_to_batch",
        "flowstone.ops.numbers.approximate_ranking": "approx_max_k approx_min_k",
        "flowstone.ops.quantization.layers": (
            "quantized_avg_pool quantized_conv2d quantized_max_pool quantized_relu_x"
        ),
        "flowstone.ops.sparse.safe_embedding": "safe_embedding_lookup_sparse",
    },
)
