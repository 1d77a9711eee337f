"""`tf.metrics`: pairs (value, update_op) over what local variables have gathered from many batches.

`update_op` adds a batch to the variables and returns the metric with it; `value` computes the metric of what
has been added. A program initialises the variables (`tf.local_variables_initializer`), runs `update_op` for
every batch, and fetches `value` at the end.

The variables are in the collections LOCAL_VARIABLES and METRIC_VARIABLES. All metrics take:

- `weights`: a number, or a tensor of the values' rank each of whose dimensions is theirs or 1 (`[batch]` and
  `[batch, 1]` stand for each other); None counts every value once, 0 leaves one out;
- `metrics_collections`, `updates_collections`: lists of names (or one) of collections, to which `value` and
  `update_op` are added;
- `name`: of the variable scope that holds the variables.

ValueError if known shapes do not fit, InvalidArgumentError in the step for those that it finds out.
"""
