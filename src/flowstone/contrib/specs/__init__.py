"""`tf.contrib.specs`: networks as lines of short names: ``net = Cr(64, [5, 5]) | Flat | Fm(10)``."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.specs.params_ops": "Lf Li Nt Uf Ui e inf nan pi tau",
        "flowstone.contrib.specs.specs": "LocalImport create_net create_net_fun eval_params eval_spec",
        "flowstone.contrib.specs.specs_lib": "Callable Composable Composition Function Operator"
        " check_keywords debug debug_ get_positional",
        "flowstone.contrib.specs.specs_ops": "Ap Bn Cl Clstm2 Cm Conc Cr Cs Ct Cx Do Dwm Dws Expand"
        " External Fl Flat Fm Fr Fs Ft Fun Fx Id Idx Import Lrn Lstm1 Lstm1to0 Lstm2 Lstm2to0 Lstm2to1 Mp"
        " Print Relu Reshape Shared Sig Smax Squeeze Ssm Tanh Transpose Unit Var",
        "flowstone.contrib.specs.summaries": "tf_left_split tf_num_params tf_parameter_iter"
        " tf_parameter_summary tf_print tf_spec_print tf_spec_structure tf_spec_summary tf_structure",
    },
    "params_ops specs specs_lib specs_ops summaries",
)
