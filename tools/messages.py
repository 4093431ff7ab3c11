"""Makes `wire/messages` and `wire/error_code.py` from kio's schemas: `make messages`.

kio has a class for each version of a message. Here they become one class with the fields of all versions, and one piece
of straight-line code that reads and writes them (as kmsg of franz-go). kio is needed for this and for tests, not to
run.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import groupby
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map

WIRE: Final = Path(__file__).resolve().parents[1] / "handler/kafka_sidecar/wire"
MADE: Final = '"""Made by `make messages` from Kafka\'s schemas: not to be edited."""'

# The APIs that are served, by key.
KEYS: Final = (
    0,
    1,
    2,
    3,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    16,
    17,
    18,
    19,
    20,
    21,
    22,
    23,
    24,
    25,
    26,
    27,
    28,
    29,
    30,
    31,
    32,
    33,
    34,
    35,
    36,
    37,
    38,
    39,
    40,
    41,
    42,
    43,
    44,
    45,
    46,
    47,
    48,
    49,
    50,
    51,
    55,
    57,
    60,
    61,
    65,
    66,
    68,
    69,
    74,
    75,
)

# Of an API whose request and response have different structs of one name.
_SUFFIX: Final = {
    (49, "response"): {"EntryData": "Result", "EntityData": "Result"},
    (55, "response"): {"PartitionData": "Result", "TopicData": "Result"},
}
_FIXED: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "error_code": "h",
    "int32": "i",
    "timedelta_i32": "i",
    "int64": "q",
    "timedelta_i64": "q",
    "datetime_i64": "q",
    "float64": "d",
}
_PYTHON: Final = {
    "bool": "bool",
    "string": "str",
    "bytes": "bytes",
    "error_code": "ErrorCode",
    "uuid": "UUID",
    "float64": "float",
}
_METHOD: Final = {
    "bool": "bool_",
    "bytes": "bytes_",
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
_EMPTY: Final = {"string": '""', "bytes": 'b""', "error_code": "ErrorCode.NONE", "bool": "False", "float64": "0.0"}

Direction = Literal["request", "response"]


@dataclass(slots=True)
class Field:
    """One field of a struct through all versions."""

    name: str
    kafka_type: str  # or the name of a struct
    is_struct: bool
    is_array: bool
    direction: Direction
    default: Any
    tag: int | None
    versions: list[int] = dataclasses.field(default_factory=list)
    nullable: list[int] = dataclasses.field(default_factory=list)

    @property
    def is_fixed(self) -> bool:
        return self.kafka_type in _FIXED and not self.is_array

    @property
    def is_parts(self) -> bool:
        """Records that are answered are those of several entries."""
        return self.kafka_type == "records" and self.direction == "response"

    @property
    def may_be_null(self) -> bool:
        return (
            bool(self.nullable)
            or (self.tag is not None and self.is_struct and not self.is_array)
            or self.kafka_type == "uuid"
        )

    @property
    def python_type(self) -> str:
        bare = self.kafka_type if self.is_struct else _PYTHON.get(self.kafka_type, "int")
        if self.kafka_type == "records":
            bare = "Sequence[bytes | bytearray]" if self.is_parts else "bytes"
        if self.is_array:
            bare = f"Sequence[{bare}]"
        return f"{bare} | None" if self.may_be_null or self.kafka_type == "records" else bare

    @property
    def python_default(self) -> str | None:
        """None where there is none: a struct that has to be given."""
        if self.is_array or self.is_parts:
            return "None" if self.default is None and not self.is_parts else "()"
        if self.kafka_type in ("uuid", "records"):
            return "None"
        if self.is_struct:
            return "None" if self.may_be_null else None
        if self.default is MISSING and self.nullable:
            return "None"
        if self.default is MISSING:
            return _EMPTY.get(self.kafka_type, "0")
        if isinstance(self.default, datetime.timedelta):
            return str(round(self.default.total_seconds() * 1000))
        if self.kafka_type == "datetime_i64":
            return "-1" if self.default is None else str(self.default)
        if self.kafka_type == "error_code":
            return f"ErrorCode.{ErrorCode(self.default).name.upper()}"
        return '"' + self.default + '"' if isinstance(self.default, str) else repr(self.default)

    # --- code

    def reading(self, reader: str = "reader") -> str:
        null = bool(self.nullable) and self.kafka_type != "uuid"
        plain = self._read(reader, null=False)
        if not null:
            return plain
        nullable = self._read(reader, null=True)
        return nullable if self.nullable == self.versions else f"{nullable} if {_from(self.nullable)} else {plain}"

    def _read(self, reader: str, *, null: bool) -> str:
        prefix = "nullable_" if null else ""
        if self.is_array:
            if self.is_struct:
                return f"{reader}.{prefix}array({self.kafka_type}.decode, version)"
            return f"{reader}.{prefix}{self.kafka_type}_array()"
        if self.is_struct:
            return (
                f"{reader}.nullable_struct({self.kafka_type}.decode, version)"
                if null
                else f"{self.kafka_type}.decode({reader}, version)"
            )
        if self.kafka_type == "records":
            return f"{reader}.records()" if self.is_parts else f"{reader}.nullable_bytes()"
        method = self.kafka_type if null else _METHOD.get(self.kafka_type, self.kafka_type)
        call = f"{reader}.{prefix}{method}()"
        return f"ErrorCode({call})" if self.kafka_type == "error_code" else call

    def writing(self, writer: str = "writer") -> str:
        null = bool(self.nullable) and self.kafka_type != "uuid"
        if not null:
            return self._write(writer, f"self.{self.name}", null=False)
        nullable = self._write(writer, f"self.{self.name}", null=True)
        if self.nullable == self.versions:
            return nullable
        empty = "()" if self.is_array else _EMPTY[self.kafka_type]
        plain = self._write(writer, f"self.{self.name} or {empty}", null=False)
        return f"{nullable} if {_from(self.nullable)} else {plain}"

    def _write(self, writer: str, value: str, *, null: bool) -> str:
        prefix = "nullable_" if null else ""
        if self.is_array:
            if self.is_struct:
                return f"{writer}.{prefix}array({value}, version)"
            return f"{writer}.{prefix}{self.kafka_type}_array({value})"
        if self.is_struct:
            return f"{writer}.nullable_struct({value}, version)" if null else f"{value}.encode({writer}, version)"
        if self.kafka_type == "records":
            return f"{writer}.records({value})" if self.is_parts else f"{writer}.nullable_bytes({value})"
        if self.name.endswith("error_message"):
            return f"{writer}.{prefix}message({value})"
        method = self.kafka_type if null else _METHOD.get(self.kafka_type, self.kafka_type)
        return f"{writer}.{prefix}{method}({value})"


@dataclass(slots=True)
class StructType:
    """A struct through all versions."""

    name: str
    versions: list[int]
    order: list[list[str]]
    fields: dict[str, Field] = dataclasses.field(default_factory=dict)

    def ordered(self) -> list[Field]:
        """The fields in an order that is right for every version."""
        merged: list[str] = []
        for names in reversed(self.order):
            at = 0
            for name in names:
                if name in merged:
                    at = merged.index(name) + 1
                else:
                    merged.insert(at, name)
                    at += 1
        for names in self.order:
            if [name for name in merged if name in names] != names:
                raise ValueError(f"{self.name} changes the order of its fields")
        return [self.fields[name] for name in merged]

    def condition(self, versions: Sequence[int]) -> str:
        """When a field is there, among the versions that have the struct; empty for always."""
        if list(versions) == self.versions:
            return ""
        if versions[-1] == self.versions[-1]:
            return f"version >= {versions[0]}"
        return (
            f"version <= {versions[-1]}"
            if versions[0] == self.versions[0]
            else f"{versions[0]} <= version <= {versions[-1]}"
        )


def _from(versions: Sequence[int]) -> str:
    return f"version >= {versions[0]}"


# --- from kio


def split_type(hint: Any) -> tuple[Any, bool, bool]:
    """The bare type of a field of kio's, whether it is an array, whether it may be null."""
    optional = False
    if get_origin(hint) in (Union, UnionType):
        optional = True
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is tuple:
        return get_args(hint)[0], True, optional
    return hint, False, optional


def our_name(name: str, kafka_type: str | None) -> str:
    """Kafka's own name: kio leaves the unit out, which its type says."""
    return f"{name}_ms" if kafka_type in ("timedelta_i32", "timedelta_i64", "datetime_i64") else name


class _Merge:
    """The structs of one message."""

    def __init__(self, key: int, direction: Direction) -> None:
        self.direction = direction
        self._suffix = _SUFFIX.get((key, direction), {})
        self.structs: dict[str, StructType] = {}

    def name_of(self, entity: type[Any]) -> str:
        return entity.__name__ + self._suffix.get(entity.__name__, "")

    def add(self, entity: type[Any], version: int) -> None:
        struct = self.structs.setdefault(self.name_of(entity), StructType(self.name_of(entity), [], []))
        if version in struct.versions:
            return  # it stands in two places
        struct.versions.append(version)
        hints = get_type_hints(entity)
        order = []
        for one in fields(entity):
            bare, array, optional = split_type(hints[one.name])
            kafka_type = one.metadata.get("kafka_type")
            name = our_name(one.name, kafka_type)
            known = struct.fields.get(name)
            if known is None:
                known = Field(
                    name, kafka_type or self.name_of(bare), kafka_type is None, array, self.direction, one.default, None
                )
                struct.fields[name] = known
            known.default = one.default
            known.tag = one.metadata.get("tag")
            known.versions.append(version)
            if optional and kafka_type not in ("datetime_i64",):
                known.nullable.append(version)
            if known.tag is None:
                order.append(name)
            if kafka_type is None:
                self.add(bare, version)
        struct.order.append(order + [name for name in struct.fields if struct.fields[name].tag is not None])


def _versions(load: Any, key: int) -> Iterator[tuple[int, type[Any]]]:
    for version in range(64):
        try:
            yield version, load(key, version)
        except RuntimeError:  # kio has no such version
            continue


def _message(key: int, direction: Direction) -> tuple[dict[str, StructType], str, int]:
    """The structs, the name of the whole, and the first version that is flexible."""
    merge = _Merge(key, direction)
    flexible = None
    name = ""
    for version, entity in _versions(load_request_schema if direction == "request" else load_response_schema, key):
        name = entity.__name__
        if entity.__flexible__ and flexible is None:
            flexible = version
        merge.add(entity, version)
    return merge.structs, name, 32_767 if flexible is None else flexible


# --- to Python


def _module(key: int) -> str:
    bodies: list[str] = []
    layouts: dict[str, str] = {}
    seen: dict[str, str] = {}
    for direction in ("request", "response"):
        structs, whole, flexible = _message(key, direction)
        for struct in reversed(structs.values()):
            text = _class(struct, layouts, key if struct.name == whole else None, flexible)
            if seen.setdefault(struct.name, text) != text:
                raise ValueError(f"API {key} has two structs {struct.name}")
            if text not in bodies:
                bodies.append(text)
    used = "\n".join(bodies)
    imports = ["from __future__ import annotations", ""]
    if "Sequence[" in used:
        imports.append("from collections.abc import Sequence")
    if layouts:
        imports.append("from struct import Struct as Layout")
    imports.append("from typing import ClassVar, Final" if layouts else "from typing import ClassVar")
    if "UUID" in used:
        imports.append("from uuid import UUID")
    imports.append("")
    buffers = ["FlexibleWriter"] if "FlexibleWriter" in used else []
    imports.append(f"from kafka_sidecar.wire.buffers import {', '.join([*buffers, 'Reader', 'Writer'])}")
    if "ErrorCode" in used:
        imports.append("from kafka_sidecar.wire.error_code import ErrorCode")
    imports.append(f"from kafka_sidecar.wire.message import Message{', Struct' if '(Struct)' in used else ''}")
    head = [MADE, "", *imports, ""]
    head += [f'{name}: Final = Layout(">{layout}")' for layout, name in sorted(layouts.items())]
    return "\n".join(head).rstrip() + "\n\n\n" + "\n\n\n".join(bodies) + "\n"


def _class(struct: StructType, layouts: dict[str, str], key: int | None, flexible: int) -> str:
    ordered = struct.ordered()
    lines = [f"class {struct.name}({'Struct' if key is None else 'Message'}):"]
    lines += _slots([one.name for one in ordered])
    if key is not None:
        lines += ["", f"    KEY: ClassVar[int] = {key}", f"    FLEXIBLE_SINCE: ClassVar[int] = {flexible}"]
    if ordered:
        lines += ["", "    def __init__(", "        self,", "        *,"]
        for one in ordered:
            default = "" if one.python_default is None else f" = {one.python_default}"
            comment = struct.condition(one.versions)
            lines.append(f"        {one.name}: {one.python_type}{default},{'  # ' + comment if comment else ''}")
        lines.append("    ) -> None:")
        lines += [f"        self.{one.name} = {one.name}" for one in ordered]
    tagged = sorted((one for one in ordered if one.tag is not None), key=lambda one: one.tag or 0)
    plain = [one for one in ordered if one.tag is None]
    is_flexible = struct.versions[-1] >= flexible
    lines += [
        "",
        *_decode(struct, plain, tagged, layouts, is_flexible),
        "",
        *_encode(struct, plain, tagged, layouts, is_flexible),
    ]
    return "\n".join(lines)


def _slots(names: list[str]) -> list[str]:
    quoted = [f'"{name}"' for name in names]
    inline = f"    __slots__ = ({', '.join(quoted)}{',' if len(quoted) == 1 else ''})"
    return [inline] if len(inline) <= 120 else ["    __slots__ = (", *(f"        {name}," for name in quoted), "    )"]


def _runs(struct: StructType, plain: list[Field]) -> Iterator[tuple[str, list[list[Field]]]]:
    """Neighbours with the same versions, and of those the ones of fixed size together."""
    for condition, group in groupby(plain, key=lambda one: struct.condition(one.versions)):
        yield condition, [list(run) for _, run in groupby(group, key=lambda one: one.name if not one.is_fixed else "")]


def _layout(layouts: dict[str, str], run: list[Field]) -> str:
    letters = "".join(_FIXED[one.kafka_type] for one in run)
    return layouts.setdefault(letters, "_" + letters.replace("?", "x").upper())


def _decode(
    struct: StructType, plain: list[Field], tagged: list[Field], layouts: dict[str, str], flexible: bool
) -> list[str]:
    lines = [
        "    @classmethod",
        f"    def decode(cls, reader: Reader, version: int) -> {struct.name}:",
        "        one = cls.__new__(cls)",
    ]
    for condition, runs in _runs(struct, plain):
        pad = "        "
        if condition:
            lines.append(f"{pad}if {condition}:")
            pad += "    "
        for run in runs:
            if len(run) == 1:
                lines.append(f"{pad}one.{run[0].name} = {run[0].reading()}")
                continue
            lines.append(
                f"{pad}{', '.join('one.' + field.name for field in run)} = reader.unpack({_layout(layouts, run)})"
            )
            lines += [
                f"{pad}one.{field.name} = ErrorCode(one.{field.name})"
                for field in run
                if field.kafka_type == "error_code"
            ]
        if condition:
            lines.append("        else:")
            lines += [f"            one.{field.name} = {field.python_default}" for run in runs for field in run]
    lines += [f"        one.{field.name} = {field.python_default}" for field in tagged]
    if tagged:
        lines.append("        for tag, field in reader.tagged_fields():")
        for field in tagged:
            condition = struct.condition(field.versions)
            lines.append(f"            if tag == {field.tag}{' and ' + condition if condition else ''}:")
            lines.append(f"                one.{field.name} = {field.reading('field')}")
    elif flexible:
        lines.append("        reader.skip_tagged_fields()")
    return [*lines, "        return one"]


def _encode(
    struct: StructType, plain: list[Field], tagged: list[Field], layouts: dict[str, str], flexible: bool
) -> list[str]:
    lines = ["    def encode(self, writer: Writer, version: int) -> None:"]
    for condition, runs in _runs(struct, plain):
        pad = "        "
        if condition:
            lines.append(f"{pad}if {condition}:")
            pad += "    "
        for run in runs:
            if len(run) == 1:
                lines.append(f"{pad}{run[0].writing()}")
            else:
                lines.append(
                    f"{pad}writer.out += {_layout(layouts, run)}.pack({', '.join('self.' + one.name for one in run)})"
                )
    if tagged:
        lines.append("        tagged: dict[int, FlexibleWriter] = {}")
        for one in tagged:
            condition = struct.condition(one.versions)
            given = f"self.{one.name} != {one.python_default}".replace("!= None", "is not None")
            if one.python_default in ("()", "False"):
                given = f"self.{one.name}"
            lines.append(f"        if {given}{' and ' + condition if condition else ''}:")
            lines.append(f"            field = tagged[{one.tag}] = FlexibleWriter(bytearray())")
            lines.append(f"            {one.writing('field')}")
        lines.append("        writer.tagged_fields(tagged)")
    elif flexible:
        lines.append("        writer.tagged_fields()")
    elif not plain:
        lines.append("        pass")
    return lines


def _error_codes() -> str:
    lines = [
        MADE,
        "",
        "from __future__ import annotations",
        "",
        "from enum import IntEnum",
        "",
        "",
        "class ErrorCode(IntEnum):",
        '    """org.apache.kafka.common.protocol.Errors. Unknown codes are UNKNOWN_SERVER_ERROR, as in Java."""',
        "",
        *(f"    {code.name.upper()} = {code.value}" for code in ErrorCode),
        "",
        "    @classmethod",
        "    def _missing_(cls, value: object) -> ErrorCode:",
        "        return cls.UNKNOWN_SERVER_ERROR",
    ]
    return "\n".join(lines) + "\n"


def made() -> dict[Path, str]:
    """All files, by where they stand."""
    names = {key: api_key_map[key] for key in KEYS}
    files = {WIRE / "messages" / f"{name}.py": _module(key) for key, name in names.items()}
    return {WIRE / "error_code.py": _error_codes()} | files


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text)
