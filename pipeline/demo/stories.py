"""Sessions that were claimed complete and came out otherwise, told revision by revision.

Written for someone who is woken at night by a rate: what the agent said, what was found later, when, and by whom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.demo.sources import NotThere, Pages
from pipeline.simulation.stories import Story

HOW_MANY = 3
FACTS = ("completion", "resolved", "reopened", "escalated", "verified", "terminal_reason", "claim")


def tell(pages: Pages, stories: Sequence[Story]) -> Iterator[str]:
    """The lines of the first stories that can be told."""
    for number, story in enumerate(stories[:HOW_MANY], start=1):
        try:
            conversation = pages.conversation(story.tenant, story.conversation)
        except NotThere as error:
            yield f"{number}. {story.conversation}: {error}"
            continue
        yield f"{number}. {story.conversation}: {story.what_happened}"
        for session in conversation["sessions"]:
            yield from _session(session)
        for outcome in conversation["outcomes"]:
            yield f"     heard {outcome['event_time']} from {outcome['source']}: {outcome['kind']} {_data(outcome)}"
        yield ""


def _session(session: dict[str, Any]) -> Iterator[str]:
    verdict = session["verdict"]
    yield f"   session {session['ordinal']}, {verdict['family']}, {verdict['start']} to {verdict['end']}"
    before: dict[str, Any] = {}
    for revision in session["revisions"]:
        now = {name: revision["verdict"].get(name) for name in FACTS if name in (revision["verdict"] or {})}
        changed = [f"{name} {_word(value)}" for name, value in now.items() if before.get(name) != value]
        yield f"     revision {revision['revision']} ({revision['reason']}): {', '.join(changed) or 'numbers only'}"
        before = now
    failed = [f"{one['criterion']} {one['status']} ({one['reason']})" for one in session["criteria"]]
    yield f"     criteria: {', '.join(failed)}"


def _word(value: Any) -> str:
    if value is None:
        return "unknown"
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _data(outcome: dict[str, Any]) -> str:
    data = outcome.get("data") or {}
    return ", ".join(f"{name} {value}" for name, value in data.items())
