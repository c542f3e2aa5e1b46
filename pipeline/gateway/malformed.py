"""Spans and log records whose ids are none: they go on to be dead-lettered, and their sender is told at once.

The rule this file keeps: what is told of a span here is what ingest buries it for, as both ask `span_ids`. Ids that are
as they should be are looked at all together, which costs next to nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from pipeline.core.otlp.read_json import read_id
from pipeline.core.otlp.reading import Reading
from pipeline.core.otlp.span_ids import SPAN_BYTES, TRACE_BYTES, from_bytes, repaired

Malformed = Counter[tuple[str, str]]
"""Why, and the item's ids as far as they are some, by which its sender finds it -> how many."""
Items = Iterable[Sequence[Any]]

HEX = re.compile("[0-9a-fA-F]*")
NO_IDS = {bytes(TRACE_BYTES), bytes(SPAN_BYTES), bytes(TRACE_BYTES).hex(), bytes(SPAN_BYTES).hex()}


def malformed_protobuf(lists: Items, may_lack: bool) -> Malformed:
    """What is wrong with the ids of these items.

    Args:
        may_lack: they need none, as log records do not.
    """

    def are_usual(held: Sequence[Any]) -> bool:
        each = list(held)  # to reach an item of a protobuf list costs as much as to ask for its id
        return _fit({one.trace_id for one in each}, [one.span_id for one in each], may_lack, (TRACE_BYTES, SPAN_BYTES))

    return _malformed(lists, may_lack, are_usual, lambda one: (one.trace_id, one.span_id))


def malformed_json(lists: Items, may_lack: bool) -> Malformed:
    """The same of decoded JSON objects."""

    def are_usual(held: Sequence[Any]) -> bool:
        if may_lack and any("trace_id" in one or "span_id" in one for one in held):  # else lacking the names is enough
            return False
        try:
            traces = {one.get("traceId", "") for one in held}
            spans = [one.get("spanId", "") for one in held]
            usual = _fit(traces, spans, may_lack, (2 * TRACE_BYTES, 2 * SPAN_BYTES))
            return usual and bool(HEX.fullmatch("".join((*traces, *spans))))
        except TypeError:  # null, or something else than text
            return False

    unused = Reading()
    return _malformed(
        lists,
        may_lack,
        are_usual,
        lambda one: (
            read_id(one, ("traceId", "trace_id"), TRACE_BYTES, unused),
            read_id(one, ("spanId", "span_id"), SPAN_BYTES, unused),
        ),
    )


def in_words(malformed: Malformed) -> Iterator[str]:
    """For the sender: how many of each kind, and one of them by its ids."""
    for kind in dict.fromkeys(why for why, _ in malformed):
        of_kind = {ids: n for (why, ids), n in malformed.items() if why == kind}
        number, one = sum(of_kind.values()), next(filter(None, of_kind), "")
        named = f" ({'one of them' if number > 1 else 'it'} has {one})" if one else ""
        yield f"{number} item{'s' * (number > 1)}: {kind}{named}"


def _fit(traces: Collection[Any], spans: Collection[Any], may_lack: bool, sizes: tuple[int, int]) -> bool:
    """Whether all have the right length, and none is all zeros; ids that may be missing may be zeros, too."""
    for ids, size in ((traces, sizes[0]), (spans, sizes[1])):
        lengths = set(map(len, ids))
        if not lengths <= ({0, size} if may_lack else {size}):
            return False
    return may_lack or (NO_IDS.isdisjoint(traces) and NO_IDS.isdisjoint(spans))


def _malformed(
    lists: Items,
    may_lack: bool,
    are_usual: Callable[[Sequence[Any]], bool],
    ids_of: Callable[[Any], tuple[bytes, bytes]],
) -> Malformed:
    found: Malformed = Counter()
    for held in lists:
        if are_usual(held):
            continue
        for trace_id, span_id in map(ids_of, held):
            if why := _complaint(trace_id, span_id, may_lack):
                found[why, _findable(trace_id, span_id)] += 1
    return found


def _complaint(trace_id: bytes, span_id: bytes, may_lack: bool) -> str:
    if not may_lack:
        return repaired(trace_id, span_id, b"", lambda _: None)[3]
    for what, raw, size in (("trace", trace_id, TRACE_BYTES), ("span", span_id, SPAN_BYTES)):
        if from_bytes(raw, size)[1] == "bad":
            return f"the {what} id is no id of the right length in any known encoding"
    return ""


def _findable(trace_id: bytes, span_id: bytes) -> str:
    known = {
        "trace id": from_bytes(trace_id, TRACE_BYTES)[0],
        "span id": from_bytes(span_id, SPAN_BYTES)[0],
    }
    return ", ".join(f"{what} {raw.hex()}" for what, raw in known.items() if any(raw))
