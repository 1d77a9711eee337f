"""Names that only changed between TensorFlow 0.5 and 1.4, and names that went without a successor.

`RENAMED` has, for each namespace, the old name and where it is now: a name of the same namespace, or a dotted
name below flowstone. `GONE` says of a name that is not here which TensorFlow had it and what to use.
`AMBIGUOUS` has the functions whose calls by position are refused.
"""

from __future__ import annotations

__all__ = ["AMBIGUOUS", "GONE", "RENAMED"]

RENAMED: dict[str, dict[str, str]] = {
    "": {
        "audio_summary": "contrib.deprecated.audio_summary",
        "batch_cholesky": "cholesky",
        "batch_cholesky_solve": "cholesky_solve",
        "batch_fft": "fft",
        "batch_fft2d": "fft2d",
        "batch_fft3d": "fft3d",
        "batch_ifft": "ifft",
        "batch_ifft2d": "ifft2d",
        "batch_ifft3d": "ifft3d",
        "batch_matmul": "compat.eras.arithmetic.batch_matmul",
        "batch_matrix_band_part": "matrix_band_part",
        "batch_matrix_determinant": "matrix_determinant",
        "batch_matrix_diag": "matrix_diag",
        "batch_matrix_diag_part": "matrix_diag_part",
        "batch_matrix_inverse": "matrix_inverse",
        "batch_matrix_set_diag": "matrix_set_diag",
        "batch_matrix_solve": "matrix_solve",
        "batch_matrix_solve_ls": "matrix_solve_ls",
        "batch_matrix_transpose": "matrix_transpose",
        "batch_matrix_triangular_solve": "matrix_triangular_solve",
        "batch_self_adjoint_eig": "self_adjoint_eig",
        "batch_svd": "svd",
        "complex_abs": "abs",
        "concat_v2": "concat",
        "distribute": "contrib.distribute.core",
        "histogram_summary": "contrib.deprecated.histogram_summary",
        "image_summary": "contrib.deprecated.image_summary",
        "inv": "reciprocal",
        "listdiff": "setdiff1d",
        "merge_all_summaries": "contrib.deprecated.merge_all_summaries",
        "merge_summary": "contrib.deprecated.merge_summary",
        "mul": "multiply",
        "neg": "negative",
        "optimizers": "keras.optimizers",
        "pack": "stack",
        "scalar_summary": "contrib.deprecated.scalar_summary",
        "select": "where",
        "split_v": "split",
        "sub": "subtract",
        "types": "dtypes",
        "unpack": "unstack",
    },
    "image": {"per_image_whitening": "per_image_standardization"},
    "nn": {
        "bidirectional_rnn": "nn.static_bidirectional_rnn",
        "deconv2d": "nn.conv2d_transpose",
        "rnn": "nn.static_rnn",
        "seq2seq": "contrib.legacy_seq2seq",
        "state_saving_rnn": "nn.static_state_saving_rnn",
    },
    "rnn_cell": {
        "EmbeddingWrapper": "contrib.rnn.EmbeddingWrapper",
        "InputProjectionWrapper": "contrib.rnn.InputProjectionWrapper",
        "OutputProjectionWrapper": "contrib.rnn.OutputProjectionWrapper",
        "_linear": "contrib.rnn.core_rnn_cell._linear",
        "linear": "contrib.rnn.core_rnn_cell._linear",
    },
    "train": {
        "SummaryWriter": "summary.FileWriter",
        "SummaryWriterCache": "summary.FileWriterCache",
        "summary_iterator": "train.summary_iterator",
    },
}

# By the dotted name: the TensorFlows that had it, and what to use in its place.
GONE: dict[str, tuple[str, str]] = {
    "tf.contrib.skflow": ("0.8", "tf.estimator"),
    "tf.nn.rnn_cell.SlimWrapper": ("0.11", "tf.contrib.rnn"),
    "tf.image_projective_transform": ("1.4", "tf.contrib.image.transform"),
    "tf.contrib.learn.TensorFlowDNNClassifier": ("0.8 to 0.11", "tf.estimator.DNNClassifier"),
    "tf.contrib.learn.TensorFlowEstimator": ("0.8 to 0.11", "tf.estimator.Estimator"),
    "tf.contrib.learn.TensorFlowLinearClassifier": ("0.8 to 0.11", "tf.estimator.LinearClassifier"),
    "tf.contrib.learn.TensorFlowRNNClassifier": (
        "0.8 to 0.11",
        "tf.nn.dynamic_rnn in a tf.estimator.Estimator",
    ),
    "tf.train.LooperThread": ("1.15", "tf.train.Coordinator's threads"),
    "tf.lite": ("1.13 and later", "flowstone freeze, which writes a GraphDef"),
    "tf.ragged": ("1.13 and later", "tf.SparseTensor"),
    "tf.xla": ("1.15", "the program as it is: plans are compiled for the processor"),
}

# Functions that are refused where their arguments come by position, and why: two eras read them differently.
AMBIGUOUS: dict[str, str] = {
    "tf.nn.weighted_cross_entropy_with_logits": (
        "TensorFlow 0.x takes (logits, targets, pos_weight), later ones (targets, logits, pos_weight); "
        "nothing tells which is meant: name the arguments"
    ),
}
