"""What is still untidy: `make tidy` counts it, and lowers the numbers of tests/tidy.json, which may never rise.

A rule names a place (a file, a room, a function) and how often it is broken there. `tests/test_tidy.py` fails where a
place has more than is written down, and also where it has less: then the file is to be lowered.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = ROOT / "handler/kafka_sidecar"
LISTED: Final = ROOT / "tests/tidy.json"
LONGEST_MODULE: Final = 350
LONGEST_FUNCTION: Final = 60
MOST_ATTRIBUTES: Final = 20
# Words that readers stumble over. Where they name something, the thing has a name: advertised, in flight, retried,
# stored, again.
WORDS: Final = re.compile(
    r"\b([Tt]old|[Aa]new|[Ww]hoever|for ever|of which|comes upon|in work|nobody thought of)\b"
    r"|\b[Ww]ho (?:has|is|was|asks|reads|comes|may)\b"
)


Broken = Mapping[str, int]


@cache
def text_of(path: Path) -> str:
    return path.read_text()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


@cache
def modules() -> list[Path]:
    """Hand-written ones."""
    found = PACKAGE.rglob("*.py")
    return sorted(path for path in found if not path.stem.endswith("_pb2") and path.parent != PACKAGE / "wire/messages")


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def rooms_that_do_not_name_their_modules() -> Broken:
    """A room's docstring is its plan. The APIs' files are named by their keys."""
    broken: Counter[str] = Counter()
    for path in modules():
        if path.stem != "__init__" and path.parent != PACKAGE and not re.match(r"a\d\d_", path.stem):
            plan = path.parent / "__init__.py"
            text = (ast.get_docstring(tree_of(plan)) or "") if plan.exists() else ""
            broken[place(path.parent)] += re.search(rf"\b{path.stem}\b", text) is None
    return broken


def long_modules() -> Broken:
    return {place(path): count for path in modules() if (count := len(lines_of_code(path))) > LONGEST_MODULE}


@cache
def lines_of_code(path: Path) -> list[int]:
    """Their numbers. Not blank lines, comments and docstrings: a module is not long because it is explained."""
    prose = set[int]()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and ast.get_docstring(node) is not None:
                prose.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(text_of(path).split("\n"), start=1)
    return [
        number for number, line in lines if number not in prose and line.strip() and not line.strip().startswith("#")
    ]


def long_functions() -> Broken:
    broken = {}
    for path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                lines = sum(1 for number in lines_of_code(path) if number in span)
                if lines > LONGEST_FUNCTION:
                    broken[f"{place(path)}: {node.name}"] = lines
    return broken


def large_classes() -> Broken:
    """By the attributes that their methods set."""
    broken = {}
    for path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                names = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and _is_set_on_self(one)}
                if len(names) > MOST_ATTRIBUTES:
                    broken[f"{place(path)}: {node.name}"] = len(names)
    return broken


def _is_set_on_self(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self"


def lines_that_the_formatter_leaves() -> Broken:
    return {place(path): text_of(path).count("# fmt: skip") for path in modules()}


def bounds_without_a_reason() -> Broken:
    """A number with a name says why it is that number, on its line or above."""
    broken: Counter[str] = Counter()
    for path in modules():
        lines = text_of(path).split("\n")
        for number, line in enumerate(lines):
            is_bound = re.match(r"[A-Z][A-Z0-9_]*(?:: Final)? = [0-9][0-9_. *]*$", line)
            broken[place(path)] += bool(is_bound) and not lines[number - 1].startswith(("#", "    #"))
    return broken


def words() -> Broken:
    """In comments and docstrings."""
    return {place(path): sum(len(WORDS.findall(text)) for text in _prose(path)) for path in modules()}


def _prose(path: Path) -> Iterator[str]:
    text = text_of(path)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def modules_without_their_test() -> Broken:
    """APIs are tested by requests, each room of theirs by what it is about."""
    broken = {}
    for path in modules():
        test = ROOT / "tests" / path.parent.relative_to(PACKAGE) / f"test_{path.stem}.py"
        if path.stem not in {"__init__", "__main__"} and not re.match(r"a\d\d_", path.stem) and not test.exists():
            broken[place(path)] = 1
    return broken


RULES: Final[Mapping[str, Callable[[], Broken]]] = {
    rule.__name__.replace("_", " "): rule
    for rule in (
        rooms_that_do_not_name_their_modules,
        long_modules,
        long_functions,
        large_classes,
        lines_that_the_formatter_leaves,
        bounds_without_a_reason,
        words,
        modules_without_their_test,
    )
}


def counted() -> dict[str, dict[str, int]]:
    return {
        rule: {where: count for where, count in sorted(count_().items()) if count} for rule, count_ in RULES.items()
    }


def listed() -> dict[str, dict[str, int]]:
    text = LISTED.read_text() if LISTED.exists() else "{}"
    return {rule: dict(places) for rule, places in json.loads(text).items()}


def worse(now: Mapping[str, Broken], before: Mapping[str, Broken]) -> list[str]:
    """One line for each place that breaks a rule more often than is written down."""
    return [
        f"{rule}: {where} has {count}, and may have {before.get(rule, {}).get(where, 0)}"
        for rule, places in now.items()
        for where, count in places.items()
        if count > before.get(rule, {}).get(where, 0)
    ]


def main() -> None:
    now, before = counted(), listed()
    risen = worse(now, before) if LISTED.exists() else []
    if risen:
        raise SystemExit("\n".join([*risen, "Mend these; the numbers of tests/tidy.json may only fall."]))
    LISTED.write_text(json.dumps(now, indent=1) + "\n")
    for rule, places in now.items():
        print(f"{sum(places.values()):6,} in {len(places):3} places: {rule}")


if __name__ == "__main__":
    main()
