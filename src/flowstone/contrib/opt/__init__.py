"""`tf.contrib.opt`: optimisers beyond those of `tf.train`, and wrappers around optimisers."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.opt.adam_gs_optimizer": "AdamGSOptimizer LazyAdamGSOptimizer",
        "flowstone.contrib.opt.agn_optimizer": "AGNCustomGetter AGNOptimizer",
        "flowstone.contrib.opt.elastic_average_optimizer": "ElasticAverageCustomGetter"
        " ElasticAverageOptimizer",
        "flowstone.contrib.opt.model_average_optimizer": "ModelAverageCustomGetter ModelAverageOptimizer",
        "flowstone.contrib.opt.drop_stale_gradient_optimizer": "DropStaleGradientOptimizer",
        "flowstone.contrib.opt.adam_variants": "AdaMaxOptimizer LazyAdamOptimizer NadamOptimizer",
        "flowstone.contrib.opt.external_optimizer": "ExternalOptimizerInterface ScipyOptimizerInterface",
        "flowstone.contrib.opt.ggt": "GGTOptimizer",
        "flowstone.contrib.opt.lars_optimizer": "LARSOptimizer",
        "flowstone.contrib.opt.moving_average_optimizer": "MovingAverageOptimizer",
        "flowstone.contrib.opt.multitask_optimizer_wrapper": "MultitaskOptimizerWrapper"
        " clip_gradients_by_global_norm",
        "flowstone.contrib.opt.reg_adagrad_optimizer": "RegAdagradOptimizer",
        "flowstone.contrib.opt.shampoo": "ShampooOptimizer",
        "flowstone.contrib.opt.sign_optimizers": "AddSignOptimizer PowerSignOptimizer",
        "flowstone.contrib.opt.variable_clipping_optimizer": "VariableClippingOptimizer",
        "flowstone.contrib.opt.weight_decay_optimizers": "AdamWOptimizer DecoupledWeightDecayExtension"
        " MomentumWOptimizer extend_with_decoupled_weight_decay",
    },
)
