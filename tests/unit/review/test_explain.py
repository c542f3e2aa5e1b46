"""Explanations of real stories, word by word: what the read API told of a conversation, and what is said of it.

The stories are answers of `/api/sessions/{tenant}/{conversation}`, of the demo's world and of a program with the stock
OTel SDK.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.review.explain import explain
from pipeline.review.explain_text import WIDTH, as_text

GOLDEN = Path(__file__).parents[2] / "golden" / "explain"
KINDS = ("proven", "refuted", "unproven", "came-back", "with-a-person", "refused", "waiting", "open")


def story(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"{kind}.json").read_text("utf-8"))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_story_is_told_so(kind: str) -> None:
    told = story(kind)

    text = as_text(explain(told), told["as_of"])

    assert text == (GOLDEN / f"{kind}.txt").read_text("utf-8")
    assert max(len(line) for line in text.splitlines()) <= WIDTH


def test_every_story_has_its_text() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(KINDS)


def test_one_session_of_several_is_told_alone() -> None:
    told = story("refuted")

    assert [one.session for one in explain(told)] == [f"default/{told['conversation']}#{n}" for n in (1, 2)]
    assert [one.session for one in explain(told, 2)] == [f"default/{told['conversation']}#2"]


def test_without_the_contract_it_tells_what_it_knows() -> None:
    told = story("waiting")
    del told["contracts"]

    [explained] = explain(told)

    payment = next(one for one in explained.criteria if one.id == "payment_confirmed")
    assert payment.asks == ""
    assert payment.why.startswith("It waits for it until ")


def test_a_return_in_another_conversation_is_named() -> None:
    told = story("came-back")
    told["sessions"][0]["revisions"][-1]["verdict"]["reopened_by"] = "mail-7#2"

    text = as_text(explain(told), told["as_of"])

    assert "Why the customer came back: see the session mail-7#2 of the same customer." in text


def test_what_an_agent_says_of_itself_is_called_a_claim() -> None:
    told = story("waiting")
    told["outcomes"] = [
        {
            "source": "order-bot", "event_id": "e", "via": "session", "event_version": 1, "kind": "evidence",
            "event_time": told["sessions"][0]["verdict"]["end"], "data": {"payment_status": "settled"},
            "from_agent": True,
        }
    ]  # fmt: skip

    [explained] = explain(told)

    payment = next(one for one in explained.criteria if one.id == "payment_confirmed")
    assert "a claim, and no evidence" in explained.heard[0]
    assert "order-bot" not in payment.why


def test_evidence_of_another_session_is_not_this_ones() -> None:
    first = explain(story("unproven"))[0]

    refund = next(one for one in first.criteria if one.id == "refund_settled")
    assert (refund.status, refund.reason) == ("failed", "unverified")
    assert "billing said" not in refund.why


@pytest.mark.parametrize("part", ["criteria", "revisions", "spans", "outcomes", "contracts"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_story_of_which_a_part_is_not_stored_yet_is_told_without_it(kind: str, part: str) -> None:
    told, whole = story(kind), explain(story(kind))
    for session in told["sessions"]:
        session.update({part: []} if part in session else {})
    told.update({part: type(told[part])()} if part in told else {})

    partial = explain(told)

    assert [one.came_for for one in partial] == [one.came_for for one in whole]
    assert all(one.in_short for one in partial)
    assert as_text(partial, None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"family": "", "family_source": "no_contract"}, "No contract judges what it was for (no_contract)"),
        ({"family": "spa", "family_source": "no_contract"}, "No contract judges the family spa (no_contract)"),
        ({"family_source": "inherited"}, "Its family is that of the session before"),
        ({"invalid": True}, "Set aside as invalid"),
        ({"refused": True}, "Rightly refused, by independent evidence"),
    ],
    ids=["unknown family", "no contract", "inherited", "invalid", "refused"],
)
def test_what_no_rate_counts_says_why(changes: dict[str, Any], said: str) -> None:
    told = copy.deepcopy(story("proven"))
    told["sessions"][0]["verdict"] |= {"eligible": False, **changes}

    assert explain(told)[0].in_short[0].startswith(said)
