"""Stage 1 keeps who is served as a hash, says of whom an outcome is, and shows dead records only where asked to."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest

from pipeline.core.ingest import subject_hash
from schemas.outcome import OutcomeKind
from schemas.topics import Topic
from tests.unit.core.ingest_support import proto, read

KEY = b"k" * 32


def subject_of(value: str, **options: Any) -> str:
    said = read(proto({"trueup.subject": value}), **options).span.said
    assert said is not None
    (kept,) = said.subjects
    return kept


def test_a_subject_is_kept_as_a_hash_that_needs_the_key() -> None:
    kept = subject_of("ada@example.org", subject_key=KEY)

    assert kept == subject_hash(KEY, b"ada@example.org")
    assert len(kept) == 32
    assert int(kept, 16)
    assert kept == subject_of(" ada@example.org ", subject_key=KEY)
    assert (
        len({kept, subject_of("bob@example.org", subject_key=KEY), subject_of("ada@example.org", subject_key=b"")}) == 3
    )


def outcome(**event: Any) -> bytes:
    given = {"event_id": "1", "event_time": "2026-04-02T10:00:00Z", "source": "bot", "kind": "evidence"}
    return json.dumps(given | {"session_id": "s", "tenant": "acme"} | event).encode()


@pytest.mark.parametrize(
    ("event", "is_claim"),
    [
        pytest.param({}, True, id="of this tenant"),
        pytest.param({"tenant": "rival"}, False, id="the same name in another tenant"),
        pytest.param({"source": "any", "tenant": "rival"}, True, id="in any tenant"),
        pytest.param({"source": "billing"}, False, id="no agent"),
        pytest.param({"source": "billing", "kind": "reopen"}, True, id="a kind that is another's"),
        pytest.param({"source": "crm", "kind": "reopen"}, False, id="whose kind it is"),
    ],
)
def test_what_agents_say_of_themselves_is_a_claim(event: dict[str, Any], is_claim: bool) -> None:
    found = read(
        outcome(**event),
        topic=Topic.OUTCOMES,
        agent_sources=frozenset({"any", ("acme", "bot")}),
        outcome_sources={OutcomeKind.REOPEN: frozenset({"crm"})},
    )

    assert (found.outcome.from_agent or found.outcome.barred) is is_claim


@pytest.mark.parametrize("size", [5, 65_536, 65_537])
def test_a_dead_letter_holds_its_record_only_where_asked_to_and_only_a_small_one(size: int) -> None:
    value = b"\xff" * size
    (quiet,) = read(value).letters
    (open_,) = read(value, dead_letter_payload=True).letters

    assert quiet.payload == ""
    assert b64decode(open_.payload) == (value if size <= 65_536 else b"")
