"""Which profile is taken, what is refused, and the questions that choose kernels."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine import Machine, calibration_file, load, save, using
from flowstone.framework.machine.machine_profiles import (
    AMD,
    ARM,
    INTEL,
    NEVER,
    PROFILES,
    X86,
    ZEN5,
    Profile,
    generic,
)

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture
def chosen(monkeypatch: Any, tmp_path: Path) -> Any:
    """A function of the processor's name and FLOWSTONE_MACHINE: the name of the profile that is taken."""
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))

    def choose(processor: str, named: str = "", features: str = "") -> str:
        monkeypatch.setattr(machine, "processor", lambda: processor)
        monkeypatch.setattr(machine, "processor_features", lambda: frozenset(features.split()))
        monkeypatch.setattr(flags, "MACHINE", named)
        return machine._chosen().name

    return choose


# ---- which profile


def test_the_profile_of_the_processor_else_the_generic_one(chosen: Any) -> None:
    assert chosen("AuthenticAMD 26 2") == "amd-zen5"
    assert chosen("AuthenticAMD 25 1") == "amd-zen3"
    assert chosen("AuthenticAMD 25 17") == chosen("AuthenticAMD 25 97") == "amd-zen4"
    assert chosen("AuthenticAMD 23 49") == "amd"
    assert chosen("GenuineIntel 6 143") == chosen("arm64") == generic().name


_AVX512 = "fpu avx2 avx512f avx512dq avx512bw avx512vl"


@pytest.mark.parametrize("model", [85, 106, 143, 167, 173, 207, 999])
def test_intels_vectors_decide_and_not_its_models(chosen: Any, model: int) -> None:
    assert chosen(f"GenuineIntel 6 {model}", features=_AVX512) == "intel-avx512"
    assert chosen(f"GenuineIntel 6 {model}", features="fpu avx2 avx512f") == generic().name
    assert chosen(f"GenuineIntel 6 {model}", features="fpu avx2") == generic().name
    assert chosen(f"GenuineIntel 5 {model}", features=_AVX512) == generic().name


def test_what_calibrate_kept_goes_before_and_a_name_before_that(chosen: Any, tmp_path: Path) -> None:
    assert chosen("GenuineIntel 6 143") == generic().name
    save(ZEN5._replace(name="mine"), calibration_file())
    assert calibration_file().is_relative_to(tmp_path)
    assert chosen("GenuineIntel 6 143") == "mine"
    assert chosen("GenuineIntel 6 1") == generic().name  # another processor
    assert chosen("GenuineIntel 6 143", "arm") == "arm"
    save(X86._replace(name="a file"), tmp_path / "other.json")
    assert chosen("GenuineIntel 6 143", str(tmp_path / "other.json")) == "a file"


def test_a_name_of_nothing_says_what_there_is(chosen: Any) -> None:
    with pytest.raises(
        ValueError,
        match=r"FLOWSTONE_MACHINE='zen9'.*amd-zen5, amd-zen4, amd-zen3, amd, intel-avx512, x86, arm",
    ):
        chosen("", "zen9")


def test_the_environment_names_it() -> None:
    program = "import flowstone; from flowstone.framework.machine import machine; print(machine.current())"
    environment = {"FLOWSTONE_MACHINE": "arm", "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.stdout == "<Machine 'arm'>\n", done.stderr


def test_tests_fix_it() -> None:
    assert machine.current().profile is ZEN5


def test_using_ends(set_profile: Any) -> None:
    with using(X86) as here:
        assert machine.current() is here and here.profile is X86
    assert machine.current().profile is ZEN5


# ---- files


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_a_file_holds_all_of_a_profile(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "profile.json"
    save(profile, path)
    assert load(path) == profile
    assert [each.name for each in path.parent.iterdir()] == ["profile.json"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "Expecting value"),
        ("[1]", "list"),
        ('{"processors": []}', "name"),
        ('{"name": "x", "colour": 1}', "colour"),
        ('{"name": "x", "packed_rows": "many"}', "packed_rows is 'many'"),
        ('{"name": "x", "core_cache": true}', "core_cache is True"),
        ('{"name": "x", "winograd": {"speed": 2}}', "speed"),
        ('{"name": 3}', "name is 3"),
    ],
)
def test_a_file_that_is_no_profile_is_named(text: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="is not a profile of a machine") as caught:
        load(path)
    assert str(path) in str(caught.value) and what in str(caught.value)


def test_files_are_readable(tmp_path: Path) -> None:
    save(ZEN5, tmp_path / "zen5.json")
    assert json.loads((tmp_path / "zen5.json").read_text())["winograd"]["efficiency"] == 0.88


# ---- questions


@pytest.mark.needs_onednn
@pytest.mark.parametrize(
    ("sizes", "transposed", "by_onednn"),
    [
        ((32, 128, 128), False, True),  # 524,288 multiplications
        ((32, 120, 128), False, False),
        ((64, 128, 128), False, False),  # neither side is short
        ((64, 160, 128), False, True),
        ((64, 160, 128), True, False),  # oneDNN copies the first operand
        ((1, 4096, 4096), False, False),
        ((4096, 1, 4096), False, False),
    ],
)
def test_products_by_their_sizes(sizes: Any, transposed: bool, by_onednn: bool) -> None:
    assert Machine(ZEN5).prefers_onednn(*sizes, transposed) is by_onednn
    assert Machine(AMD).prefers_onednn(*sizes, transposed) is by_onednn
    assert not Machine(X86).prefers_onednn(*sizes, transposed)


@pytest.mark.needs_onednn
def test_narrow_products_are_transposed_unless_onednn_sums_long() -> None:
    here = Machine(ZEN5)
    assert here.product_kernel(100, 784, 10) == (False, True)
    assert here.product_kernel(100, 100, 10) == (True, False)
    assert here.product_kernel(1000, 100, 10) == (True, True)
    assert here.product_kernel(8, 100, 10) == (False, False)
    assert Machine(ARM).product_kernel(1000, 784, 10) == (True, False)
    assert Machine(Profile("none")).product_kernel(1000, 784, 10) == (False, False)


def test_narrow_products_by_rows_stay_rows_where_blas_makes_them_so() -> None:
    here = Machine(INTEL)
    assert here.product_kernel(1000, 784, 10) == (False, False)
    assert here.product_kernel(1000, 784, 10, transposed=True) == (True, False)


def test_the_plain_profiles_choose_atens_kernels() -> None:
    for profile in (X86, ARM):
        here = Machine(profile)
        assert here.product_kernel(512, 512, 512) == (False, False)
        assert here.accumulates_by_blas(512, 512, 512) and not here.multiplies_by_onednn()
        assert not here.gains_by_packing(16, 4096, 4096, True) and not here.rows_of_a_block(9999, 999, 9999)
        assert profile.winograd is None and profile.sliding_maxima == NEVER
    assert not Machine(ARM).runs_layers(100, 1000) and not Machine(ARM).convolves_by_onednn(1 << 40)


def test_calls_and_caches() -> None:
    here = Machine(ZEN5)
    assert here.elements(0.5) == 2048 and here.repays(2048, 0.5) and not here.repays(2047, 0.5)
    assert here.stays_cached(4 << 20) and not here.stays_cached((4 << 20) + 1)
    assert here.exceeds_caches(32 << 20) and not here.exceeds_caches((32 << 20) - 1)


# ---- what hangs on it


def test_the_same_profile_gives_the_same_plan_and_explain_names_it() -> None:
    def explained(profile: Profile) -> str:
        with using(profile), tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [100, 64])
            y = tf.matmul(x, tf.get_variable("w", [64, 10], use_resource=True))
            return session.explain(y, [x])

    assert explained(ZEN5) == explained(ZEN5) != explained(X86)
    assert explained(X86).startswith("kernels by the profile x86\n")


def test_results_are_the_same_by_every_profile() -> None:
    def losses(profile: Profile) -> list[float]:
        with using(profile), tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(1)
            x = tf.random_normal([8, 16, 16, 8], seed=2)
            w = tf.get_variable("w", [3, 3, 8, 40], initializer=tf.random_normal_initializer(0, 0.1, 3))
            images = tf.nn.max_pool(
                tf.nn.relu(tf.nn.conv2d(x, w, [1] * 4, "SAME")), [1, 3, 3, 1], [1] * 4, "SAME"
            )
            loss = tf.reduce_mean(tf.square(tf.tanh(tf.reshape(images, [8, -1]))))
            step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
            session.run(tf.global_variables_initializer())
            return [session.run([loss, step])[0] for _ in range(3)]

    wanted = losses(ARM)
    for profile in (X86, AMD, INTEL, ZEN5):
        assert losses(profile) == pytest.approx(wanted, rel=1e-4)


def test_placement_goes_by_the_profile(set_profile: Any) -> None:
    from flowstone.placement.cost_model import CostModel

    set_profile(operations_per_us=7.0, bytes_per_us=3.0, call_us=2.0)
    assert CostModel().rates["CPU"] == (2.0, 7.0, 3.0)


def test_layers_by_products() -> None:
    assert not Machine(X86).runs_layers_by_products(1 << 30, True)
    intel = Machine(INTEL)
    assert intel.runs_layers_by_products(1, True) and intel.runs_layers_by_products(1 << 18, False)
    assert not intel.runs_layers_by_products((1 << 18) - 1, False)


def test_products_in_loops() -> None:
    here = Machine(X86._replace(looped_products=7, looped_products_with_gradients=5))
    assert here.looped_products(False) == 7 and here.looped_products(True) == 5
    assert Machine(X86).looped_products(True) == Machine(ARM).looped_products(False) == 1 << 18


def test_threads_of_loops() -> None:
    assert Machine(X86).loop_threads() == torch.get_num_threads()
