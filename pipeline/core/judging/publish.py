"""What stage 4 sends: verdicts that differ from what was sent before, tombstones for leftovers, rows, partials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import msgspec

from pipeline.core.contracts.book import ContractBook
from pipeline.core.effects import Outbox, Result, Versions
from pipeline.core.judging.accept import SettledGuard
from pipeline.core.judging.beyond import forget, pushed_out
from pipeline.core.judging.changes import changes
from pipeline.core.judging.fold import Contribution, Fold, contribution
from pipeline.core.judging.judge import Judged
from pipeline.core.judging.reasons import Inputs, reason
from pipeline.core.judging.rows import as_json, outcome_row, revision_row, step_row, verdict_rows
from pipeline.core.judging.settled import Known
from pipeline.core.judging.state import Conversation, FreshSpan, Published
from pipeline.core.judging.views import TraceView
from pipeline.core.timeline import TimeRules
from schemas.outcome import Attached
from schemas.segment import Dimensions
from schemas.span import SPAN_ID_BYTES, is_told
from schemas.topics import Topic, partition_of
from schemas.verdict import Verdict
from schemas.wire import DeadLetter, Keyed

_encode = msgspec.msgpack.Encoder().encode
_decode_verdict = msgspec.msgpack.Decoder(Verdict).decode


def published(verdict: Verdict, revision: int, counted: Contribution | None) -> Published:
    """What is kept of a verdict when it was published."""
    content = _encode(msgspec.structs.replace(verdict, as_of=0))
    return Published(revision, _digest(content), content, counted)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


class Publisher:
    """Writes to the step's outbox; keeps in `Conversation.published` what was sent."""

    def __init__(
        self,
        partition: int,
        partitions: int,
        book: ContractBook,
        rules: TimeRules,
        outbox: Outbox,
        versions: Versions,
        fold: Fold,
        guard: SettledGuard,
    ) -> None:
        self._partition, self._partitions, self._book, self._rules = partition, partitions, book, rules
        self._outbox, self._versions, self._fold, self._guard = outbox, versions, fold, guard

    def publish(self, conversation: Conversation, judged: Judged, watermark: int) -> None:
        """Send every ordinal whose content changed, and a tombstone for each that the cut no longer has."""
        published, verdicts = conversation.published, judged.verdicts
        inputs = Inputs(conversation.causes, conversation.about, verdicts, judged.attached)
        for index, verdict in enumerate(verdicts):
            if index < conversation.sealed:
                continue
            if index == len(published):
                published.append(Published(0, b"", b"", None))
            self._revise(conversation, index, msgspec.structs.replace(verdict, as_of=0), inputs, watermark)
        for index in range(len(verdicts), len(published)):
            if published[index].verdict:
                gone = Verdict(conversation.tenant, conversation.name, index + 1, deleted=True)
                self._revise(conversation, index, gone, inputs, watermark)
        conversation.told()

    def _revise(self, conversation: Conversation, index: int, verdict: Verdict, inputs: Inputs, watermark: int) -> None:
        known = conversation.published[index]
        content = _encode(verdict)
        digest = _digest(content)
        if digest == known.digest:
            return
        before = _decode_verdict(known.verdict) if known.verdict else None
        judged = verdict.terminal or verdict.deleted or (before is not None and before.terminal)
        revision = known.revision + (1 if judged else 0)
        earlier = before if known.revision else None
        changed = changes(earlier, verdict)
        sent = msgspec.structs.replace(
            verdict,
            version=self._versions.next(),
            revision=revision,
            as_of=watermark,
            reason=reason(inputs.of(index, earlier, verdict), changed),
        )
        if verdict.terminal:
            known_flags = before.flags if before is not None and before.terminal else ()
            for flag in set(verdict.flags) - set(known_flags):
                self._outbox.count(Result.NOTED, f"session_{flag}")
        if before is not None and before.terminal and self._guard.is_settled(before.end, watermark):
            self._outbox.count(Result.NOTED, "restated")
        if known.contribution is not None:
            self._fold.add(known.contribution, -1)
        added = None
        if not verdict.deleted:
            contract = self._book.named(verdict.contract)
            added = contribution(verdict, contract, self._rules.bucket, self._fold.cubes)
            self._fold.add(added, +1)
        conversation.published[index] = Published(revision, digest, b"" if verdict.deleted else content, added)
        self._send(sent, changed if judged else None, watermark, conversation.began)

    def _send(self, verdict: Verdict, changed: list[str] | None, watermark: int, began: int) -> None:
        document = as_json(verdict)
        key = f"{verdict.tenant}\0{verdict.conversation}\0{verdict.ordinal}".encode()
        self._outbox.send(Topic.VERDICTS, self._partition, Keyed(key, document))
        bucket = verdict.end // self._rules.bucket * self._rules.bucket
        for row in verdict_rows(verdict, bucket, self._guard.is_settled(verdict.end, watermark), began):
            self._outbox.send(Topic.ROWS, self._partition, row)
        if changed is not None:
            self._outbox.send(Topic.ROWS, self._partition, revision_row(verdict, changed, document, began))

    def repeat(self, conversation: Conversation) -> None:
        """Send what holds once more, with higher versions, and overrule ordinals that a dead worker may have sent."""
        for index in range(conversation.sealed, max(len(conversation.published), len(conversation.traces))):
            known = conversation.published[index] if index < len(conversation.published) else None
            if known is not None and known.verdict:
                verdict = msgspec.structs.replace(_decode_verdict(known.verdict), revision=known.revision)
            else:
                revision = known.revision if known is not None else 0
                verdict = Verdict(conversation.tenant, conversation.name, index + 1, deleted=True, revision=revision)
            verdict = msgspec.structs.replace(verdict, version=self._versions.next())
            self._send(verdict, None, 0, conversation.began)

    def steps(self, conversation: Conversation, spans: Sequence[FreshSpan], views: Sequence[TraceView]) -> None:
        """Rows of `agent_steps` for the spans that are news, or are told news of by log records.

        Those beyond the limit of a trace are left out, and taken back where they were not before.
        """
        by_trace = {view.trace_id: view.by_id for view in views}
        about = {(trace_id, span_id[:SPAN_ID_BYTES]): None for trace_id, span_id, *_ in spans}
        for trace_id, span_id in about:
            span = by_trace.get(trace_id, {}).get(span_id)
            if span is not None:
                row = step_row(conversation.name, span, self._versions.next(), conversation.began)
                self._outbox.send(Topic.ROWS, self._partition, row)
        most = self._rules.max_spans_per_trace
        for span in pushed_out(conversation.traces, spans, views, most):
            row = step_row(conversation.name, span, self._versions.next(), conversation.began, deleted=True)
            self._outbox.send(Topic.ROWS, self._partition, row)
        for trace_id in by_trace:
            forget(conversation.traces[trace_id], most)

    def left_out(self, conversation: Conversation, fresh: Sequence[FreshSpan]) -> None:
        """Spans above a trace's limit (rule 8), each once; what log records tell is none."""
        most = self._rules.max_spans_per_trace
        new = Counter(one.trace_id for one in fresh if one.before is None and not is_told(one.span_id))
        for trace_id, n in new.items():
            held = conversation.traces[trace_id].spans
            if len(held) <= most:
                continue
            over = sum(not is_told(span_id) for span_id in held) - most
            if over > 0:
                self._outbox.count(Result.NOTED, "truncated", min(n, over))

    def outcome_row(self, record: Attached, began: int) -> None:
        self._outbox.send(Topic.ROWS, self._partition, outcome_row(record, self._versions.next(), began))

    def send_partials(self, keys: Iterable[tuple[str, Dimensions, int]], outcome_at: int = 0) -> None:
        for key in keys:
            cube, dimensions, _ = key
            target = partition_of(self._partitions, cube, *(part for pair in dimensions for part in pair))
            partial = self._fold.partial(key, self._partition, self._versions.next())
            partial = msgspec.structs.replace(partial, outcome_at=outcome_at)
            self._outbox.send(Topic.PARTIALS, target, partial)

    def known(self, conversation: Conversation, known: Known) -> None:
        """Spans of what has settled."""
        if known.repeated:
            self._outbox.count(Result.DROPPED, "repeated", known.repeated)
        if known.refused:
            self.settled(conversation, known.refused)

    def settled(self, conversation: Conversation, refused: Sequence[FreshSpan]) -> None:
        """Spans that came after their session had settled; another copy of a known one is a duplicate, no loss."""
        by_trace = Counter(one.trace_id for one in refused if one.before is None)
        self._outbox.count(Result.DEAD_LETTERED, "settled", by_trace.total())
        for trace_id, n in by_trace.items():
            detail = f"{n} spans of a trace whose session had settled when they came"
            self.dead_letter(conversation.tenant, "settled", detail, trace_id.hex())

    def dead_letter(self, tenant: str, why: str, detail: str, trace_id: str = "") -> None:
        """Of something that came for a conversation; who refuses it counts it."""
        letter = DeadLetter(why, detail, Topic.SESSION_EVENTS, self._partition, -1, 0, 0, tenant, trace_id)
        self._outbox.send(
            Topic.DEAD_LETTERS, self._partition, Keyed(Topic.SESSION_EVENTS.encode(), msgspec.json.encode(letter))
        )
