from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.runtime.plans.session_options import plan_options, release_states, session_devices
from flowstone.runtime.process.device import LOCALHOST


def options(config: Any = None, **keywords: Any) -> Any:
    return plan_options(config, ResourceStore(), **keywords)


def test_without_a_config_a_session_has_the_devices_of_this_process() -> None:
    found = options()
    assert found.devices[0].name == f"{LOCALHOST}/device:CPU:0" and not found.soft_placement
    assert set(found.environments) == {device.name for device in found.devices}


def test_a_config_says_how_many_devices_and_how_they_are_used() -> None:
    config = tf.ConfigProto(device_count={"CPU": 3}, allow_soft_placement=True)
    config.graph_options.enable_bfloat16_sendrecv = True
    found = options(config)
    assert [d.device_type for d in found.devices].count("CPU") == 3
    assert found.soft_placement and found.compresses


def test_the_devices_of_a_task_bear_its_name() -> None:
    devices = session_devices(tf.ConfigProto(device_count={"CPU": 2}), "/job:ps/replica:0/task:1")
    assert devices[1].name == "/job:ps/replica:0/task:1/device:CPU:1"
    assert options(devices=devices).devices == devices


def test_level_l0_switches_rewriting_off() -> None:
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    assert "fold_constants" in options(config).disabled_passes


def test_states_that_run_are_released() -> None:
    released = []

    class State:
        def release(self) -> None:
            released.append(self)

    found = options()
    next(iter(found.environments.values())).states["a"] = State()
    release_states(found)
    assert len(released) == 1
