"""An explanation as plain text, for a terminal, a ticket or a mail.

The rule this file keeps: what holds now comes first, and each part answers one question.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from pipeline.review.explain import Explanation, Revision
from pipeline.review.explain_criteria import Criterion
from pipeline.review.wording import moment

WIDTH = 100
MARKS = {"passed": "passed", "failed": "FAILED", "pending": "waits", "error": "ERROR", "not_applicable": "n/a"}


def as_text(explanations: Iterable[Explanation], as_of: str | None) -> str:
    """All of them, one after the other, each line at most 100 wide where words allow it."""
    return "\n\n\n".join("\n".join(_lines(one, as_of)) for one in explanations) + "\n"


def _lines(one: Explanation, as_of: str | None) -> Iterator[str]:
    judged = f"revision {one.revision}" if one.revision else "not judged yet"
    by = f", judged by {one.contract}" if one.contract else ""
    now = f"; event time is {moment(as_of)}" if as_of else ""
    yield f"{one.session}  {judged}{by}"
    yield f"Times are UTC{now}."
    yield ""
    for sentence in one.in_short:
        yield from _wrapped(sentence, "")
    yield from _part("What the customer came for", [one.came_for])
    yield from _part("What the agent claimed", [one.claimed])
    yield from _part("What was heard from outside", one.heard or ["Nothing yet."])
    if one.how_well:
        yield from _part("How well it was done", one.how_well)
    yield ""
    yield "Criteria"
    if not one.criteria:
        yield "  None: no contract judges it."
    for criterion in one.criteria:
        yield from _criterion(criterion)
    yield ""
    yield "What changed"
    if not one.revisions:
        yield "  Nothing: it has not been judged yet."
    for revision in one.revisions:
        yield from _revision(revision)
    yield from _part("What to look at", one.look_at)


def _part(title: str, sentences: Iterable[str]) -> Iterator[str]:
    yield ""
    yield title
    for sentence in sentences:
        yield from _wrapped(sentence, "  ")


def _criterion(one: Criterion) -> Iterator[str]:
    optional = "" if one.required else "  (not required)"
    yield f"  {MARKS[one.status]:<7} {one.id}{optional}"
    if one.asks:
        yield from _wrapped(f"asks: {one.asks}", " " * 10)
    yield from _wrapped(one.why, " " * 10)


def _revision(one: Revision) -> Iterator[str]:
    yield from _wrapped(f"{one.revision}. by {moment(one.learnt_at)}: {one.because}", "  ")
    for change in one.changed:
        yield from _wrapped(change, " " * 5)


def _wrapped(sentence: str, indent: str) -> list[str]:
    return textwrap.wrap(
        sentence,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
