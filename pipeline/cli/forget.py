"""`trueup forget`: erases a conversation, or all of a subject, from every store, state and topic of ours."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import requests
import typer

from pipeline.cli.common import Config, Debug, settings
from pipeline.errors import TrueupError

DEFAULT_TENANT = "default"
PATIENCE_SECONDS = 30.0  # for one answer
POLL_SECONDS = 0.5
PLACES = {
    "judge": "sessions",
    "resolve": "traces on their way to sessions",
    "correlate": "outcomes and business keys",
    "sink": "rows of the store",
}


class Format(StrEnum):
    """How it is told."""

    TEXT = "text"
    JSON = "json"


class NotForgotten(TrueupError):
    """Nothing was ordered, or nobody can be asked."""


def forget(
    session: Annotated[
        str | None, typer.Option("--session", help="All sessions of a conversation.", metavar="TENANT/CONVERSATION")
    ] = None,
    subject: Annotated[
        str | None, typer.Option("--subject", help="All sessions that served it, as senders write it.", metavar="VALUE")
    ] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Of the subject; default if not given.")] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="Of a worker; its port on this machine if not given.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="Has the bearer token, of the scope forget.")
    ] = None,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait until all is erased.", min=0)] = 60.0,
    format_: Annotated[Format, typer.Option("--format", help="For people or for programs.")] = Format.TEXT,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Erases sessions for good; what they counted stays counted, as erased.

    Example: trueup forget --session default/chat-17 --url http://127.0.0.1:6066
    """
    chosen = settings(config)
    base = (url or f"http://127.0.0.1:{chosen.worker_port}").rstrip("/")
    headers = _headers(token_file)
    order = _ask("POST", f"{base}/api/forget", headers, _what(session, subject, tenant))["order"]
    report = _wait(f"{base}/api/forget/{order}", headers, time.monotonic() + wait)
    if format_ is Format.JSON:
        print(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        print(_as_text(report, session or "", f"{base}/api/forget/{order}"), end="")


def _what(session: str | None, subject: str | None, tenant: str | None) -> dict[str, str]:
    """What to order.

    Raises:
        NotForgotten: it is not clear what is meant; what is erased by mistake does not come back.
    """
    if (session is None) == (subject is None):
        raise NotForgotten("exactly one of --session and --subject is needed")
    if subject is not None:
        return {"tenant": tenant or DEFAULT_TENANT, "subject": subject}
    if tenant is not None:
        raise NotForgotten("--tenant goes with --subject; --session names it: TENANT/CONVERSATION")
    of_tenant, slash, conversation = (session or "").partition("/")
    if not (of_tenant and slash and conversation):
        raise NotForgotten(f"--session {session}: write TENANT/CONVERSATION, such as {DEFAULT_TENANT}/{session}")
    return {"tenant": of_tenant, "conversation": conversation}


def _wait(url: str, headers: dict[str, str], deadline: float) -> dict[str, Any]:
    """The last report, which says whether it is done.

    Raises:
        NotForgotten: at the end there was none to be had.
    """
    report: dict[str, Any] = {"done": False, "conversations": 0, "found": {}}
    while not report["done"]:
        try:
            report = _ask("GET", url, headers)
        except NotForgotten as error:  # it is ordered all the same
            if time.monotonic() > deadline:
                raise NotForgotten(f"ordered, and under way, but it cannot be told how far: {error}") from error
        if time.monotonic() > deadline:
            break
        time.sleep(0 if report["done"] else POLL_SECONDS)
    return report


def _as_text(report: dict[str, Any], session: str, url: str) -> str:
    if not report["done"]:
        return f"ordered, and under way; it goes on by itself, and {url} tells how far it is\n"
    if not any(n for of_stage in report["found"].values() for what, n in of_stage.items() if what != "conversations"):
        hint = "; leave #n out, whole conversations are erased" if "#" in session else ""
        return f"nothing of it was found{hint}; whatever comes of it is refused from now on\n"
    lines = [f"erased: {_plural(report['conversations'], 'conversation')}; what it counted stays, counted as erased"]
    for stage, place in PLACES.items():
        found = {what: n for what, n in report["found"].get(stage, {}).items() if n and what != "conversations"}
        if found:
            lines.append(f"  {place}: {', '.join(f'{n} {what}' for what, n in sorted(found.items()))}")
    return "\n".join(lines) + "\n"


def _plural(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _ask(method: str, url: str, headers: dict[str, str], body: dict[str, str] | None = None) -> dict[str, Any]:
    try:
        answer = requests.request(method, url, headers=headers, json=body, timeout=PATIENCE_SECONDS)
        told: dict[str, Any] = answer.json()
    except requests.JSONDecodeError as error:
        raise NotForgotten(f"{url} answers with {answer.status_code} and no JSON: is it a trueup worker?") from error
    except requests.RequestException as error:
        why = type(error).__name__
        raise NotForgotten(f"{url} does not answer ({why}): name a running worker with --url") from error
    if answer.status_code == requests.codes.not_found:
        raise NotForgotten(f"{url}: nothing can be erased here; name a worker with stages and a store with --url")
    if not answer.ok:
        hint = "; give --token-file with a token of the scope forget" if answer.status_code in (401, 403) else ""
        raise NotForgotten(f"{url} answers with {answer.status_code}: {told.get('error', 'no reason given')}{hint}")
    return told


def _headers(token_file: Path | None) -> dict[str, str]:
    if token_file is None:
        return {}
    try:
        return {"Authorization": f"Bearer {token_file.read_text('utf-8').strip()}"}
    except (OSError, UnicodeDecodeError) as error:
        raise NotForgotten(f"{token_file}: cannot be read: {error}") from error
