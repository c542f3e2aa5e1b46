"""`trueup explain`: one verdict, criterion by criterion, with the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from pipeline.cli.asking import DEFAULT_TENANT, AsFormat, Asker, Format, Url, base_of, print_json
from pipeline.cli.common import Config, Debug, settings
from pipeline.errors import TrueupError
from pipeline.review.explain import explain as explained
from pipeline.review.explain_text import as_text


class NotTold(TrueupError):
    """The worker cannot be asked, or has nothing to say of this session."""


def explain(
    session: Annotated[str, typer.Argument(help="[TENANT/]CONVERSATION[#n]", metavar="SESSION")],
    url: Url = None,
    format_: AsFormat = Format.TEXT,
    token_file: Annotated[Path | None, typer.Option("--token-file", help="Has the bearer token to read with.")] = None,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Tells why a session was judged as it was: what was claimed, what was heard, and what changed.

    Example: trueup explain default/chat-17#2 --url http://127.0.0.1:6066
    """
    base = base_of(url, settings(config).worker_port)
    story, ordinal = _story(Asker(token_file, "give --token-file", NotTold), base, session)
    told = explained(story, ordinal)
    if format_ is Format.JSON:
        print_json({"as_of": story["as_of"], "sessions": told})
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


def _story(asker: Asker, base: str, session: str) -> tuple[dict[str, Any], int | None]:
    """The conversation, and which of its sessions is asked for.

    Raises:
        NotTold: there is none, or nobody answers.
    """
    for tenant, conversation, ordinal in readings(session):
        path = f"/api/sessions/{quote(tenant, safe='')}/{quote(conversation, safe='')}"
        story = asker.ask("GET", base + path, named=base)
        if story is None:
            continue
        known = [one["ordinal"] for one in story["sessions"]]
        if ordinal is None or ordinal in known:
            return story, ordinal
        raise NotTold(f"{tenant}/{conversation} has no session #{ordinal}; it has {', '.join(f'#{n}' for n in known)}")
    raise NotTold(f"{session}: {base} knows no such session; /api/sessions lists those it knows")
