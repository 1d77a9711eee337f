"""Operations of boosted trees on small numbers, for TensorFlow 1.15 and flowstone alike: `run(tf)` gives all
results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

EXAMPLES, DEPTH = 24, 3


def plain(value: Any) -> Any:
    """What JSON can hold of an array, rounded."""
    array = np.asarray(value)
    return np.round(array.astype(np.float64), 4).tolist()


def quantiles(tf: Any) -> Any:
    """Boundaries of streams with errors, and with quantiles."""
    found = []
    for epsilon, buckets, exact in ((0.01, 100, False), (0.1, 10, False), (0.1, 5, True), (0.3, 3, False)):
        draws = np.random.RandomState(3)
        with tf.Graph().as_default(), tf.Session() as session:
            handle = tf.raw_ops.BoostedTreesQuantileStreamResourceHandleOp(container="", shared_name="q")
            make = tf.raw_ops.BoostedTreesCreateQuantileStreamResource(
                quantile_stream_resource_handle=handle, epsilon=epsilon, num_streams=2
            )
            session.run(make)
            values, weights = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
            summaries = tf.raw_ops.BoostedTreesMakeQuantileSummaries(
                float_values=[values, -values * values], example_weights=weights, epsilon=epsilon
            )
            add = tf.raw_ops.BoostedTreesQuantileStreamResourceAddSummaries(
                quantile_stream_resource_handle=handle, summaries=summaries
            )
            for batch in range(8):
                drawn = np.round(draws.randn(40 + batch), 1)
                weighed = [1.0] if batch % 2 else np.round(draws.rand(40 + batch), 1)
                session.run(add, {values: drawn, weights: weighed})
            flush = tf.raw_ops.BoostedTreesQuantileStreamResourceFlush(
                quantile_stream_resource_handle=handle, num_buckets=buckets, generate_quantiles=exact
            )
            session.run(flush)
            boundaries = tf.raw_ops.BoostedTreesQuantileStreamResourceGetBucketBoundaries(
                quantile_stream_resource_handle=handle, num_features=2
            )
            asked = tf.constant([-100.0, -0.5, 0.0, 0.1, 100.0])
            buckets_of = tf.raw_ops.BoostedTreesBucketize(
                float_values=[asked, asked], bucket_boundaries=boundaries
            )
            found.append([plain(each) for each in session.run([*boundaries, *buckets_of])])
    return found


def gains(tf: Any) -> Any:
    """The best splits under regularisation."""
    draws = np.random.RandomState(1)
    sums = np.round(draws.rand(2, 4, 5, 2), 2).astype(np.float32)
    sums[..., 0] -= 0.5
    sums[0, 2] = 0
    found = []
    for l1, l2, complexity, least in ((0, 0, 0, 0), (0.3, 0, 0, 0), (0, 0.5, 0.1, 0), (0.1, 0.2, 0.3, 2.2)):
        with tf.Graph().as_default(), tf.Session() as session:
            parts = tf.raw_ops.BoostedTreesCalculateBestGainsPerFeature(
                node_id_range=[1, 4],
                stats_summary_list=list(sums),
                l1=float(l1),
                l2=float(l2),
                tree_complexity=float(complexity),
                min_node_weight=float(least),
                max_splits=4,
            )
            found.append([plain(each) for part in session.run(parts) for each in part])
    return found


class Growth:
    """An ensemble that is grown by squares of errors, from where the examples were cached."""

    def __init__(self, tf: Any, pruning: int, complexity: float) -> None:
        draws = np.random.RandomState(7)
        features = draws.randint(0, 4, (3, EXAMPLES)).astype(np.int32)
        labels = features[0] * 0.3 - (features[1] > 1) * features[2] * 0.5 + draws.randn(EXAMPLES) * 0.3
        self.tf, self.raw = tf, tf.raw_ops
        self.handle = self.raw.BoostedTreesEnsembleResourceHandleOp(container="", shared_name="e")
        self.features, self.labels = list(features), np.round(labels, 2).astype(np.float32)[:, None]
        self.places = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
        self.cached = tf.placeholder(tf.float32, [None, 1])
        partial, *self.after = self.raw.BoostedTreesTrainingPredict(
            tree_ensemble_handle=self.handle,
            cached_tree_ids=self.places[0],
            cached_node_ids=self.places[1],
            bucketized_features=self.features,
            logits_dimension=1,
        )
        self.logits = self.cached + partial
        self.states = list(self.raw.BoostedTreesGetEnsembleStates(tree_ensemble_handle=self.handle))
        self.update = self._update(pruning, complexity)

    def _update(self, pruning: int, complexity: float) -> Any:
        gradients = (self.logits - self.labels) / EXAMPLES
        sums = [
            self.tf.squeeze(
                self.raw.BoostedTreesMakeStatsSummary(
                    node_ids=self.after[1],
                    gradients=gradients,
                    hessians=self.tf.ones_like(gradients) / EXAMPLES,
                    bucketized_features_list=[feature],
                    max_splits=2**DEPTH - 1,
                    num_buckets=4,
                ),
                0,
            )
            for feature in self.features
        ]
        nodes, gained, thresholds, left, right = self.raw.BoostedTreesCalculateBestGainsPerFeature(
            node_id_range=self.states[4],
            stats_summary_list=sums,
            l1=0.0,
            l2=0.05,
            tree_complexity=complexity,
            min_node_weight=0.0,
            max_splits=2**DEPTH - 1,
        )
        return self.raw.BoostedTreesUpdateEnsemble(
            tree_ensemble_handle=self.handle,
            feature_ids=[0, 1, 2],
            node_ids=nodes,
            gains=gained,
            thresholds=thresholds,
            left_node_contribs=left,
            right_node_contribs=right,
            max_depth=DEPTH,
            learning_rate=0.3,
            pruning_mode=pruning,
        )

    def run(self, session: Any) -> Any:
        """What each of seven layers does, what the ensemble predicts then, and its message."""
        session.run(
            self.raw.BoostedTreesCreateEnsemble(
                tree_ensemble_handle=self.handle, stamp_token=3, tree_ensemble_serialized=""
            )
        )
        found = [plain(each) for each in session.run(self.states)]
        for mean in (-0.3, 0.001):
            center = self.raw.BoostedTreesCenterBias(
                tree_ensemble_handle=self.handle,
                mean_gradients=[[mean]],
                mean_hessians=[[1.0]],
                l1=0.0,
                l2=0.0,
            )
            found.append(bool(session.run(center)))
        state = [np.zeros(EXAMPLES, np.int32), np.full(EXAMPLES, -1, np.int32), np.zeros((EXAMPLES, 1))]
        for _ in range(7):
            feeds = {self.places[0]: state[0], self.places[1]: state[1], self.cached: state[2]}
            before = session.run([*self.after, self.logits], feeds)
            session.run(self.update, feeds)
            state = before
            found.append([plain(each) for each in (*before, *session.run(self.states))])
        predicted = self.raw.BoostedTreesPredict(
            tree_ensemble_handle=self.handle, bucketized_features=self.features, logits_dimension=1
        )
        stamp, message = session.run(self.raw.BoostedTreesSerializeEnsemble(tree_ensemble_handle=self.handle))
        ways = self.raw.BoostedTreesExampleDebugOutputs(
            tree_ensemble_handle=self.handle, bucketized_features=self.features, logits_dimension=1
        )
        outputs = [bytes(each).hex() for each in session.run(ways)[:4]]
        return [found, plain(session.run(predicted)), int(stamp), bytes(message).hex(), outputs]


def growth(tf: Any) -> Any:
    """Ensembles without pruning, and with pruning before and after."""
    found = []
    for pruning, complexity in ((0, 0.0), (1, 0.003), (2, 0.0035), (2, 0.0015)):
        with tf.Graph().as_default(), tf.Session() as session:
            found.append(Growth(tf, pruning, complexity).run(session))
    return found


def run(tf: Any) -> dict[str, Any]:
    """All results by name."""
    return {"gains": gains(tf), "growth": growth(tf), "quantiles": quantiles(tf)}
