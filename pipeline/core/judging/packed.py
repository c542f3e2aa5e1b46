"""A settled session as bytes: what later outcomes and later sessions read of it, a mark of each span (RULES.md 48).

The rule this file keeps: a session that was packed is judged as it was before. What it counts lies apart from the rest,
so that a restored partition adds its sums up without unpacking a session.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from pipeline.core.contracts.book import ContractBook
from pipeline.core.judging.boundaries import Family, FamilySource, Session
from pipeline.core.judging.claims import Claim
from pipeline.core.judging.fold import Contribution
from pipeline.core.judging.summarise import summary_of
from pipeline.core.judging.summary import Summary
from pipeline.core.packing import Own, Words, pack, unpack
from pipeline.core.timeline import SECOND

MARK_BYTES = 8
TRACE_BYTES = 16

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_FIELDS = Summary.__struct_fields__
_START = _FIELDS.index("start")
_END = _FIELDS.index("end")
_LAST_START = _FIELDS.index("last_start")
_TRACES = _FIELDS.index("trace_ids")
_VALUES = _FIELDS.index("values")
_ROW = {"calls", "ok", "failed"}
_ALIKE = tuple(_FIELDS.index(name) for name in ("resources", "last_run", "handoffs", "flags"))
_ITS_OWN = tuple(_FIELDS.index(name) for name in ("subjects", "issues", "keys", "trial"))


class Unpacked(NamedTuple):
    """A packed session: it has a summary and no runs."""

    session: Session
    marks: frozenset[bytes]


def mark_of(trace_id: bytes, span_id: bytes) -> bytes:
    """By which a span that comes again is known."""
    return blake2b(trace_id + span_id, digest_size=MARK_BYTES).digest()


def pack_marks(marks: Iterable[bytes]) -> bytes:
    return b"".join(sorted(marks))


def unpack_marks(data: bytes) -> frozenset[bytes]:
    return frozenset(data[at : at + MARK_BYTES] for at in range(0, len(data), MARK_BYTES))


# -- what it counts ----------------------------------------------------------------------------------------------------


def pack_count(revision: int, one: Contribution | None, words: Words) -> bytes:
    """The revision that was published last, and what it counts."""
    if one is None:
        return pack([revision], words)
    places = [place for place, (_, n, _, _) in enumerate(one.counts) if not 0 <= n <= 1]
    few = [count for count in one.counts if 0 <= count[1] <= 1]
    many = [number for place in places for number in (one.counts[place][1:3])]
    which = [(place, one.counts[place][0], one.counts[place][3]) for place in places]
    alike = _alike([one.segments, one.stratum, few, one.states, one.failures, which])
    return pack([revision, one.bucket // SECOND, one.bucket % SECOND, alike, many, list(one.measures)], words)


def unpack_count(data: bytes, words: Words) -> tuple[int, Contribution | None]:
    (revision, *rest), _ = unpack(data, words)
    if not rest:
        return revision, None
    seconds, below, alike, many, measures = rest
    segments, stratum, counts, states, failures, which = _unlike(alike)
    for index, (place, rate, age) in enumerate(which):
        counts.insert(place, (rate, many[2 * index], many[2 * index + 1], age))
    found = [seconds * SECOND + below, segments, stratum, counts, states, measures, failures]
    return revision, msgspec.convert(found, Contribution)


# -- what judging reads ------------------------------------------------------------------------------------------------


def pack_session(session: Session, marks: Iterable[bytes], words: Words) -> bytes:
    summary = summary_of(session)
    told: list[Any] = msgspec.to_builtins(summary, builtin_types=(bytes,))
    told[_END] -= summary.start
    told[_LAST_START] -= summary.start
    told[_TRACES] = b"".join(summary.trace_ids)
    values: dict[str, Any] = dict(told[_VALUES])
    values["state"] = _own(values.get("state", {}))
    values["resource"] = _alike(values.get("resource", {}))
    values["tools"] = _pack_tools(values.get("tools", {}))
    told[_VALUES] = values
    for place in _ALIKE:
        told[place] = _alike(told[place])
    for place in _ITS_OWN:
        told[place] = _own(told[place])
    claim = session.claim
    said = (claim.value, claim.by_rule) if claim is not None else None
    contract = session.family.contract  # the one that judged it, whatever is loaded later
    family = session.family.name, session.family.source.value, contract.version if contract is not None else 0
    alike = _alike([session.turns, family, said])
    claimed = summary.end - claim.time if claim is not None else 0
    return pack([told, alike, claimed, pack_marks(marks)], words)


def unpack_session(data: bytes, words: Words, book: ContractBook) -> Unpacked:
    (told, alike, claimed, marks), _ = unpack(data, words)
    turns, (name, source, version), said = _unlike(alike)
    start = told[_START]
    told[_END] += start
    told[_LAST_START] += start
    ids = told[_TRACES]
    told[_TRACES] = [ids[at : at + TRACE_BYTES] for at in range(0, len(ids), TRACE_BYTES)]
    told[_VALUES]["resource"] = _unlike(told[_VALUES]["resource"])
    told[_VALUES]["tools"] = _unpack_tools(told[_VALUES]["tools"])
    for place in _ALIKE:
        told[place] = _unlike(told[place])
    family = Family(name, FamilySource(source), book.named(f"{name}@{version}") if version else None)
    claim = Claim(said[0], told[_END] - claimed, b"", said[1]) if said is not None else None
    summary = msgspec.convert(told, Summary)
    return Unpacked(Session([], turns, family, claim, summary), unpack_marks(marks))


def _pack_tools(table: dict[str, dict[str, int]]) -> list[Any] | dict[str, Any]:
    """Each tool, its calls, and those that failed; the others are ok."""
    if any(row.keys() != _ROW or row["calls"] != row["ok"] + row["failed"] for row in table.values()):
        return table
    return [part for tool, row in table.items() for part in (tool, row["calls"], row["failed"])]


def _unpack_tools(packed: list[Any] | dict[str, Any]) -> dict[str, Any]:
    if isinstance(packed, dict):
        return packed
    rows = zip(packed[::3], packed[1::3], packed[2::3], strict=True)
    return {tool: {"calls": calls, "ok": calls - failed, "failed": failed} for tool, calls, failed in rows}


def _alike(value: Any) -> str:
    """What many sessions have alike becomes one word."""
    return _encode(value).decode("latin-1")


def _unlike(word: str) -> Any:
    return _decode(word.encode("latin-1"))


def _own(value: Any) -> Any:
    """Its texts are this session's alone; names, the keys of dicts, are not."""
    if isinstance(value, str):
        return Own(value)
    if isinstance(value, list | tuple):
        return [_own(one) for one in value]
    if isinstance(value, dict):
        return {name: _own(one) for name, one in value.items()}
    return value
