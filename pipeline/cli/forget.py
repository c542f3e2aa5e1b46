"""`trueup forget`: erases a conversation, or all of a subject, from every store, state and topic of ours."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline.cli.asking import DEFAULT_TENANT, AsFormat, Asker, Format, Url, base_of, print_json
from pipeline.cli.common import Config, Debug, settings
from pipeline.errors import TrueupError

POLL_SECONDS = 0.5
PLACES = {
    "judge": "sessions",
    "resolve": "traces on their way to sessions",
    "correlate": "outcomes and business keys",
    "sink": "rows of the store",
}


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
    url: Url = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="Has the bearer token, of the scope forget.")
    ] = None,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait until all is erased.", min=0)] = 60.0,
    format_: AsFormat = Format.TEXT,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Erases sessions for good; what they counted stays counted, as erased.

    Example: trueup forget --session default/chat-17 --url http://127.0.0.1:6066
    """
    orders = f"{base_of(url, settings(config).worker_port)}/api/forget"
    asker = Asker(token_file, "give --token-file with a token of the scope forget", NotForgotten)
    progress = f"{orders}/{_ask(asker, 'POST', orders, _what(session, subject, tenant))['order']}"
    report = _wait(asker, progress, time.monotonic() + wait)
    if format_ is Format.JSON:
        print_json(report)
    else:
        print(_as_text(report, session or "", progress), end="")


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


def _wait(asker: Asker, url: str, deadline: float) -> dict[str, Any]:
    """The last report, which says whether it is done.

    Raises:
        NotForgotten: at the end there was none to be had.
    """
    report: dict[str, Any] = {"done": False, "conversations": 0, "found": {}}
    while not report["done"]:
        try:
            report = _ask(asker, "GET", url)
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


def _ask(asker: Asker, method: str, url: str, body: dict[str, str] | None = None) -> dict[str, Any]:
    told = asker.ask(method, url, body=body)
    if told is None:
        raise NotForgotten(f"{url}: nothing can be erased here; name a worker with stages and a store with --url")
    return told
