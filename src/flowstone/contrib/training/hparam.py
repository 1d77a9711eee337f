"""Hyperparameters of a model, by name: `HParams`, and how they are read from the text of a command line.

The text is a list of assignments, separated by commas:

    learning_rate=0.1,layers=[64,32],layers[0]=128,name=first

A value keeps the type of the parameter that it replaces. A list is in brackets; an index in brackets assigns
one item.

    >>> parameters = HParams(learning_rate=0.1, layers=[64, 32])
    >>> parameters.parse("learning_rate=0.5,layers=[16]").layers
    [16]
"""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Callable, Mapping
from typing import Any

from flowstone.io.proto.hparam_pb2 import HParamDef

__all__ = ["HParams", "parse_values"]

_ASSIGNMENT = re.compile(
    r"(?P<name>[a-zA-Z][\w.]*)(?:\[ *(?P<index>\d+) *\])?\s*=\s*"
    r"(?:(?P<value>[^,\[]*)|\[(?P<list>[^\]]*)\])(?:,|$)"
)
_TRUTHS = {"true": True, "True": True, "false": False, "False": False}


def parse_values(
    values: str, type_map: Mapping[str, Callable[[Any], Any]], ignore_unknown: bool = False
) -> dict[str, Any]:
    """The values that a text assigns: scalars, lists, or for ``name[index]=value`` a dict by index.

    `type_map` has the type of each name; `ignore_unknown`: names that it lacks are passed over. Raises
    ValueError for a text that is no list of assignments, a value of another type, an unknown name, or a name
    that is assigned twice.
    """
    results: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _ASSIGNMENT.match(values, position)
        if match is None:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
        position = match.end()
        name = match["name"]
        if name in type_map:
            _assign(results, match, type_map[name], values)
        elif not ignore_unknown:
            raise ValueError(f"Unknown hyperparameter type for {name}")
    return results


def _assign(results: dict[str, Any], match: re.Match[str], kind: Callable[[Any], Any], values: str) -> None:
    name, index = match["name"], match["index"]
    if match["value"] is None and index is not None:
        raise ValueError("Assignment of a list to a list index.")
    if index is None:
        if name in results:
            raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
        if match["value"] is not None:
            results[name] = _parsed(match["value"], name, kind, values)
        else:
            items = [item for item in re.split(r"[ ,]", match["list"]) if item]
            results[name] = [_parsed(item, name, kind, values) for item in items]
        return
    by_index = results.setdefault(name, {})
    if not isinstance(by_index, dict):
        raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
    if int(index) in by_index:
        raise ValueError(f"Multiple assignments to variable '{name}[{int(index)}]' in {values}")
    by_index[int(index)] = _parsed(match["value"], name, kind, values)


def _truth(text: str) -> bool:
    """A truth by its name or as a whole number; ValueError for other texts."""
    return _TRUTHS[text] if text in _TRUTHS else bool(int(text))


def _parsed(text: str, name: str, kind: Callable[[Any], Any], values: str) -> Any:
    try:
        return _truth(text) if kind is bool else kind(text)
    except ValueError:
        kind_name = getattr(kind, "__name__", str(kind))
        raise ValueError(
            f"Could not parse hparam '{name}' of type '{kind_name}' with value '{text}' in {values}"
        ) from None


def _cast(name: str, kind: type, value: Any) -> Any:
    """The value as a parameter of this type; ValueError if that would change what it is."""
    if value is None or kind is type(None):
        fits = kind not in (str, bytes) or value is not None
    elif kind in (str, bytes):
        fits = isinstance(value, (str, bytes))
    elif issubclass(kind, bool) or isinstance(value, bool):
        fits = issubclass(kind, bool) and isinstance(value, bool)
    elif issubclass(kind, numbers.Integral):
        fits = isinstance(value, numbers.Integral)
    else:
        fits = not issubclass(kind, numbers.Number) or isinstance(value, numbers.Number)
    if not fits:
        raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    return value if value is None or kind is type(None) else kind(value)


class HParams:
    """Hyperparameters, each an attribute.

    Args:
        hparam_def: an HParamDef message to take them from.
        model_structure: what the model is made of, of any type; kept for the program.
        **kwargs: the parameters: scalars or lists that are not empty.

    Raises ValueError for a name that is an attribute of this class, and for an empty list.
    """

    _HAS_DYNAMIC_ATTRIBUTES = True

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        # Name to (type of the value or of its items, whether it is a list).
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        if hparam_def:
            self._init_from_proto(hparam_def)
        else:
            for name, value in kwargs.items():
                self.add_hparam(name, value)

    def _init_from_proto(self, hparam_def: Any) -> None:
        if not isinstance(hparam_def, HParamDef):
            raise AssertionError(f"hparam_def must be an HParamDef, not {type(hparam_def).__name__}")
        for name, value in hparam_def.hparam.items():
            kind = value.WhichOneof("kind")
            if not kind:
                continue
            content = getattr(value, kind)
            values = list(content.value) if kind.endswith("_list") else [content]
            plain = [each.decode() if isinstance(each, bytes) else each for each in values]
            self.add_hparam(name, plain if kind.endswith("_list") else plain[0])

    # ---- parameters

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a parameter. ValueError if the object has an attribute of that name, or for an empty list."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        if isinstance(value, (list, tuple)):
            if not value:
                raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
            self._hparam_types[name] = (type(value[0]), True)
        else:
            self._hparam_types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Gives a parameter another value of its type.

        KeyError without such a parameter; ValueError for a list in place of a scalar, a scalar in place of a
        list, or a value of another type.
        """
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list):
            if not is_list:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_cast(name, kind, each) for each in value])
        else:
            if is_list:
                raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
            setattr(self, name, _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a parameter, if it is there."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter's value, or `default` without one. ValueError for a default of another type."""
        if key not in self._hparam_types:
            return default
        if default is not None:
            kind, is_list = self._hparam_types[key]
            name = f"list<{kind}>" if is_list else str(kind)
            failure = f"Hparam '{key}' of type '{name}' is incompatible with default={default}"
            if is_list != isinstance(default, list):
                raise ValueError(failure)
            if kind is not type(None):
                try:
                    for each in default if is_list else [default]:
                        _cast(key, kind, each)
                except ValueError as error:
                    raise ValueError(f"{failure}. {error}") from error
        return getattr(self, key)

    def values(self) -> dict[str, Any]:
        """The values by name."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self.values().items())!r})"

    # ---- text

    def parse(self, values: str) -> HParams:
        """Sets the parameters that a text assigns (`parse_values`); returns this object."""
        return self.override_from_dict(
            parse_values(values, {name: kind for name, (kind, _) in self._hparam_types.items()})
        )

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Sets parameters, as `set_hparam` does; returns this object."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map: Mapping[str, Any]) -> HParams:
        """The older name of `override_from_dict`."""
        return self.override_from_dict(values_map)

    def to_json(
        self, indent: int | str | None = None, separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:  # fmt: skip
        """The values as JSON; arguments are those of `json.dumps`. TypeError for a value that JSON lacks."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json: str) -> HParams:
        """Sets the parameters that a JSON object has; returns this object."""
        return self.override_from_dict(json.loads(values_json))

    # ---- the model's structure, messages

    def set_model_structure(self, model_structure: Any) -> None:
        """Keeps what the model is made of."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """What `set_model_structure` got, or the constructor."""
        return self._model_structure

    @staticmethod
    def _get_kind_name(param_type: type, is_list: bool) -> str:
        """The field of an HParamDef for values of a type; ValueError without one."""
        for types, field in (
            ((bool,), "bool"),
            ((int,), "int64"),
            ((str, bytes), "bytes"),
            ((float,), "float"),
        ):
            if issubclass(param_type, types):
                return f"{field}_{'list' if is_list else 'value'}"
        raise ValueError(f"Unsupported parameter type: {param_type}")

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The parameters as an HParamDef message. ValueError for values that it has no field for."""
        message = HParamDef()
        for name, (kind, is_list) in self._hparam_types.items():
            value = getattr(self, name)
            plain = [
                each.encode() if isinstance(each, str) else each for each in (value if is_list else [value])
            ]
            field = self._get_kind_name(kind, is_list)
            if is_list:
                getattr(message.hparam[name], field).value.extend(plain)
            else:
                setattr(message.hparam[name], field, plain[0])
        return message

    @staticmethod
    def from_proto(hparam_def: Any, import_scope: str | None = None) -> HParams:
        """The parameters that an HParamDef message has."""
        return HParams(hparam_def=hparam_def)
