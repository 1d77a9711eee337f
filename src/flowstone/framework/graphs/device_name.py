"""Names of devices, whole or in part (White paper 3, "Devices"; 4.3, "Node placement").

A full name is `/job:localhost/replica:0/task:0/device:CPU:0`. A program may give any part of it
(`/job:ps/task:1`, `/gpu:0`, `/cpu:*`); nested `with tf.device` blocks complete one another, the inner one
winning field by field.

    >>> canonical_name("/task:1/job:ps/gpu:0")
    '/job:ps/task:1/device:GPU:0'
    >>> merge_names("/job:ps/cpu:0", "/task:1/gpu:*")
    '/job:ps/task:1/device:GPU:0'

Graph building asks for the same few names again and again, so the work on names is remembered.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

DEVICE_TYPES = ("CPU", "GPU", "TPU", "CUSTOM")
"""The types with a short form: `/gpu:0` for `/device:GPU:0`. Others are named in full."""


class _Fields(NamedTuple):
    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None


def _as_device_type(device_type: str | None) -> str | None:
    """CPU and GPU may be written in either case; other types are as they are."""
    return device_type.upper() if device_type in ("cpu", "gpu") else device_type


def _as_index(value: Any) -> int | None:
    return None if value is None else int(value)


def _parse_part(fields: dict[str, Any], part: str, name: str) -> None:
    words = part.split(":")
    key, values = words[0], words[1:]
    if key == "job" and len(values) == 1:
        fields["job"] = values[0]
    elif key in ("replica", "task") and len(values) == 1:
        fields[key] = int(values[0])
    elif (key == "device" and len(values) == 2) or (key.upper() in DEVICE_TYPES and len(values) <= 1):
        if "device_type" in fields:
            raise ValueError(f"Multiple device types are not allowed while parsing the device spec: {name}.")
        fields["device_type"] = _as_device_type(values[0] if key == "device" else key.upper())
        index = values[-1] if values else "*"
        fields["device_index"] = None if index == "*" else int(index)
    else:
        raise ValueError(f"Unknown attribute '{key}' is encountered while parsing the device spec: '{name}'.")


@lru_cache(maxsize=4096)
def _parse(name: str) -> _Fields:
    fields: dict[str, Any] = {}
    for part in name.split("/"):
        if part:
            _parse_part(fields, part, name)
    return _Fields(**fields)


@lru_cache(maxsize=4096)
def _format(fields: _Fields) -> str:
    job, replica, task, device_type, device_index = fields
    text = "" if job is None else f"/job:{job}"
    if replica is not None:
        text += f"/replica:{replica}"
    if task is not None:
        text += f"/task:{task}"
    if device_type is not None:
        text += f"/device:{device_type}:{'*' if device_index is None else device_index}"
    return text


def _merge(outer: _Fields, inner: _Fields) -> _Fields:
    said = {key: value for key, value in inner._asdict().items() if value is not None}
    return outer._replace(**said)


class DeviceSpec:
    """A partial device name as fields; each may be None, "not said".

    Args:
        job: the job's name.
        replica, task, device_index: numbers, or texts of numbers.
        device_type: "CPU", "GPU" (in either case), or a registered type's name.

    Raises:
        ValueError: a number is malformed.
    """

    __slots__ = ("_fields",)

    def __init__(
        self,
        job: str | None = None,
        replica: int | str | None = None,
        task: int | str | None = None,
        device_type: str | None = None,
        device_index: int | str | None = None,
    ) -> None:
        self._fields = _Fields(
            None if job is None else str(job),
            _as_index(replica),
            _as_index(task),
            _as_device_type(device_type),
            _as_index(device_index),
        )

    @property
    def job(self) -> str | None:
        """The job's name."""
        return self._fields.job

    @job.setter
    def job(self, job: str | None) -> None:
        self._fields = self._fields._replace(job=None if job is None else str(job))

    @property
    def replica(self) -> int | None:
        """The number of the replica in the job."""
        return self._fields.replica

    @replica.setter
    def replica(self, replica: int | str | None) -> None:
        self._fields = self._fields._replace(replica=_as_index(replica))

    @property
    def task(self) -> int | None:
        """The number of the task (one process) in the job."""
        return self._fields.task

    @task.setter
    def task(self, task: int | str | None) -> None:
        self._fields = self._fields._replace(task=_as_index(task))

    @property
    def device_type(self) -> str | None:
        """The type of the device, "CPU" for example."""
        return self._fields.device_type

    @device_type.setter
    def device_type(self, device_type: str | None) -> None:
        self._fields = self._fields._replace(device_type=_as_device_type(device_type))

    @property
    def device_index(self) -> int | None:
        """The number of the device among those of its type in the task."""
        return self._fields.device_index

    @device_index.setter
    def device_index(self, device_index: int | str | None) -> None:
        self._fields = self._fields._replace(device_index=_as_index(device_index))

    @staticmethod
    def from_string(spec: str | None) -> DeviceSpec:
        """The spec of a name such as "/job:w/gpu:0". ValueError if the name is malformed."""
        return DeviceSpec().parse_from_string(spec or "")

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Becomes the spec of a name, forgetting all fields, and returns itself. ValueError if malformed."""
        self._fields = _parse(spec)
        return self

    def merge_from(self, dev: DeviceSpec) -> None:
        """Takes over the fields that `dev` says."""
        self._fields = _merge(self._fields, dev._fields)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """A new spec: the fields that `dev` says, the others from this one."""
        return DeviceSpec(*_merge(self._fields, dev._fields))

    def replace(self, **fields: Any) -> DeviceSpec:
        """A new spec with the given fields changed. TypeError for a field that does not exist."""
        return DeviceSpec(**{**self._fields._asdict(), **fields})

    def to_string(self) -> str:
        """The name in its canonical form, "/job:w/replica:0/task:1/device:GPU:0"; "" if nothing is said."""
        return _format(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(self._fields)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value}" for name, value in self._fields._asdict().items())
        return f"<DeviceSpec({fields})>"


@lru_cache(maxsize=4096)
def _canonical(name: str) -> str:
    return _format(_parse(name))


def canonical_name(device: str | DeviceSpec | None) -> str:
    """The canonical form of a name or spec; "" for None. ValueError if the name is malformed."""
    if device is None:
        return ""
    return device.to_string() if isinstance(device, DeviceSpec) else _canonical(device)


def check_valid(spec: str) -> None:
    """Checks that a device name is well-formed, or raises ValueError."""
    _parse(spec)


@lru_cache(maxsize=4096)
def merge_names(outer: str, inner: str) -> str:
    """The canonical name: `inner` field by field, `outer` where it is silent. ValueError if malformed."""
    return _format(_merge(_parse(outer), _parse(inner)))


class MergeDevice:
    """A device function: completes what a node says about its device with a spec from further out."""

    __slots__ = ("name",)

    def __init__(self, spec: str | DeviceSpec | None) -> None:
        self.name = canonical_name(spec)

    def __call__(self, node: Any) -> str:
        """The canonical name for a node (an object with a `device` name). ValueError if that is malformed."""
        return merge_names(self.name, node.device or "")

    def __repr__(self) -> str:
        return f"<MergeDevice spec: {self.name}>"


_merge_device = lru_cache(maxsize=4096)(MergeDevice)


def merge_device(spec: str | DeviceSpec | None) -> MergeDevice:
    """The device function of `with tf.device(spec)`; the node's own fields win. ValueError if malformed."""
    return _merge_device(canonical_name(spec))
