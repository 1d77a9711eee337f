"""Hosts for tests: network namespaces of Linux, joined by a bridge; links can be cut and slowed down."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator

_NUMBERS = itertools.count(1)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def why_not() -> str:
    """Why this machine cannot have hosts; "" if it can."""
    if shutil.which("ip") is None:
        return "the command ip (iproute2) is not installed"
    try:
        with joined_hosts(1):
            return ""
    except (OSError, subprocess.SubprocessError) as error:
        return f"network namespaces cannot be made here: {error}"


class Hosts:
    """Network namespaces with the addresses 10.77.0.1, 10.77.0.2 …, on one bridge."""

    def __init__(self, count: int) -> None:
        self._name = f"fs{os.getpid()}-{next(_NUMBERS)}"
        self.addresses = [f"10.77.0.{i + 1}" for i in range(count)]

    def make(self) -> None:
        """Makes the namespaces. OSError where that is not allowed."""
        hub = self._hub
        _run("ip", "netns", "add", hub)
        _run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", hub, "link", "set", "bridge", "up")
        for i, address in enumerate(self.addresses):
            host = self._host(i)
            _run("ip", "netns", "add", host)
            _run(
                "ip",
                "-n",
                hub,
                "link",
                "add",
                f"to{i}",
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                host,
            )
            _run("ip", "-n", hub, "link", "set", f"to{i}", "master", "bridge", "up")
            _run("ip", "-n", host, "address", "add", f"{address}/24", "dev", "eth0")
            _run("ip", "-n", host, "link", "set", "eth0", "up")
            _run("ip", "-n", host, "link", "set", "lo", "up")

    def remove(self) -> None:
        """Removes the namespaces; their links go with them."""
        for name in (*(self._host(i) for i in range(len(self.addresses))), self._hub):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, timeout=30)

    def command(self, i: int, *command: str) -> list[str]:
        """The command, on host `i`."""
        return ["ip", "netns", "exec", self._host(i), *command]

    def cut(self, i: int) -> None:
        """Takes host `i` off the network; nobody is told."""
        _run("ip", "-n", self._hub, "link", "set", f"to{i}", "down")

    def mend(self, i: int) -> None:
        """Puts host `i` back."""
        _run("ip", "-n", self._hub, "link", "set", f"to{i}", "up")

    def delay(self, i: int, milliseconds: int) -> None:
        """Has packets to host `i` come so much later. OSError where tc or netem is lacking."""
        if shutil.which("tc") is None:
            raise OSError("the command tc (iproute2) is not installed")
        _run(
            "tc",
            "-n",
            self._hub,
            "qdisc",
            "add",
            "dev",
            f"to{i}",
            "root",
            "netem",
            "delay",
            f"{milliseconds}ms",
        )

    @property
    def _hub(self) -> str:
        return f"{self._name}-hub"

    def _host(self, i: int) -> str:
        return f"{self._name}-{i}"


@contextlib.contextmanager
def joined_hosts(count: int) -> Iterator[Hosts]:
    """So many hosts, within the context. OSError where the system has or allows none."""
    hosts = Hosts(count)
    try:
        hosts.make()
        yield hosts
    finally:
        hosts.remove()
