"""Rules 32 to 37 and 40a: which outcome events count, and which sessions each reaches."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import rfc8785

from tests.oracle.chains import OConversation
from tests.oracle.cutting import OEpisode
from tests.oracle.model import OOutcome, OSettings, OTrace
from tests.oracle.spans import normalised_conversation, plain_id, start_of_trace

SessionKey = tuple[str, str, int]


@dataclass(frozen=True)
class OPlace:
    """One session of the present cut, where outcomes may go."""

    conversation: OConversation
    ordinal: int
    episode: OEpisode

    @property
    def key(self) -> SessionKey:
        """(tenant, conversation, ordinal)."""
        return (self.conversation.tenant, self.conversation.name, self.ordinal)

    @property
    def traces(self) -> tuple[OTrace, ...]:
        """The traces that it holds."""
        return tuple(t for run in self.episode.runs for t in run.traces)


@dataclass(frozen=True)
class OStatement:
    """A trace of a session that states a key."""

    start: int
    trace_id: str
    place: OPlace


class Directory:
    """Every session by conversation, by trace and by the keys that its traces state."""

    def __init__(self, places: Sequence[OPlace]) -> None:
        self.conversations: dict[tuple[str, str], list[OPlace]] = {}
        self.traces: dict[tuple[str, str], OPlace] = {}
        self.keys: dict[tuple[str, tuple[str, str]], list[OStatement]] = {}
        for place in places:
            tenant = place.conversation.tenant
            self.conversations.setdefault((tenant, place.conversation.name), []).append(place)
            for trace in place.traces:
                self.traces[tenant, trace.trace_id] = place
                for key in keys_of_trace(trace):
                    statement = OStatement(start_of_trace(trace), trace.trace_id, place)
                    self.keys.setdefault((tenant, key), []).append(statement)

    def stating(self, tenant: str, keys: Iterable[tuple[str, str]]) -> list[OStatement]:
        """The traces that state any of the keys, in order of start, then id."""
        found = [s for key in keys for s in self.keys.get((tenant, key), [])]
        return sorted(found, key=lambda s: (s.start, s.trace_id))


def keys_of_trace(trace: OTrace) -> frozenset[tuple[str, str]]:
    """Rule 34: the keys that a trace states, values as text."""
    stated = ((name, plain_id(v)) for s in trace.spans for name, values in s.keys.items() for v in values)
    return frozenset((name, value) for name, value in stated if value is not None)


def keys_of_outcome(outcome: OOutcome) -> frozenset[tuple[str, str]]:
    """Rule 34: the keys that an outcome is addressed to, values as text."""
    stated = ((name, plain_id(value)) for name, value in outcome.correlation.items())
    return frozenset((name, value) for name, value in stated if value is not None)


def event_hash(outcome: OOutcome) -> str:
    """Rule 32: SHA-256 of the canonical JSON of the event, every field filled in."""
    fields = {
        name: (str(value) if isinstance(value, int) and not isinstance(value, bool) else value)
        for name, value in vars_of(outcome).items()
    }
    return hashlib.sha256(rfc8785.dumps(fields)).hexdigest()  # type: ignore[arg-type]


def vars_of(outcome: OOutcome) -> dict[str, object]:
    """The fields that are the event: what the record says of it is left out."""
    names = [
        "tenant",
        "source",
        "event_id",
        "event_version",
        "event_time",
        "kind",
        "session_id",
        "ordinal",
        "trace_id",
        "correlation",
        "data",
    ]
    return {name: getattr(outcome, name) for name in names}


def outcome_that_wins(events: Sequence[OOutcome], settings: OSettings) -> OOutcome:
    """Rules 32 and 33: of one identity the highest version, its time at most its record's."""
    winner = max(events, key=lambda e: (e.event_version, e.kind == "retract", event_hash(e)))
    records = [e.record_time for e in events if event_hash(e) == event_hash(winner) and e.record_time is not None]
    if records and winner.event_time > min(records) + settings.max_clock_skew:
        return replace(winner, event_time=min(records))
    return winner


def outcomes_that_count(outcomes: Iterable[OOutcome], settings: OSettings, counted: Counter[str]) -> list[OOutcome]:
    """Rule 32: the newest version of each identity that is not retracted."""
    by_identity: dict[tuple[str, str, str], list[OOutcome]] = {}
    for outcome in outcomes:
        by_identity.setdefault((outcome.tenant, outcome.source, outcome.event_id), []).append(outcome)
    kept = []
    for _, events in sorted(by_identity.items()):
        winner = outcome_that_wins(events, settings)
        tied = {event_hash(e) for e in events if e.event_version == winner.event_version}
        counted["version_tie"] += len(tied) > 1
        if winner.kind == "retract":
            counted["retracted"] += 1
        else:
            kept.append(winner)
    return kept


def is_agents_own(outcome: OOutcome, settings: OSettings) -> bool:
    """Rule 40a: it comes from a span or from a source whose token may also send spans."""
    return outcome.from_agent or outcome.source in settings.agent_sources


def may_say(outcome: OOutcome, settings: OSettings) -> bool:
    """Rule 40a: not the agent's own, and a source that may say this kind."""
    allowed = settings.outcome_sources.get(outcome.kind)
    return not is_agents_own(outcome, settings) and (allowed is None or outcome.source in allowed)


def begun_by(outcome: OOutcome, settings: OSettings) -> int:
    """Rules 35 and 36: what began up to here had begun when the outcome happened."""
    return outcome.event_time + settings.max_clock_skew


def by_conversation(outcome: OOutcome, directory: Directory, settings: OSettings) -> list[OPlace]:
    """Rule 35: the ordinal, else the conversation's last session begun by then."""
    name = normalised_conversation(outcome.session_id) or ""
    own = directory.conversations.get((outcome.tenant, name), [])
    if outcome.ordinal is not None:
        return [p for p in own if p.ordinal == outcome.ordinal]
    return [p for p in own if p.episode.start <= begun_by(outcome, settings)][-1:]


def by_trace(tenant: str, trace_id: str, directory: Directory) -> list[OPlace]:
    """Rule 35: the session that holds the trace."""
    place = directory.traces.get((tenant, trace_id))
    return [] if place is None else [place]


def is_too_broad(key: tuple[str, str], outcome: OOutcome, directory: Directory, settings: OSettings) -> bool:
    """Rule 36: more than 200 traces that began by then state the key."""
    limit = begun_by(outcome, settings)
    begun = [s for s in directory.stating(outcome.tenant, [key]) if s.start <= limit]
    return len(begun) > settings.too_broad_traces


def evidence_by_key(
    keys: Iterable[tuple[str, str]], outcome: OOutcome, directory: Directory, settings: OSettings
) -> list[OPlace]:
    """Rule 36: every session begun by then that holds a trace that states any of the keys."""
    limit = begun_by(outcome, settings)
    holding = {s.place.key: s.place for s in directory.stating(outcome.tenant, keys)}
    return [place for _, place in sorted(holding.items()) if place.episode.start <= limit]


def other_kinds_by_key(
    keys: Iterable[tuple[str, str]], outcome: OOutcome, directory: Directory, settings: OSettings
) -> list[OPlace]:
    """Rule 36: the conversation of the latest trace begun by then that states the key, else of the earliest."""
    stating = directory.stating(outcome.tenant, keys)
    if not stating:
        return []
    limit = begun_by(outcome, settings)
    begun = [s for s in stating if s.start <= limit]
    conversation = (begun[-1] if begun else stating[0]).place.conversation.name
    holding = {s.place.ordinal: s.place for s in stating if s.place.conversation.name == conversation}
    return [place for _, place in sorted(holding.items()) if place.episode.start <= limit][-1:]


def sessions_reached(
    outcome: OOutcome, directory: Directory, settings: OSettings, counted: Counter[str]
) -> list[OPlace]:
    """Rules 34 to 36: the sessions that one outcome reaches; none means that it waits."""
    if outcome.trace_id is not None:
        return by_trace(outcome.tenant, outcome.trace_id, directory)
    if outcome.session_id is not None:
        text = plain_id(outcome.session_id) or ""
        if text.startswith("trace:") and normalised_conversation(text) is None:
            return by_trace(outcome.tenant, text.removeprefix("trace:"), directory)
        return by_conversation(outcome, directory, settings)
    keys = [k for k in keys_of_outcome(outcome) if not is_too_broad(k, outcome, directory, settings)]
    counted["too_broad"] += len(keys_of_outcome(outcome)) - len(keys)
    if outcome.kind == "evidence":
        return evidence_by_key(keys, outcome, directory, settings)
    return other_kinds_by_key(keys, outcome, directory, settings)


def outcomes_of_spans(places: Sequence[OPlace]) -> list[OOutcome]:
    """Rule 40: the evaluations that spans carry; the agent's own word (rule 40a)."""
    found = []
    for span in (s for p in places for t in p.traces for s in t.spans):
        for index, evaluation in enumerate(span.evaluations):
            found.append(
                OOutcome(
                    source="spans",
                    event_id=f"{span.trace_id}/{span.span_id}/{index}",
                    event_time=span.end,
                    kind="evaluation",
                    tenant=span.tenant,
                    trace_id=span.trace_id,
                    data=evaluation,
                    from_agent=True,
                )
            )
    return found


def has_sealed(place: OPlace, outcome: OOutcome, directory: Directory, settings: OSettings) -> bool:
    """Rule 48: the bucket of the session's end had sealed when the outcome came, and so those of the ones before it."""
    own = directory.conversations[place.key[:2]]
    end = max(one.episode.end for one in own if one.ordinal <= place.ordinal)
    bucket_end = end // settings.bucket * settings.bucket + settings.bucket
    return outcome.came is not None and outcome.came > bucket_end + settings.retention


def attach(
    outcomes: Iterable[OOutcome],
    places: Sequence[OPlace],
    settings: OSettings,
    watermark: int,
    counted: Counter[str],
) -> tuple[dict[SessionKey, list[OOutcome]], list[OOutcome]]:
    """Rules 32 to 37: (what each session has, what still waits)."""
    attached: dict[SessionKey, list[OOutcome]] = {p.key: [] for p in places}
    waiting = []
    directory = Directory(places)
    for outcome in [*outcomes_that_count(outcomes, settings, counted), *outcomes_of_spans(places)]:
        reached = sessions_reached(outcome, directory, settings, counted)
        open_ones = [place for place in reached if not has_sealed(place, outcome, directory, settings)]
        for place in open_ones:
            attached[place.key].append(outcome)
        counted["sealed"] += len({place.key[:2] for place in reached} - {place.key[:2] for place in open_ones})
        if not reached:
            if watermark > outcome.event_time + settings.retention:
                counted["no_session"] += 1
            else:
                waiting.append(outcome)
    return attached, waiting
