"""TOML files as typed values: a wrong field is named, with the nearest right one."""

import tomllib
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dvfl.errors import UserError, nearest

Kind = TypeVar("Kind")

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def read(kind: type[Kind], path: Path) -> Kind:
    """The file's fields as a dataclass."""
    return built(kind, load(path), str(path))


def load(path: Path) -> dict[str, Any]:
    """The file as plain data."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is no TOML: {error}") from None


def built(kind: type[Kind], plain: Mapping[str, Any], where: str) -> Kind:
    """A dataclass of plain data, its nested ones too; UserError names the field that is wrong."""
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in plain:
        if name not in names:
            raise UserError(f"{where}: unknown field '{name}'{nearest(name, names)}")
    values = {}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name in plain:
            values[field.name] = _value(hints[field.name], plain[field.name], f"{where}: {field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise UserError(f"{where}: the field '{field.name}' is not there")
    return kind(**values)


def _value(hint: Any, value: Any, where: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _value(next(one for one in inner if one is not type(None)), value, where)
    if is_dataclass(hint):
        assert isinstance(hint, type)
        if not isinstance(value, dict):
            raise UserError(f"{where} is {value!r}; a table of fields is right")
        return built(hint, value, where)
    if origin is dict:
        if not isinstance(value, dict):
            raise UserError(f"{where} is {value!r}; a table is right")
        return {key: _value(inner[1], one, f"{where}.{key}") for key, one in value.items()}
    if origin is tuple:
        if not isinstance(value, list):
            raise UserError(f"{where} is {value!r}; a list is right")
        return tuple(_value(inner[0], one, where) for one in value)
    if origin is Literal:
        if value not in inner:
            raise UserError(f"{where} is {value!r}; {' or '.join(map(repr, inner))} is right")
        return value
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise UserError(f"{where} is {value!r}; {_WORDS[hint]} is right")
    return value


def written(kind: Any, comments: Mapping[str, str] | None = None) -> str:
    """A dataclass as TOML, which `read` takes back; a comment stands above its field or table."""
    lines: list[str] = []
    _write(kind, "", comments or {}, lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def _write(value: Any, path: str, comments: Mapping[str, str], lines: list[str]) -> None:
    pairs = (
        value.items()
        if isinstance(value, dict)
        else [(field.name, getattr(value, field.name)) for field in fields(value)]
    )
    tables = []
    for name, one in pairs:
        where = f"{path}.{name}" if path else name
        if is_dataclass(one) or isinstance(one, dict):
            tables.append((where, one))
        elif one is not None:
            if where in comments:
                lines.append(f"# {comments[where]}")
            lines.append(f"{name} = {_text(one)}")
    for where, one in tables:
        lines += ["", *([f"# {comments[where]}"] if where in comments else [])]
        if not isinstance(one, dict) or not one or not all(is_dataclass(inner) for inner in one.values()):
            lines.append(f"[{where}]")
        _write(one, where, comments, lines)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"""\n{escaped}"""' if "\n" in escaped else f'"{escaped}"'
