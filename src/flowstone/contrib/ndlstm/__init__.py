"""`tf.contrib.ndlstm`: LSTMs along the rows and columns of images."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.ndlstm.lstm1d": "ndlstm_base ndlstm_base_dynamic ndlstm_base_unrolled"
        " sequence_softmax sequence_to_final",
        "flowstone.contrib.ndlstm.lstm2d": "get_blocks horizontal_lstm images_to_sequence reduce_to_final"
        " reduce_to_sequence separable_lstm sequence_to_images",
        "flowstone.contrib.ndlstm.misc": "one_hot_mask one_hot_planes pixels_as_vector pool_as_vector",
    },
    "lstm1d lstm2d misc",
)
