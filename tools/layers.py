"""The import layers of the code, enforced on the syntax tree of every module under `pipeline/` and `schemas/`.

The rule: imports point right in `LAYERS`, every module has a place there, the rules (`core`, `schemas`) touch no clock,
network or log, core's steps meet in what `SHARED` names, and the simulation knows nothing of what it is held against.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "__init__"
"""`pipeline` itself is loaded before any of its modules, so it imports nothing of ours."""

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"__main__"}),
    frozenset({"cli"}),
    frozenset({"settings"}),
    frozenset({"demo"}),
    frozenset({"embedded"}),
    frozenset({"worker"}),
    frozenset({"gateway", "serve", "operate", "replay", "review", "simulation"}),
    frozenset({"runners"}),
    frozenset({"topology", "sinks"}),
    frozenset({"tokens"}),
    frozenset({"metrics", "errors", "logs"}),
    frozenset({"core"}),
    frozenset({"schemas", PACKAGE}),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

PURE = frozenset({"core", "schemas"})
PURE_MAY_NOT_IMPORT = frozenset(
    {"aiokafka", "asyncio", "chdb", "faust", "kafka", "logging", "mode", "os", "random", "socket", "time"}
)
PURE_MAY_NOT_IMPORT_PREFIXES = ("clickhouse", "prometheus")
CLOCK_CALLS = frozenset({"now", "today", "utcnow"})

SHARED = frozenset(
    {"effects", "erasing", "timeline", "windows", "ids", "contracts", "estimators", "packing", "shelf", "tiers"}
)
"""What core's steps may share; every other module or folder of core is a step."""

PART_OF = {
    "dialects": "ingest",
    "otlp": "ingest",
    "ingest_letters": "ingest",
    "ingest_logs": "ingest",
    "ingest_outcomes": "ingest",
    "ingest_times": "ingest",
}
"""What belongs to a step without lying in its folder; no other step may import it."""

READS_THE_ENVIRONMENT = frozenset({"cli", "settings"})
ENVIRONMENT_NAMES = frozenset({"environ", "environb", "getenv", "getenvb"})
NOT_SHIPPED = frozenset({"tests", "tools", "examples", "grafana", "deploy"})


@dataclass(frozen=True, slots=True)
class Violation:
    """One import that points the wrong way, at the line that makes it."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name, absolute: `from a.b import c` is `a.b.c`, as `c` may be a module."""

    target: str
    line: int

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.target.split("."))


def check(root: Path) -> list[Violation]:
    """Every violation under `root/pipeline` and `root/schemas`, in the order of the files."""
    violations: list[Violation] = []
    for package in ("pipeline", "schemas"):
        for path in sorted((root / package).rglob("*.py")):
            relative = path.relative_to(root)
            violations.extend(check_module(relative, path.read_text(encoding="utf-8")))
    return violations


def check_module(path: Path, source: str) -> list[Violation]:
    """The violations of one module; `path` is relative to the root of the project."""
    module = _module_name(path)
    place = _place(module)
    if place not in RANK:
        return [Violation(path, 1, f"`pipeline.{place}` has no place in the layers: give it one, or move its code")]
    tree = ast.parse(source, filename=str(path))
    found = {
        (item.line, message)
        for item in _imports(tree, path, module)
        if (message := _objection(module, place, item)) is not None
    }
    found.update(_uses(tree, place))
    return [Violation(path, line, message) for line, message in sorted(found)]


def _module_name(path: Path) -> tuple[str, ...]:
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def _place(module: tuple[str, ...]) -> str:
    """The name of a module in `LAYERS`."""
    if module[0] == "schemas":
        return "schemas"
    return module[1] if len(module) > 1 else PACKAGE


def _imports(tree: ast.AST, path: Path, module: tuple[str, ...]) -> Iterator[Import]:
    package = module if path.name == "__init__.py" else module[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                outer = package[: len(package) - node.level + 1]
                base = ".".join([*outer, base] if base else outer)
            yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in {"import_module", "__import__"}:
            target = node.args[0] if node.args else None
            if isinstance(target, ast.Constant) and isinstance(target.value, str):
                yield Import(target.value, node.lineno)


def _called(node: ast.Call) -> str | None:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def _objection(module: tuple[str, ...], place: str, item: Import) -> str | None:
    """Why this import is not allowed, or `None`."""
    top = item.parts[0]
    if top in NOT_SHIPPED:
        return f"imports `{item.target}`, which is not shipped"
    if top in {"pipeline", "schemas"}:
        return _objection_to_ours(module, place, item)
    return _objection_to_theirs(place, item)


def _objection_to_ours(module: tuple[str, ...], place: str, item: Import) -> str | None:
    target = _place(item.parts)
    if target == PACKAGE:
        return "imports `pipeline` itself: name the module"
    if place == "simulation" and item.parts[:2] != ("pipeline", "simulation") and item.parts[0] == "pipeline":
        return f"the simulation knows the truth by itself, and may not import `{item.target}`"
    if target not in RANK:
        return f"imports `{item.target}`, which has no place in the layers"
    if target == place:
        return _objection_between_steps(module, item) if place == "core" else None
    if RANK[target] <= RANK[place]:
        return f"`{place}` may not import `{target}`: imports point right, from cli to schemas"
    return None


def _objection_between_steps(module: tuple[str, ...], item: Import) -> str | None:
    own, other = _step(module), _step(item.parts)
    if other == own or other in SHARED:
        return None
    return f"core's steps do not import each other: `{own}` may not import `{other}`"


def _step(module: tuple[str, ...]) -> str:
    """The step that a module of core, or a name in it, belongs to; `core` for the package itself."""
    name = module[2] if len(module) > 2 else "core"
    return PART_OF.get(name, name)


def _objection_to_theirs(place: str, item: Import) -> str | None:
    top = item.parts[0]
    if place in PURE and (top in PURE_MAY_NOT_IMPORT or top.startswith(PURE_MAY_NOT_IMPORT_PREFIXES)):
        return f"`{place}` is pure, and may not import `{top}`"
    if top == "faust" and place != "runners":
        return f"only `runners` imports Faust, not `{place}`"
    if top == "aiokafka" and place != "runners" and ("consumer" in item.parts or "AIOKafkaConsumer" in item.parts):
        return f"only `runners` consumes from Kafka, not `{place}`"
    if top == "os" and item.parts[-1] in ENVIRONMENT_NAMES and place not in READS_THE_ENVIRONMENT:
        return f"only the CLI reads the environment, not `{place}`"
    return None


def _uses(tree: ast.AST, place: str) -> Iterator[tuple[int, str]]:
    """What needs no import of its own: the environment and consumers by attribute, and a clock by `datetime`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            if owner == "os" and node.attr in ENVIRONMENT_NAMES and place not in READS_THE_ENVIRONMENT:
                yield node.lineno, f"only the CLI reads the environment, not `{place}`"
            if owner == "aiokafka" and node.attr == "AIOKafkaConsumer" and place != "runners":
                yield node.lineno, f"only `runners` consumes from Kafka, not `{place}`"
            if place in PURE and owner in {"datetime", "date"} and node.attr in CLOCK_CALLS:
                yield node.lineno, f"`{place}` has no clock: now is the watermark, and the caller passes it"


def main() -> int:
    """Print the violations of this work tree; status 1 if there is one."""
    violations = check(Path(__file__).resolve().parents[1])
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
