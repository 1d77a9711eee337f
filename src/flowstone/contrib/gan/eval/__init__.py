"""`tf.contrib.gan.eval`: scores of generated images, and summaries of models."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.gan.eval.activation_metrics": "classifier_score_from_logits"
        " diagonal_only_frechet_classifier_distance_from_activations"
        " frechet_classifier_distance_from_activations kernel_classifier_distance_and_std_from_activations"
        " kernel_classifier_distance_from_activations mean_only_frechet_classifier_distance_from_activations",
        "flowstone.contrib.gan.eval.classifier_metrics": "classifier_score frechet_classifier_distance"
        " kernel_classifier_distance kernel_classifier_distance_and_std"
        " frechet_inception_distance get_graph_def_from_disk get_graph_def_from_resource"
        " get_graph_def_from_url_tarball inception_score preprocess_image run_image_classifier run_inception",
        "flowstone.contrib.gan.eval.eval_utils": "image_grid image_reshaper",
        "flowstone.contrib.gan.eval.summaries": "add_gan_model_image_summaries add_gan_model_summaries"
        " add_image_comparison_summaries add_regularization_loss_summaries",
    },
    "classifier_metrics eval_utils summaries",
)
