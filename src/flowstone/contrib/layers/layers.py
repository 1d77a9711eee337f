"""The layers of `tf.contrib.layers` under the name of TensorFlow's module; each is in a file by its kind."""

from __future__ import annotations

from flowstone.framework.names.late_names import late_names

DATA_FORMAT_NCHW = "NCHW"
DATA_FORMAT_NHWC = "NHWC"
DATA_FORMAT_NCDHW = "NCDHW"
DATA_FORMAT_NDHWC = "NDHWC"

FILES = {
    "batch_normalization": "batch_norm",
    "convolutions": "conv1d conv2d conv2d_transpose conv3d conv3d_transpose convolution convolution1d"
    " convolution2d convolution2d_transpose convolution3d convolution3d_transpose",
    "divisive_normalization": "GDN gdn",
    "fully_connected_layers": "bias_add elu fully_connected legacy_fully_connected legacy_linear"
    " legacy_relu linear relu relu6",
    "normalization": "layer_norm",
    "pools": "avg_pool2d avg_pool3d dropout max_pool2d max_pool3d pool",
    "reshaping": "_inner_flatten=inner_flatten dense_to_sparse flatten images_to_sequence maxout"
    " one_hot_encoding sequence_to_images",
    "scaling": "poincare_normalize scale_gradient softmax spatial_softmax unit_norm",
    "separable_convolutions": "conv2d_in_plane convolution2d_in_plane separable_conv2d"
    " separable_convolution2d",
    "stacking": "repeat stack",
    "variables_of_layers": "_add_variable_to_collections=add_to_variable_collections"
    " _build_variable_getter=variable_getter _model_variable_getter=model_variable_getter",
}

__getattr__, __dir__ = late_names(
    globals(), {f"flowstone.contrib.layers.{file}": names for file, names in FILES.items()}
)
