"""Types of results as NumPy 1 chose them (make_promotion_goldens.py), in programs that the command runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from installed_programs import run_as_program

GOLDEN = Path(__file__).parents[2] / "golden"


def test_results_have_the_types_of_numpy_1(tmp_path: Path) -> None:
    program = f"""
    import json, sys
    sys.path.insert(0, {str(GOLDEN)!r})
    import make_promotion_goldens
    print(json.dumps(make_promotion_goldens.results()))
    """
    result = run_as_program(program, tmp_path)
    assert result.returncode == 0, result.stderr
    found, expected = json.loads(result.stdout), json.loads((GOLDEN / "promotion.json").read_text())
    assert sorted(found) == sorted(expected)
    different = {key: (found[key], expected[key]) for key in expected if found[key] != expected[key]}
    assert not different


def test_values_of_programs(tmp_path: Path) -> None:
    result = run_as_program(
        """
        import numpy as np
        rows = np.ones((2, 3), np.float32)
        assert (rows * np.sqrt(2.0 / 3)).dtype == (rows / np.prod(rows.shape)).dtype == np.float32
        assert (np.float64(2) * rows).dtype == np.float32 and (2.5 - rows).dtype == np.float32
        total = 0
        for _ in range(3):
            total += np.float32(0.1) / 3
        assert type(total) is np.float64 and abs(total - np.float32(0.1)) < 1e-15
        pixels = np.array([250, 1], np.uint8)
        assert (pixels + 300).tolist() == [550, 301] and int(pixels[0] * 256) == 64000
        pixels += np.int64(2)
        assert pixels.dtype == np.uint8 and pixels.tolist() == [252, 3]
        assert [1, 2] * np.int64(2) == [1, 2, 1, 2] == np.int64(2) * [1, 2]
        assert (np.bool_(True) + np.bool_(False)).dtype == bool and np.str_("a") + "b" == "ab"
        assert np.datetime64("2020-01-02") - np.timedelta64(1, "D") == np.datetime64("2020-01-01")
        assert (np.longdouble(1) + 1.0).dtype == np.longdouble and 2 ** np.int32(3) == 8
        assert (np.array(["a", "b"], object) + "c").tolist() == ["ac", "bc"]
        assert (np.float32(1) + [1, 2]).tolist() == [2, 3] and -np.float32(1) == -1

        class Other:
            __array_priority__ = 100

            def __rmul__(self, value):
                return "mine"

        assert np.float32(2) * Other() == rows * Other() == "mine"
        assert np.ma.array([1.0, 2.0], mask=[0, 1]).sum() == 1
        assert (np.matrix([[1, 2]]) * 2).tolist() == [[2, 4]]
        import tensorflow as tf
        product = np.float32(2) * tf.constant(3.0) + rows * tf.ones([2, 3])
        with tf.Session() as session:
            assert session.run(product).tolist() == [[7] * 3] * 2
        """,
        tmp_path,
    )
    assert result.returncode == 0, result.stderr


def test_numpy_stays_as_it_is_without_the_command() -> None:
    new = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
    assert (np.float32(0.5) + 1.0).dtype == (np.float32 if new else np.float64)
