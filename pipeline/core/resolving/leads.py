"""Where a trace without an id leads (RULES.md 5): along links and shared response ids, to an id or to an end.

Each trace knows only its next step and what the next one says of the rest of the way; a change travels back along the
chain. A trace that gets itself back as the earliest on its way has gone in a circle, and ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from schemas.span import Answer

MOST_LINKS = 8
LONGEST_CHAIN = 10_000
"""Source: RULES.md 5."""

PSEUDO = "trace:"


class Way(msgspec.Struct, array_like=True, frozen=True):
    """Where a trace leads now.

    Args:
        conversation: of the end; `trace:<end>` where that has no id.
        end: trace id of the end; length: steps to it.
        earliest: (start, trace id) of the earliest trace on the way, this one included.
    """

    conversation: str
    end: bytes
    length: int
    earliest: tuple[int, bytes]

    @property
    def attributed(self) -> bool:
        return not self.conversation.startswith(PSEUDO)


def pseudo(trace_id: bytes) -> str:
    """The conversation of a chain that leads nowhere."""
    return f"{PSEUDO}{trace_id.hex()}"


def candidates(
    trace_id: bytes,
    start: int,
    links: Iterable[bytes],
    linked: Mapping[bytes, Answer],
    shared: Iterable[Mapping[bytes, Answer]],
) -> list[Answer]:
    """The traces that this one may follow: those it links to, and for each response id the one that stands for it.

    For a response id that is the earliest trace with an id that has it, else the earliest; where that is this trace
    itself, there is none. Of all, the 8 smallest trace ids count, those never seen among them.
    """
    found: dict[bytes, Answer | None] = {link: linked.get(link) for link in links}
    for answers in shared:
        having = [one for one in answers.values() if not one.withdrawn]
        owners = [one for one in having if one.own_id]
        first = min(owners or having, key=lambda one: (one.start, one.target), default=None)
        if first is not None and (first.own_id or (first.start, first.target) < (start, trace_id)):
            found[first.target] = first
    found.pop(trace_id, None)
    return [one for target in sorted(found)[:MOST_LINKS] if (one := found[target]) is not None]


def way_of(trace_id: bytes, start: int, own_id: str, choices: Iterable[Answer]) -> Way:
    """Where the trace leads: its own id, else along the best choice, else nowhere.

    Of several: one with an id of its own before any other, then the one that starts first, then the smaller id.
    """
    here = Way(own_id or pseudo(trace_id), trace_id, 0, (start, trace_id))
    if own_id:
        return here
    following = min(choices, key=lambda one: (not one.own_id, one.start, one.target), default=None)
    if following is None or following.earliest[1] == trace_id:
        return here
    earliest = min(following.earliest, (start, trace_id))
    if following.length + 2 > LONGEST_CHAIN:
        return Way(pseudo(earliest[1]), earliest[1], 0, earliest)
    return Way(following.conversation, following.end, following.length + 1, earliest)
