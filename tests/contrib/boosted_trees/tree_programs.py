"""Programs on the operations of `tf.contrib.boosted_trees`, which TensorFlow and Flowstone both run.

A program is a function of `call(op, **inputs)`, which makes an operation, and `run(fetches)`, and gives what
was found. Texts of messages are bytes.
"""

import ensemble_programs
import numpy as np

EPSILON = 0.005  # 1 / EPSILON is another whole number in 32 bits
TREE_PER_CLASS, FULL_HESSIAN, DIAGONAL_HESSIAN = 1, 2, 3


def programs(messages):
    """The programs by name; `messages` has the classes of the messages, as attributes."""
    found = {}
    for seed in range(3):
        for strategy in (TREE_PER_CLASS, FULL_HESSIAN, DIAGONAL_HESSIAN):
            for kind in ("Dense", "Sparse", "Categorical"):
                found[f"splits {kind} {strategy} {seed}"] = _splits(kind, strategy, seed)
    for kind in ("Dense", "Categorical"):
        found[f"splits of a layer {kind}"] = _splits(kind, TREE_PER_CLASS, 5, oblivious=1)
    found["sums"] = _sums
    found["sums of several outputs"] = _tensor_sums
    found["quantiles"] = _quantiles(False)
    found["even quantiles"] = _quantiles(True)
    found["buckets"] = _buckets(messages)
    found.update(ensemble_programs.programs(messages))
    return found


# ---- splits


def _statistics(draws, strategy, rows):
    if strategy == TREE_PER_CLASS:
        return draws.randn(rows), draws.rand(rows)
    if strategy == DIAGONAL_HESSIAN:
        return draws.randn(rows, 3), draws.rand(rows, 3)
    halves = draws.randn(rows, 3, 3)
    return draws.randn(rows, 3), np.matmul(halves, halves.transpose(0, 2, 1)) + 0.1 * np.eye(3)


def _keys(kind, draws):
    """Rows in order: node, feature, dimension; with a row of all examples in front of each node's."""
    rows = []
    for node in (0, 2, 3):
        if kind != "Dense":
            rows.append((node, -1, 0))
        for dimension in range(3 if kind == "Sparse" else 1):
            features = sorted(draws.choice(8, 5, replace=False).tolist())
            rows.extend((node, feature, dimension) for feature in features)
    return np.array(rows)


def _splits(kind, strategy, seed, oblivious=0):
    def program(call, run):
        found = []
        draws = np.random.RandomState(seed)
        for l1, l2, complexity, least, batches, class_id in (
            (0.0, 0.0, 0.0, 0.0, 1, -1),
            (0.3, 0.1, 0.2, 0.0, 1, 2),
            (0.0, 1.0, 0.0, 0.6, 3, -1),
        ):
            keys = _keys(kind, draws)
            gradients, hessians = _statistics(draws, strategy, len(keys))
            if kind != "Dense":
                for row in np.flatnonzero(keys[:, 1] < 0):
                    same = keys[:, 0] == keys[row, 0]
                    gradients[row], hessians[row] = gradients[same].sum(0), hessians[same].sum(0)
            inputs = {
                "num_minibatches": batches,
                "partition_ids": keys[:, 0].astype(np.int32),
                "feature_ids" if kind == "Categorical" else "bucket_ids": keys[:, 1:].astype(np.int64),
                "gradients": gradients.astype(np.float32),
                "hessians": hessians.astype(np.float32),
                "class_id": class_id if strategy == TREE_PER_CLASS else -1,
                "feature_column_group_id": 4,
                "l1_regularization": l1,
                "l2_regularization": l2,
                "tree_complexity_regularization": complexity,
                "min_node_weight": least,
                "multiclass_strategy": strategy,
            }
            if kind != "Dense":
                inputs["bias_feature_id"] = -1
            if kind != "Sparse":
                inputs["weak_learner_type"] = oblivious
            name = "BuildCategoricalEqualitySplits"
            if kind != "Categorical":
                inputs["bucket_boundaries"] = draws.randn(8).astype(np.float32)
                name = f"Build{kind}InequalitySplits"
            found.append(run(call(name, **inputs)))
        return found

    return program


# ---- accumulators


def _sums(call, run):
    draws = np.random.RandomState(0)
    handle = call("StatsAccumulatorScalarResourceHandleOp", container="", shared_name="sums")
    run(call("CreateStatsAccumulatorScalar", stats_accumulator_handle=handle, stamp_token=3))
    found = [run(call("StatsAccumulatorScalarIsInitialized", stats_accumulator_handle=handle))]
    for stamp in (3, 3, 2):
        rows = {
            "partition_ids": draws.randint(0, 3, 20).astype(np.int32),
            "feature_ids": draws.randint(-1, 3, (20, 2)).astype(np.int64),
            "gradients": draws.randn(20).astype(np.float32),
            "hessians": draws.rand(20).astype(np.float32),
        }
        summary = run(call("StatsAccumulatorScalarMakeSummary", **rows))
        found.append(summary)
        names = ("partition_ids", "feature_ids", "gradients", "hessians")
        lists = {name: [value] for name, value in zip(names, summary)}
        run(call("StatsAccumulatorScalarAdd", stats_accumulator_handles=[handle], stamp_token=stamp, **lists))
    found.append(run(call("StatsAccumulatorScalarSerialize", stats_accumulator_handle=handle)))
    saved = found[-1]
    found.append(
        run(
            call(
                "StatsAccumulatorScalarFlush",
                stats_accumulator_handle=handle,
                stamp_token=3,
                next_stamp_token=4,
            )
        )
    )
    found.append(run(call("StatsAccumulatorScalarSerialize", stats_accumulator_handle=handle)))
    run(
        call(
            "StatsAccumulatorScalarDeserialize",
            stats_accumulator_handle=handle,
            stamp_token=9,
            num_updates=5,
            partition_ids=saved[2],
            feature_ids=saved[3],
            gradients=saved[4],
            hessians=saved[5],
        )
    )
    found.append(run(call("StatsAccumulatorScalarSerialize", stats_accumulator_handle=handle)))
    return found


def _tensor_sums(call, run):
    draws = np.random.RandomState(1)
    handle = call("StatsAccumulatorTensorResourceHandleOp", container="", shared_name="tensor_sums")
    run(
        call(
            "CreateStatsAccumulatorTensor",
            stats_accumulator_handle=handle,
            stamp_token=0,
            per_slot_gradient_shape=np.array([2]),
            per_slot_hessian_shape=np.array([2, 2]),
        )
    )
    for _ in range(2):
        run(
            call(
                "StatsAccumulatorTensorAdd",
                stats_accumulator_handles=[handle],
                stamp_token=0,
                partition_ids=[draws.randint(0, 2, 9).astype(np.int32)],
                feature_ids=[draws.randint(0, 2, (9, 2)).astype(np.int64)],
                gradients=[draws.randn(9, 2).astype(np.float32)],
                hessians=[draws.randn(9, 2, 2).astype(np.float32)],
            )
        )
    return [
        run(call("StatsAccumulatorTensorSerialize", stats_accumulator_handle=handle)),
        run(
            call(
                "StatsAccumulatorTensorFlush",
                stats_accumulator_handle=handle,
                stamp_token=0,
                next_stamp_token=1,
            )
        ),
        run(call("StatsAccumulatorTensorSerialize", stats_accumulator_handle=handle)),
    ]


def _summaries(draws, count, epsilon):
    indices = np.stack([np.arange(0, count, 2), np.arange(0, count, 2) % 3], 1).astype(np.int64)
    return {
        "dense_float_features": [draws.randn(count, 1).round(1).astype(np.float32)],
        "sparse_float_feature_indices": [indices],
        "sparse_float_feature_values": [draws.randn(len(indices)).astype(np.float32)],
        "sparse_float_feature_shapes": [np.array([count, 3])],
        "example_weights": draws.rand(count, 1).round(1).astype(np.float32),
        "epsilon": epsilon,
    }


def _quantiles(is_even):
    def program(call, run):
        draws = np.random.RandomState(2)
        name = "even" if is_even else "quantiles"
        handle = call("QuantileStreamResourceHandleOp", container="", shared_name=name)
        one = {"quantile_accumulator_handle": handle}
        run(
            call(
                "CreateQuantileAccumulator",
                stamp_token=0,
                max_elements=1 << 40,
                epsilon=EPSILON,
                num_quantiles=7,
                generate_quantiles=is_even,
                container="",
                shared_name="",
                **one,
            )
        )
        found = []
        for count in (50, 300, 7):
            summary = run(call("MakeQuantileSummaries", **_summaries(draws, count, EPSILON)))
            found.append(summary)
            for each in summary:
                run(
                    call(
                        "QuantileAccumulatorAddSummaries",
                        quantile_accumulator_handles=[handle],
                        stamp_token=0,
                        summaries=[each[0]],
                    )
                )
            found.append(run(call("QuantileAccumulatorSerialize", **one)))
        for stamp in (0, 1):
            run(call("QuantileAccumulatorFlush", stamp_token=stamp, next_stamp_token=stamp + 1, **one))
            found.append(
                run(
                    call(
                        "QuantileAccumulatorGetBuckets",
                        quantile_accumulator_handles=[handle],
                        stamp_token=stamp + 1,
                    )
                )
            )
            run(
                call(
                    "QuantileAccumulatorAddSummaries",
                    quantile_accumulator_handles=[handle],
                    stamp_token=stamp + 1,
                    summaries=[summary[0][0]],
                )
            )
        found.append(run(call("QuantileAccumulatorFlushSummary", stamp_token=2, next_stamp_token=3, **one)))
        found.append(run(call("QuantileAccumulatorSerialize", **one)))
        return found

    return program


def _buckets(messages):
    def program(call, run):
        draws = np.random.RandomState(3)
        columns = _summaries(draws, 90, 0.01)
        del columns["epsilon"]
        config = messages.QuantileConfig(eps=0.02, num_quantiles=5).SerializeToString()
        found = [run(call("QuantileBuckets", dense_config=[config], sparse_config=[config], **columns))]
        found.append(
            run(
                call(
                    "Quantiles",
                    dense_values=columns["dense_float_features"],
                    sparse_values=columns["sparse_float_feature_values"],
                    dense_buckets=found[0][0],
                    sparse_buckets=found[0][1],
                    sparse_indices=columns["sparse_float_feature_indices"],
                )
            )
        )
        values = np.array([0, 1, 1.5, 3, 9], np.float32)
        bounds = np.array([1, 2, 3], np.float32)
        found.append(run(call("BucketizeWithInputBoundaries", input=values, boundaries=bounds)))
        return found

    return program
