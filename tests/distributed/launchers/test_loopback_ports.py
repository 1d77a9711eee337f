"""Ports that are held until a task takes them."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from flowstone.distributed.launchers.loopback_ports import HeldPort, hold_ports, is_taken

HOST = "127.0.0.1"


def listening() -> socket.socket:
    return socket.create_server((HOST, 0))


def test_a_held_port_is_nobody_elses() -> None:
    (held,) = hold_ports(1)
    with held:
        with pytest.raises(OSError):
            HeldPort(held.port)
        with pytest.raises(OSError):
            socket.create_server((HOST, held.port))
        held.release()
        with pytest.raises(OSError):  # another launcher still finds it locked
            HeldPort(held.port)
        with socket.create_server((HOST, held.port)):
            assert is_taken(held.port)
        assert not is_taken(held.port)
    with HeldPort(held.port) as again:
        assert again.port == held.port


def test_a_port_in_use_is_not_held() -> None:
    with listening() as other:
        port = other.getsockname()[1]
        for _ in range(2):  # the lock is given back
            with pytest.raises(OSError, match="in use"):
                HeldPort(port)


def test_ports_lie_below_those_that_the_kernel_gives_away() -> None:
    held = hold_ports(20)
    with listening() as other:
        given = other.getsockname()[1]
    ports = [each.port for each in held]
    for each in held:
        each.close()
    assert len(set(ports)) == 20
    assert max(ports) < given


def test_other_processes_respect_the_lock() -> None:
    """The file alone is imported there: flowstone takes seconds."""
    folder = str(Path(sys.modules[HeldPort.__module__].__file__ or "").parent)
    (held,) = hold_ports(1)
    with held:
        held.release()
        program = f"from loopback_ports import HeldPort; HeldPort({held.port})"
        run = subprocess.run(
            [sys.executable, "-S", "-c", program], cwd=folder, capture_output=True, text=True
        )
    assert run.stderr.splitlines()[-1] == "OSError: [Errno 98] Address already in use"
