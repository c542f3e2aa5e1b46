"""What stage 2 keeps of a trace, and the rules that choose its conversation (RULES.md 1, 4, 6)."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from pipeline.core.resolving.leads import Way, candidates, way_of
from schemas.span import Answer, Span, SpanArrival, SpanFlag, is_told

_decode_span = msgspec.msgpack.Decoder(Span).decode


class Head(msgspec.Struct, array_like=True, frozen=True):
    """What stage 2 reads of a span; `body` is passed on unread."""

    parent_id: bytes
    start: int
    end: int
    record_time: int
    ids: tuple[str, ...]
    work: bool
    stated: tuple[tuple[str, str], ...]
    body: bytes
    links: tuple[bytes, ...] = ()
    response_id: str = ""


class TraceState(msgspec.Struct, array_like=True):
    """A trace.

    Args:
        conversation: empty while it is held; `trace:<id>` when it went without an id.
        stamp: of its membership as last sent.
        first_end: the earliest span end: the trace waits for an id until `trace_timeout` after it.
        waited: the time-out passed without an id: it goes where it leads, and holds nothing back.
        way, told_start: where it leads (rule 5), and its start, as those who asked know them; None until it has spans.
        lead: the end of its way, as stage 4 knows it.
        asked: what it asked -> answers that are still to come; linked, shared: the answers; askers: who asked it, by
            response id or (empty) by link.
        told: what the correlation keys were told last: (start, conversation); keys: those that were told.
        spare: spans that do not count, but would if others did not (rule 8); beyond: what lies further out never will.
        used: its spans have been counted as used.
        settled: not None once it has settled and its spans are gone: their ids, where no conversation knows them.
        last_end: when it ended.
    """

    tenant: str
    trace_id: bytes
    spans: dict[bytes, Head] = {}
    conversation: str = ""
    stamp: int = 0
    first_end: int = 0
    waited: bool = False
    told: tuple[int, str] = (0, "")
    keys: list[tuple[str, str]] = []
    settled: list[bytes] | None = None
    last_end: int = 0
    way: Way | None = None
    told_start: int = 0
    lead: bytes = b""
    asked: dict[str, int] = {}
    linked: dict[bytes, Answer] = {}
    shared: dict[str, dict[bytes, Answer]] = {}
    askers: list[tuple[bytes, str]] = []
    spare: dict[bytes, Head] = {}
    beyond: tuple[int, bytes] | None = None
    used: bool = False

    @property
    def held(self) -> bool:
        """Whether event time must wait for it. What only log records tell of holds nothing: many spans never come."""
        if self.settled is not None or all(map(is_told, self.spans)):
            return False
        return (not self.conversation and not self.waited) or (not self.stated_id() and any(self.asked.values()))

    @property
    def start(self) -> int:
        """Of its work, else of all its spans (rule 6)."""
        work = [head.start for head in self.spans.values() if head.work]
        return min(work or [head.start for head in self.spans.values()])

    @property
    def end(self) -> int:
        return max(head.end for head in self.spans.values())

    @property
    def has_work(self) -> bool:
        return any(head.work for head in self.spans.values())

    @property
    def known(self) -> dict[bytes, Head]:
        """Its spans, with those that do not count."""
        return self.spans | self.spare if self.spare else self.spans

    def links(self) -> set[bytes]:
        return {link for head in self.spans.values() for link in head.links}

    def answers(self) -> list[Answer]:
        """What it was told of others."""
        return [*self.linked.values(), *(one for by_target in self.shared.values() for one in by_target.values())]

    def responses(self) -> set[str]:
        """The response ids that it may follow."""
        return {head.response_id for head in self.spans.values() if head.response_id}

    def own_responses(self) -> set[str]:
        """Those by which others may follow it: an evaluation of a response follows whoever has that."""
        return {head.response_id for one, head in self.spans.items() if head.response_id and not is_told(one)}

    def leads(self) -> Way:
        """Where it leads by what is known now (rule 5)."""
        start, own = self.start, self.stated_id()
        if own:
            return way_of(self.trace_id, start, own, ())
        shared = [self.shared[one] for one in self.responses() if one in self.shared]
        choices = candidates(self.trace_id, start, self.links(), self.linked, shared)
        return way_of(self.trace_id, start, own, choices)

    def stated_id(self) -> str:
        """The conversation id on the span nearest the root (rule 4); empty when no span has one."""
        with_id = {span_id: head for span_id, head in self.spans.items() if head.ids}
        if len({head.ids[0] for head in with_id.values()}) <= 1:
            return next((head.ids[0] for head in with_id.values()), "")
        depths = {span_id: self._depth(span_id) for span_id in with_id}
        nearest = min(with_id, key=lambda one: (*depths[one], with_id[one].start, one))
        return with_id[nearest].ids[0]

    def _depth(self, span_id: bytes) -> tuple[int, bool]:
        """(depth, whether it is itself a span of an unknown parent): those count as depth 0, after true roots."""
        above = {span_id: 0}  # depth below it
        head = self.spans[span_id]
        while head.parent_id in self.spans and head.parent_id not in above:
            above[head.parent_id] = len(above)
            head = self.spans[head.parent_id]
        if head.parent_id in above:  # a circle of parents has no root: all of it counts as roots
            depth = above[head.parent_id]
            return depth, depth == 0
        depth = len(above) - 1
        return depth, depth == 0 and bool(head.parent_id)


def head_of(arrival: SpanArrival) -> Head:
    return Head(
        arrival.parent_id,
        arrival.start,
        arrival.end,
        arrival.record_time,
        arrival.ids,
        arrival.work,
        arrival.stated,
        arrival.body,
        arrival.links,
        arrival.response_id,
    )


def better(one: Head, other: Head) -> Head:
    """Which of two copies of a span holds (rule 1). Copies that differ in the record time alone: the earliest."""
    if one.body == other.body:
        return one if one.record_time <= other.record_time else other
    return max(one, other, key=_worth)


def _worth(head: Head) -> tuple[Any, ...]:
    span = _decode_span(head.body)
    needed_record_time = bool(span.flags & SpanFlag.RECORD_TIME)
    return (
        bool(span.ids),
        not needed_record_time,
        -head.record_time if needed_record_time else 0,
        span.end,
        span.attributes,
        sha256(canonical(span)).digest(),
    )


def canonical(span: Span) -> bytes:
    """The slim record as canonical JSON (sorted names, no spaces, ids in hex)."""
    data = {name: getattr(span, name) for name in Span.__struct_fields__}
    data.update({name: getattr(span, name).hex() for name in ("trace_id", "span_id", "parent_id")})
    data["links"] = [link.hex() for link in span.links]
    data["said"] = None if span.said is None else msgspec.structs.asdict(span.said)
    return msgspec.json.Encoder(order="deterministic").encode(data)
