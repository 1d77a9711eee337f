"""How many intra-op threads the steps of a task have, where several tasks share a host.

OpenMP's threads wait for each other at the end of every kernel, and spin while they do. Two processes that
each have a team for all cores keep each other from running: a synchronous step of a perceptron on two workers
of a machine with two cores took 12 ms, and 7 ms with one thread a worker. So the tasks of a host divide its
cores. Tasks of the job ``ps`` hold variables and compute little: the others' shares do not count them.

>>> addresses = {"/job:ps/replica:0/task:0": "h0:1", "/job:worker/replica:0/task:0": "h0:2",
...              "/job:worker/replica:0/task:1": "h0:3", "/job:worker/replica:0/task:2": "h1:2"}
>>> share_of_cores(addresses, "/job:worker/replica:0/task:1", 8)
4
>>> share_of_cores(addresses, "/job:worker/replica:0/task:2", 8)  # alone: as many as torch has
0
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

__all__ = ["share_of_cores"]

_PASSIVE = "/job:ps/"  # as `tf.train.replica_device_setter` calls the job that has the variables
_LOOPBACK = "localhost"


def share_of_cores(addresses: Mapping[str, str], own: str, cores: int) -> int:
    """The threads of the steps of the task `own`, one of those at these addresses, on a host with so many
    cores; 0 for as many as there are."""
    host = _host(addresses[own])
    here = sum(not task.startswith(_PASSIVE) for task, address in addresses.items() if _host(address) == host)
    return 0 if here <= 1 else max(1, cores // here)


def _host(address: str) -> str:
    """The host of an address; one name for all of the loopback interface."""
    host = address.rpartition(":")[0].strip("[]") or _LOOPBACK
    try:
        return _LOOPBACK if ipaddress.ip_address(host).is_loopback else host
    except ValueError:  # a name
        return host
