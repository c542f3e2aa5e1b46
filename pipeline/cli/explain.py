"""`trueup explain`: one verdict, criterion by criterion, with the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
import requests
import typer

from pipeline.cli.common import Config, Debug, settings
from pipeline.errors import TrueupError
from pipeline.review.explain import explain as explained
from pipeline.review.explain_text import as_text

DEFAULT_TENANT = "default"
PATIENCE_SECONDS = 30.0


class Format(StrEnum):
    """How it is told."""

    TEXT = "text"
    JSON = "json"


class NotTold(TrueupError):
    """The worker cannot be asked, or has nothing to say of this session."""


def explain(
    session: Annotated[str, typer.Argument(help="[TENANT/]CONVERSATION[#n]", metavar="SESSION")],
    url: Annotated[
        str | None, typer.Option("--url", help="Of a worker; its port on this machine if not given.")
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="For people or for programs.")] = Format.TEXT,
    token_file: Annotated[Path | None, typer.Option("--token-file", help="Has the bearer token to read with.")] = None,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Tells why a session was judged as it was: what was claimed, what was heard, and what changed.

    Example: trueup explain default/chat-17#2 --url http://127.0.0.1:6066
    """
    chosen = settings(config)
    base = (url or f"http://127.0.0.1:{chosen.worker_port}").rstrip("/")
    story, ordinal = _story(base, session, _headers(token_file))
    told = explained(story, ordinal)
    if format_ is Format.JSON:
        body = {"as_of": story["as_of"], "sessions": told}
        print(msgspec.json.format(msgspec.json.encode(body)).decode())
    else:
        print(as_text(told, story["as_of"]), end="")


def readings(session: str) -> Iterator[tuple[str, str, int | None]]:
    """What the address may mean, likeliest first: ids of conversations may have `/` and `#` themselves."""
    bare, mark, number = session.rpartition("#")
    ordinals = [(bare, int(number))] if mark and number.isascii() and number.isdigit() else []
    for name, ordinal in [*ordinals, (session, None)]:
        tenant, slash, conversation = name.partition("/")
        if slash and tenant and conversation:
            yield tenant, conversation, ordinal
        yield DEFAULT_TENANT, name, ordinal


def _story(base: str, session: str, headers: dict[str, str]) -> tuple[dict[str, Any], int | None]:
    """The conversation, and which of its sessions is asked for.

    Raises:
        NotTold: there is none, or nobody answers.
    """
    for tenant, conversation, ordinal in readings(session):
        story = _ask(base, f"/api/sessions/{quote(tenant, safe='')}/{quote(conversation, safe='')}", headers)
        if story is None:
            continue
        known = [one["ordinal"] for one in story["sessions"]]
        if ordinal is None or ordinal in known:
            return story, ordinal
        raise NotTold(f"{tenant}/{conversation} has no session #{ordinal}; it has {', '.join(f'#{n}' for n in known)}")
    raise NotTold(f"{session}: {base} knows no such session; /api/sessions lists those it knows")


def _ask(base: str, path: str, headers: dict[str, str]) -> dict[str, Any] | None:
    try:
        answer = requests.get(base + path, headers=headers, timeout=PATIENCE_SECONDS)
        body: dict[str, Any] = answer.json()
    except requests.JSONDecodeError as error:
        raise NotTold(f"{base} answers with {answer.status_code} and no JSON: is it a trueup worker?") from error
    except requests.RequestException as error:
        why = type(error).__name__
        raise NotTold(f"{base} does not answer ({why}): name a running worker with --url") from error
    if answer.status_code == requests.codes.not_found:
        return None
    if answer.status_code != requests.codes.ok:
        hint = "; give --token-file" if answer.status_code in (401, 403) else ""
        raise NotTold(f"{base} answers with {answer.status_code}: {body.get('error', 'no reason given')}{hint}")
    return body


def _headers(token_file: Path | None) -> dict[str, str]:
    if token_file is None:
        return {}
    try:
        return {"Authorization": f"Bearer {token_file.read_text('utf-8').strip()}"}
    except (OSError, UnicodeDecodeError) as error:
        raise NotTold(f"{token_file}: cannot be read: {error}") from error
