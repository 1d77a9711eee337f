"""Layers: functions with variables of their own; recurrent cells, and functions that run them over time.

`flowstone.layers` is also the public namespace. Layers but for the base and the recurrent ones are imported
when they are first asked for.
"""

from flowstone.framework.names.late_names import late_names as _late_names
from flowstone.layers.base import InputSpec, Layer

__all__ = ["InputSpec", "Layer"]

__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.layers.convolutional": "Conv1D Conv2D Conv3D conv1d conv2d conv3d",
        "flowstone.layers.core": "Dense Dropout Flatten dense dropout flatten",
        "flowstone.layers.input_layer": "Input",
        "flowstone.layers.normalization": "BatchNormalization batch_normalization",
        "flowstone.layers.pooling": "AveragePooling1D AveragePooling2D AveragePooling3D"
        " MaxPooling1D MaxPooling2D MaxPooling3D average_pooling1d average_pooling2d average_pooling3d"
        " max_pooling1d max_pooling2d max_pooling3d",
        "flowstone.layers.separable_convolutional": "SeparableConv1D SeparableConv2D"
        " separable_conv1d separable_conv2d",
        "flowstone.layers.transposed_convolutional": "Conv2DTranspose Conv3DTranspose"
        " conv2d_transpose conv3d_transpose",
    },
)
