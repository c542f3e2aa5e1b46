"""What is settled stays as it is: a span that would change it is refused, with its reason (RULES.md 48)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from pipeline.core.contracts.book import ContractBook
from pipeline.core.judging.boundaries import Session
from pipeline.core.judging.state import Conversation, FreshSpan
from pipeline.core.timeline import TimeRules

Fingerprint = tuple[int, int, frozenset[tuple[bytes, bytes]]]
HORIZONS = b"h"
"""The key of the state that says how long settling takes, and took before."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, list[tuple[int, int]]]).decode


def settles_after(book: ContractBook, rules: TimeRules) -> int:
    """How long after a bucket's end it settles, ns: the longest of gap, windows and H, plus lateness."""
    return (
        max(
            rules.session_gap,
            book.longest("resume_window", rules.resume_window),
            book.longest("wait_window", rules.wait_window),
            book.longest_horizon(rules.reopen_window),
        )
        + rules.lateness
    )


class SettledGuard:
    """Finds the fresh spans of a conversation that would join, re-cut or open a settled session.

    What has settled stays so: a longer horizon that comes into force holds for what has not settled by then.
    """

    def __init__(self, book: ContractBook, rules: TimeRules) -> None:
        self._book, self._rules = book, rules
        self._width = rules.bucket
        self._after = settles_after(book, rules)
        self._earlier: list[tuple[int, int]] = []  # how long it took, up to which watermark
        self._dirty = True

    def adopt(self, watermark: int) -> None:
        """From now on the contracts and settings decide that are in force now."""
        after = settles_after(self._book, self._rules)
        if after != self._after:
            longest = max(after, self._after)
            self._earlier = [one for one in self._earlier if one[1] + longest > watermark]
            self._earlier.append((self._after, watermark))
            self._after, self._dirty = after, True

    def load(self, key: bytes, state: bytes) -> bool:
        """Whether the restored key is ours."""
        if key != HORIZONS:
            return False
        self._after, self._earlier = _decode(state)
        self._dirty = False
        return True

    def changed(self) -> Iterator[tuple[bytes, bytes]]:
        if self._dirty:
            self._dirty = False
            yield HORIZONS, _encode((self._after, self._earlier))

    def settled_at(self, end: int) -> int:
        """The last moment at which what ended then has not settled yet, ns."""
        bucket_end = end // self._width * self._width + self._width
        earlier = (bucket_end + after for after, until in self._earlier if bucket_end + after < until)
        return min([bucket_end + self._after, *earlier])

    def is_settled(self, end: int, watermark: int) -> bool:
        return watermark > self.settled_at(end)

    def seals_at(self, end: int) -> int:
        """The last moment at which an outcome for what ended then is still taken, ns."""
        return end // self._width * self._width + self._width + self._rules.retention

    def applies(self, sessions: Iterable[Session], fresh: Iterable[FreshSpan]) -> bool:
        """Whether there is anything to refuse for: some session of the present cut was, or would have been, settled."""
        came = max((one.watermark for one in fresh), default=0)
        return any(one.packed is not None or self.is_settled(one.end, came) for one in sessions)

    def refuse(
        self,
        conversation: Conversation,
        fresh: Sequence[FreshSpan],
        recut: Callable[[Conversation], list[Session]],
    ) -> list[FreshSpan]:
        """Take the offending spans out again and return them; what came of a trace together is tried together."""
        groups: dict[tuple[bytes, int], dict[bytes, tuple[FreshSpan, tuple[int, bytes]]]] = {}
        for one in reversed(fresh):
            held = conversation.traces[one.trace_id].spans
            if one.span_id in held:
                groups.setdefault((one.trace_id, one.watermark), {})[one.span_id] = one, held[one.span_id]
                _put_back(held, one)
        known = {_fingerprint(one): one for one in recut(conversation)}
        refused: list[FreshSpan] = []
        for (trace_id, watermark), spans in reversed(groups.items()):
            held = conversation.traces[trace_id].spans
            held.update({span_id: content for span_id, (_, content) in spans.items()})
            after = {_fingerprint(one): one for one in recut(conversation)}
            lost = [one for mark, one in known.items() if mark not in after and self.is_settled(one.end, watermark)]
            opened = [
                one
                for mark, one in after.items()
                if mark not in known and (one.late or self.is_settled(one.end, watermark))
            ]
            if lost or opened:
                for one, _ in spans.values():
                    _put_back(held, one)
                    refused.append(one)
            else:
                known = after
        return refused


def _put_back(held: dict[bytes, tuple[int, bytes]], one: FreshSpan) -> None:
    """As it was before the span came."""
    if one.before is None:
        del held[one.span_id]
    else:
        held[one.span_id] = one.before


def _fingerprint(session: Session) -> Fingerprint:
    return session.start, session.end, frozenset((trace.trace_id, _encode(trace.spans)) for trace in session.traces)
