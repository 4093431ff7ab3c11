"""The compiled wheel: with KAFKA_SIDECAR_COMPILED=1 in the environment mypyc compiles the modules that each batch goes
through.

Without it the wheel is plain Python, as a checkout is. The source is the same: nothing in it is written for the
compiler.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HOT = (
    "apis/common/ordinary_produce",
    "apis/state/promise",
    "partition/fold/fold",
    "partition/fold/packed_states",
    "partition/fold/producer_state",
    "partition/fold/producer_states",
    "partition/fold/producers",
    "partition/log/basis",
    "partition/read/fetch_cache",
    "partition/write/append",
    "partition/write/appender",
    "partition/write/in_flight",
    "partition/write/precheck",
    "partition/write/sender",
    "pulsar/frames",
    "pulsar/producer",
    "loop/turn_writer",
    "wire/framing",
    "wire/produce_frame",
    "wire/records",
    "wire/varint",
)


def is_wanted() -> bool:
    return os.environ.get("KAFKA_SIDECAR_COMPILED") == "1"


class CompiledWheel(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"
    _work: tempfile.TemporaryDirectory[str] | None = None

    def dependencies(self) -> list[str]:
        """The compiler, and what the modules import: their types are checked on the way."""
        return ["mypy>=2", "setuptools>=80", "types-protobuf", *self.metadata.core.dependencies] if is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not is_wanted() or version == "editable":
            return
        self._work = tempfile.TemporaryDirectory(prefix="kafka-sidecar-wheel-")
        work = Path(self._work.name)
        for made in _compiled(Path(self.root), work):
            build_data["force_include"][str(made)] = str(made.relative_to(work / "lib"))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._work is not None:
            self._work.cleanup()


def _compiled(root: Path, work: Path) -> list[Path]:
    """The extension modules, below `work`/lib as they are to lie in the wheel."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    os.chdir(root)
    extensions = mypycify(
        [f"handler/kafka_sidecar/{module}.py" for module in HOT], opt_level="3", target_dir=str(work / "c")
    )
    command = Distribution({"name": "kafka-sidecar", "ext_modules": extensions}).get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(work / "lib"), str(work / "temp")
    command.ensure_finalized()
    command.run()
    return sorted((work / "lib").rglob("*.so"))
