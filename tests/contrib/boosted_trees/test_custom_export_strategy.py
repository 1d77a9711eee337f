"""What `tf.contrib.boosted_trees` has not says what to use."""

from __future__ import annotations

import pytest

from flowstone.contrib.boosted_trees import custom_export_strategy


def test_the_generic_tree_format_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="BoostedTreesClassifier"):
        custom_export_strategy.make_custom_export_strategy("trees", None, None, None)
    with pytest.raises(NotImplementedError, match="export_savedmodel"):
        custom_export_strategy.convert_to_universal_format(None, [], 0, 0, 0)
