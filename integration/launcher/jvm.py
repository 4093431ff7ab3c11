"""How a JVM is started: one that lives for seconds differs from one that is measured.

Most of the processor time of the tests was JVMs that start. One that lives for seconds takes its classes from an
archive (AppCDS: half of a start is loading and verifying classes) and is compiled by C1 alone, which is done sooner.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from integration.launcher.jars import CACHE, Bundle, class_path

# For servers whose speed is measured or used.
LONG_LIVED: Final = ("-XX:+UseG1GC", "-XX:TieredStopAtLevel=4")
SHORT_LIVED: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# An archive of other jars is not used, and nothing of that reaches the standard output of a tool.
_QUIET: Final = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")


def archive_of(bundle: Bundle) -> Path:
    """Where the archive of this bundle's classes is, or will be: one for each Java and each class path."""
    java = Path(shutil.which("java") or "java").resolve()
    of = f"{class_path(bundle)} {java} {java.stat().st_mtime_ns if java.exists() else 0}"
    return CACHE / "classes" / f"{bundle.name}-{hashlib.sha256(of.encode()).hexdigest()[:12]}.jsa"


def short_lived_server(bundle: Bundle) -> tuple[str, ...]:
    return ("-XX:+UseG1GC", SHORT_LIVED[0], *_from_archive(bundle))


def short_lived_tool(bundle: Bundle) -> tuple[str, ...]:
    return (*SHORT_LIVED, *_from_archive(bundle))


def archiving(flags: Sequence[str], place: Path) -> tuple[str, ...]:
    """The same JVM, which writes the classes that it has loaded to `place` at its end."""
    return (*flags, f"-XX:ArchiveClassesAtExit={place}")


def _from_archive(bundle: Bundle) -> tuple[str, ...]:
    archive = archive_of(bundle)
    return (f"-XX:SharedArchiveFile={archive}", *_QUIET) if archive.exists() else ()
