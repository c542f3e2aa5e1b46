"""`trueup inspect`: what trueup understands of files of spans and log records, and what it does not."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.cli.common import Config, Debug, settings
from pipeline.review.inspect import FileSeen, Lost, Report, unreadable
from pipeline.review.inspect import inspect as inspected

WIDTH = 140  # of the table where there is no terminal


class Format(StrEnum):
    """How it is told."""

    TABLE = "table"
    JSON = "json"


def inspect(
    files: Annotated[
        list[Path], typer.Argument(help="OTLP: protobuf or JSON, one request or several.", metavar="FILE")
    ],
    format_: Annotated[Format, typer.Option("--format", help="For people or for programs.")] = Format.TABLE,
    together: Annotated[
        bool, typer.Option("--together", help="All files as one: log records tell of spans in another file.")
    ] = False,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Reads files of spans and log records as the pipeline would: the sessions in them, and what is lost and why.

    Files that hold no OTLP are told on stderr; status 2 means that all are such.

    Example: trueup inspect spans.pb more.json --format json
    """
    chosen = settings(config)
    given, missing = _read(files)
    seen = inspected(given, chosen.rules, chosen.conversation_keys, chosen.aliases, together).files
    report = Report([*seen, *missing])
    read = [one for one in report.files if not one.unreadable]
    if format_ is Format.JSON:
        print(msgspec.json.format(report.to_json()).decode())
    elif read:
        Console(width=None if sys.stdout.isatty() else WIDTH).print(table(read))
    for one in report.files:
        if one.unreadable:
            print(f"trueup: {one.file}: {one.unreadable}", file=sys.stderr)
    if not read:
        raise typer.Exit(2)


def table(files: Iterable[FileSeen]) -> Table:
    """One row a file."""
    made = Table(box=box.SIMPLE_HEAD, show_lines=True)
    for name in ("file", "understood", "lost", "why"):
        made.add_column(name, overflow="fold", ratio=None if name == "lost" else 1)
    for one in files:
        lost = "\n".join(f"{loss.count} {loss.reason}" for loss in one.lost) or "nothing"
        made.add_row(Text(one.file), Text(_understood(one)), Text(lost), Text(_why(one.lost)))
    return made


def _why(lost: Iterable[Lost]) -> str:
    return "\n".join(f"{loss.reason}: {loss.why}" for loss in lost)


def _understood(one: FileSeen) -> str:
    """A file in a few words; `--format json` tells session by session."""
    logs = _logs(one)
    if not one.sessions:
        return "; ".join(logs) or _count(one.spans, "span")
    calls = [call.outcome for session in one.sessions for call in session.tool_calls]
    agents = list(dict.fromkeys(name for session in one.sessions for name in session.agents))
    wanted = list(dict.fromkeys(name for session in one.sessions for name in session.tools_asked_for))
    waits = sum(session.waits_for_human for session in one.sessions)
    tokens = [session.tokens for session in one.sessions]
    parts = [
        _count(one.spans, "span"),
        _count(len(one.sessions), "session"),
        _count(sum(session.runs for session in one.sessions), "run"),
        _count(sum(session.model_calls for session in one.sessions), "model call"),
        _count(len(calls), "tool call") + (f" ({calls.count('ok')} ok)" if calls else ""),
        f"{sum(one.input for one in tokens)} tokens in, {sum(one.output for one in tokens)} out",
        *([f"waits for a person: {waits}"] if waits else []),
        f"agents: {', '.join(agents)}" if agents else "no agent named",
        *([f"tools asked for: {', '.join(wanted)}"] if wanted else []),
        *logs,
    ]
    return "; ".join(parts)


def _logs(one: FileSeen) -> list[str]:
    """What log records tell, and evaluations, whoever carries them."""
    return [
        *([_count(one.log_records, "log record")] if one.log_records else []),
        *([f"{_count(one.answers, 'answer')} told of"] if one.answers else []),
        *([_count(len(one.evaluations), "evaluation")] if one.evaluations else []),
    ]


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _read(files: Iterable[Path]) -> tuple[list[tuple[str, bytes]], list[FileSeen]]:
    """Names and contents, and the files that there is nothing of."""
    given: list[tuple[str, bytes]] = []
    missing: list[FileSeen] = []
    for file in files:
        try:
            given.append((str(file), file.read_bytes()))
        except OSError as error:
            missing.append(unreadable(str(file), f"cannot be read: {error.strerror}; name files of OTLP spans"))
    return given, missing
