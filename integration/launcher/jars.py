"""Class paths by Maven: a POM of a few lines in, a class path out, kept for the next start."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cache"

_POM: Final = """<project>
<modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>{name}</artifactId><version>1</version>
<dependencyManagement><dependencies>{boms}</dependencies></dependencyManagement>
<dependencies>{jars}</dependencies></project>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What a JVM is started with: artifacts as `group:artifact:version`, versions by BOM left out."""

    name: str
    jars: tuple[str, ...]
    boms: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def _dependency(spec: str, extra: str = "") -> str:
    group, artifact, *version = spec.split(":")
    tag = f"<version>{version[0]}</version>" if version else ""
    return f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>{tag}{extra}</dependency>"


def _pom(bundle: Bundle) -> str:
    excluded = "".join(
        "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>".format(*spec.split(":"))
        for spec in bundle.without
    )
    exclusions = f"<exclusions>{excluded}</exclusions>" if excluded else ""
    return _POM.format(
        name=bundle.name,
        boms="".join(_dependency(bom, "<type>pom</type><scope>import</scope>") for bom in bundle.boms),
        jars="".join(_dependency(jar, exclusions) for jar in bundle.jars),
    )


def class_path(bundle: Bundle) -> str:
    """The class path of `bundle`; asks Maven only when it is not known or no longer whole."""
    kept = CACHE / "classpath" / f"{bundle.name}.txt"
    pom_text = _pom(bundle)
    pom = kept.with_suffix(".xml")
    if kept.exists() and pom.exists() and pom.read_text() == pom_text:
        text = kept.read_text().strip()
        if text and all(Path(jar).exists() for jar in text.split(":")):
            return text
    if shutil.which("mvn") is None:
        raise SystemExit("Maven is needed to get the jars: install it and put `mvn` on the PATH.")
    kept.parent.mkdir(parents=True, exist_ok=True)
    pom.write_text(pom_text)
    fresh = kept.with_suffix(".new")
    _run_maven(
        [
            "mvn",
            "-B",
            "-f",
            str(pom),
            "dependency:build-classpath",
            "-DincludeScope=runtime",
            f"-Dmdep.outputFile={fresh}",
        ],
        bundle.name,
    )
    fresh.replace(kept)
    return kept.read_text().strip()


def _run_maven(command: list[str], name: str) -> None:
    """Run Maven with one progress line instead of its thousand."""
    begun = time.monotonic()
    arrived = 0
    tail: list[str] = []
    live = sys.stderr.isatty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as maven:
        assert maven.stdout is not None
        for line in maven.stdout:
            tail = [*tail[-30:], line.rstrip()]
            if "Downloaded" in line and ".jar" in line:
                arrived += 1
                if live or arrived % 50 == 0:
                    print(
                        f"  {name}: {arrived} jars, {time.monotonic() - begun:.0f} s",
                        file=sys.stderr,
                        end="\r" if live else "\n",
                    )
    if maven.returncode:
        raise SystemExit(f"Maven could not resolve {name}:\n" + "\n".join(tail))
    print(f"  {name}: jars ready after {time.monotonic() - begun:.0f} s ({arrived} downloaded)", file=sys.stderr)
