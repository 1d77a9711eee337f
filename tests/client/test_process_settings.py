"""What `tf.config` sets holds for sessions made without a ConfigProto."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("nothing_set")


def taken(**given: Any) -> Any:
    with tf.Graph().as_default(), tf.Session(**given) as session:
        return session._config


def test_nothing_set_is_no_config() -> None:
    assert not tf.config.get_soft_device_placement()
    assert tf.config.threading.get_inter_op_parallelism_threads() == 0
    assert tf.config.optimizer.get_jit() == ""
    assert taken() is None


def test_sessions_take_what_is_set() -> None:
    tf.config.set_soft_device_placement(True)
    tf.config.threading.set_inter_op_parallelism_threads(3)
    tf.config.threading.set_intra_op_parallelism_threads(2)
    tf.debugging.set_log_device_placement(False)
    tf.config.optimizer.set_jit("autoclustering")
    tf.config.optimizer.set_experimental_options(
        {"constant_folding": True, "auto_parallel": True, "disable_meta_optimizer": True}
    )
    config = taken()
    assert (config.inter_op_parallelism_threads, config.intra_op_parallelism_threads) == (3, 2)
    assert config.allow_soft_placement
    assert not config.log_device_placement
    assert tf.config.threading.get_inter_op_parallelism_threads() == 3
    assert tf.config.threading.get_intra_op_parallelism_threads() == 2
    assert tf.config.optimizer.get_jit() == "autoclustering"
    assert tf.config.optimizer.get_experimental_options() == {
        "disable_meta_optimizer": True,
        "disable_model_pruning": False,
        "constant_folding": True,
        "auto_parallel": True,
    }


def test_a_given_config_counts_alone() -> None:
    tf.config.set_soft_device_placement(True)
    given = tf.ConfigProto(inter_op_parallelism_threads=5)
    assert taken(config=given) is given
    assert not given.allow_soft_placement


def test_a_processor_in_parts() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()]
    tf.config.set_logical_device_configuration(cpu, parts)
    assert tf.config.get_logical_device_configuration(cpu) == parts
    assert [each.name for each in tf.config.list_logical_devices("CPU")] == ["/device:CPU:0", "/device:CPU:1"]
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.device("/cpu:1"):
            doubled = tf.constant(2) * 2
        assert session.run(doubled) == 4


@pytest.mark.parametrize(
    "parts", [[], [tf.config.LogicalDeviceConfiguration(memory_limit=10)]], ids=["none", "limited"]
)
def test_a_processor_cannot_be_divided_so(parts: list[Any]) -> None:
    with pytest.raises(ValueError, match="memory_limit"):
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], parts)


def test_visible_devices() -> None:
    cpus = tf.config.list_physical_devices("CPU")
    tf.config.set_visible_devices(cpus, "CPU")
    assert tf.config.get_visible_devices("CPU") == cpus
    with pytest.raises(ValueError, match="needs a CPU"):
        tf.config.set_visible_devices([], "CPU")
    with pytest.raises(ValueError, match="Unrecognized"):
        tf.config.set_visible_devices([tf.config.PhysicalDevice("a", "b")])
    with pytest.raises(ValueError, match="Unrecognized"):
        tf.config.get_logical_device_configuration(tf.config.PhysicalDevice("a", "b"))


def test_devices_as_1_15_names_them() -> None:
    experimental = tf.config.experimental
    cpu = experimental.list_physical_devices("CPU")[0]
    assert experimental.get_visible_devices("CPU") == [cpu]
    assert experimental.get_memory_growth(cpu) is False
    for gpu in experimental.list_physical_devices("GPU"):
        experimental.set_memory_growth(gpu, True)
        assert experimental.get_memory_growth(gpu)
    with pytest.raises(ValueError, match="Cannot set memory growth on non-GPU devices"):
        experimental.set_memory_growth(cpu, True)
    with pytest.raises(ValueError, match="Unrecognized device"):
        experimental.get_memory_growth(tf.config.PhysicalDevice("a", "b"))
    parts = [experimental.VirtualDeviceConfiguration()] * 2
    experimental.set_virtual_device_configuration(cpu, parts)
    assert experimental.get_virtual_device_configuration(cpu) == parts
    names = [f"/job:localhost/replica:0/task:0/device:CPU:{number}" for number in range(2)]
    assert tf.config.experimental_list_devices()[:2] == names
    assert [each.name for each in experimental.list_logical_devices("CPU")] == [
        "/device:CPU:0",
        "/device:CPU:1",
    ]


def test_what_eager_execution_alone_heeds() -> None:
    experimental = tf.config.experimental
    experimental.set_synchronous_execution(False)
    assert experimental.get_synchronous_execution() is True
    experimental.set_device_policy("warn")
    assert experimental.get_device_policy() == "silent"
    with pytest.raises(ValueError, match="Not a valid device policy: 'bad'"):
        experimental.set_device_policy("bad")
