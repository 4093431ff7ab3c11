"""What the pipelines' commands have in common: clusters and settings from flags and a TOML file, results for
programs.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.kafka_client.cluster import Cluster

LOCAL: Final = "local[*]"
_COMMON: Final = (
    ("--source", "HOST:PORT", "the cluster to read, where an address is all it needs; else [source] in the file"),
    ("--target", "HOST:PORT", "the cluster to write to; else [target] in the file"),
    ("--result", "FILE", "write what was done as JSON, for programs"),
)


def add_common(command: argparse.ArgumentParser, source: bool = True, target: bool = True) -> None:
    """`source` and `target`: whether the pipeline has one."""
    text = "a TOML file: settings with the names of these options, tables [source] and [target]"
    command.add_argument("--config", type=Path, metavar="FILE", help=text)
    left_out = {"--source": not source, "--target": not target}
    for name, metavar, text in _COMMON:
        if left_out.get(name):
            continue
        command.add_argument(name, metavar=metavar, help=text)
    command.add_argument(
        "--dry-run", action="store_true", default=None, help="print what would be done, and change nothing"
    )


def add_options(
    command: argparse.ArgumentParser,
    values: Sequence[tuple[str, str, str]] = (),
    lists: Sequence[tuple[str, str, str]] = (),
    flags: Sequence[tuple[str, str]] = (),
    seconds: Sequence[tuple[str, str]] = (),
) -> None:
    """Names, what stands for a value, and what it is about. None of them has a default: it may stand in the file."""
    for name, metavar, text in values:
        command.add_argument(name, metavar=metavar, help=text)
    for name, metavar, text in lists:
        command.add_argument(name, action="append", metavar=metavar, help=f"{text}; may be given several times")
    for name, text in flags:
        command.add_argument(name, action="store_true", default=None, help=text)
    for name, text in seconds:
        command.add_argument(name, type=float, metavar="SECONDS", help=text)


def add_spark(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--master", metavar="URL", help=f"Spark's cluster (default: {LOCAL}, a Spark of its own in this process)"
    )
    command.add_argument(
        "--conf", action="append", metavar="KEY=VALUE", help="a setting of Spark; may be given several times"
    )


class Settings:
    """Flags, and what the file says where a flag was not given."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = {name: value for name, value in vars(options).items() if value is not None}
        self._file: dict[str, Any] = {}
        if options.config is not None:
            try:
                self._file = tomllib.loads(options.config.read_text())
            except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise ConfigError(f"{options.config} can't be read: {error}") from error
        for name in self._file:
            if name not in vars(options) and name not in self._options.get(
                "of_all", ()
            ):  # one config file may serve several pipelines, so settings of the others are allowed
                known = sorted(set(vars(options)) - {"command", "pipeline", "config", "of_all"})
                raise ConfigError(f"{options.config}: there is no setting {name}; there are {', '.join(known)}")

    def cluster(self, name: str) -> Cluster:
        table = self._file.get(name, {})
        if not isinstance(table, Mapping):
            raise ConfigError(f"{name} = {table}: write a table, [{name}]")
        given = self._options.get(name)
        return Cluster.of(name, {**table, "bootstrap": given} if given else table)

    def has(self, name: str) -> bool:
        return name in self._options or name in self._file

    def text(self, name: str, default: str = "") -> str:
        found = self._options.get(name, self._file.get(name, default))
        if not isinstance(found, str):
            raise ConfigError(f"{name} = {found}: write a string")
        return found

    def flag(self, name: str) -> bool:
        found = self._options.get(name, self._file.get(name, False))
        if not isinstance(found, bool):
            raise ConfigError(f"{name} = {found}: write true or false")
        return found

    def number(self, name: str, default: float) -> float:
        found = self._options.get(name, self._file.get(name, default))
        if isinstance(found, bool) or not isinstance(found, int | float) or (found <= 0 and found != default):
            raise ConfigError(f"{name} = {found}: write a number above 0")
        return float(found)

    def texts(self, name: str) -> tuple[str, ...]:
        found = self._options.get(name) or self._file.get(name, [])
        if not isinstance(found, Sequence) or isinstance(found, str) or not all(isinstance(one, str) for one in found):
            raise ConfigError(f"{name} = {found}: write a list of strings")
        return tuple(found)


def write_result(file: str, result: Mapping[str, Any]) -> None:
    if file:
        try:
            Path(file).write_text(json.dumps(result, indent=2) + "\n")
        except OSError as error:
            raise ConfigError(f"--result {file} can't be written: {error.strerror}") from error


def table(rows: Sequence[Sequence[object]], numbers: frozenset[str] = frozenset()) -> list[str]:
    """Lines for people; the first row names the columns."""
    texts = [["-" if one is None else str(one) for one in row] for row in rows]
    wide = [max(len(row[column]) for row in texts) for column in range(len(rows[0]))]
    right = [str(name) in numbers for name in rows[0]]
    return [
        "  ".join(one.rjust(w) if r else one.ljust(w) for one, w, r in zip(row, wide, right, strict=True)).rstrip()
        for row in texts
    ]
