"""Which conversation each trace belongs to: ids, links, shared response ids, circles (RULES.md 4 and 5)."""

from __future__ import annotations

import random
from typing import Any

from pipeline.review.grouping import Conversation, conversations
from schemas.span import Kind, Span

MOST = 100


def trace(number: int) -> bytes:
    return number.to_bytes(16, "big")


def span(number: int, start: int = 0, own: int = 1, parent: int = 0, tenant: str = "t", **more: Any) -> Span:
    """A model span of that trace; starts are in order of the traces unless told."""
    begun = start or 10 * number
    given = {"kind": Kind.INFERENCE, **more}
    if "links" in given:
        given["links"] = tuple(trace(link) for link in given["links"])
    parent_id = parent.to_bytes(8, "big") if parent else b""
    return Span(tenant, trace(number), own.to_bytes(8, "big"), parent_id, begun, begun + 5, name="chat", **given)


def groups(*spans: Span) -> list[tuple[str, list[int]]]:
    found = conversations(spans, MOST)
    shuffled = list(spans)
    random.Random(len(spans)).shuffle(shuffled)
    assert conversations(shuffled, MOST) == found
    return [(one.conversation_id, _numbers(one)) for one in found]


def _numbers(one: Conversation) -> list[int]:
    return [int.from_bytes(view.trace_id, "big") for view in one.traces]


def test_traces_of_one_id_are_one_conversation_and_tenants_are_apart():
    assert groups(span(1, ids=("c",)), span(2, ids=("d",)), span(3, ids=("c",))) == [("c", [1, 3]), ("d", [2])]
    assert groups(span(1, ids=("c",)), span(2, ids=("c",), tenant="u")) == [("c", [1]), ("c", [2])]


def test_the_id_nearest_the_root_holds():
    delegated = span(1, own=2, parent=1, ids=("inner",))
    assert groups(delegated, span(1, ids=("outer", "other"))) == [("outer", [1])]
    assert groups(delegated, span(1)) == [("inner", [1])]


def test_a_trace_without_an_id_follows_its_links_to_the_end_of_the_chain():
    assert groups(span(1, ids=("c",)), span(2, links=[1]), span(3, links=[2])) == [("c", [1, 2, 3])]
    assert groups(span(1), span(2, links=[1]), span(3, links=[2])) == [("", [1, 2, 3])]
    assert groups(span(1), span(2, links=[9])) == [("", [1]), ("", [2])]


def test_a_trace_with_an_id_pulls_in_nobody_by_its_own_links():
    assert groups(span(1), span(2, ids=("c",), links=[1])) == [("", [1]), ("c", [2])]


def test_a_linked_trace_with_an_id_comes_before_an_earlier_one_without():
    assert groups(span(1), span(2, ids=("c",)), span(3, links=[1, 2])) == [("", [1]), ("c", [2, 3])]
    assert groups(span(1), span(2), span(3, links=[1, 2])) == [("", [1, 3]), ("", [2])]


def test_only_the_eight_smallest_trace_ids_are_followed():
    without = [span(number) for number in range(1, 9)]
    known = span(9, ids=("c",))
    assert groups(*without, known, span(10, links=range(1, 10)))[0] == ("", [1, 10])
    assert groups(*without[1:], known, span(10, links=range(2, 10)))[-1] == ("c", [9, 10])


def test_a_shared_response_id_leads_to_the_trace_that_has_an_id():
    doubled = span(1, response_id="r")
    assert groups(doubled, span(2, ids=("c",), response_id="r")) == [("c", [1, 2])]
    assert groups(doubled, span(2, response_id="r")) == [("", [1, 2])]
    assert groups(doubled, span(2, response_id="other")) == [("", [1]), ("", [2])]
    assert groups(doubled, span(2, response_id="r", tenant="u")) == [("", [1]), ("", [2])]


def test_a_circle_of_links_ends_at_its_earliest_trace():
    assert groups(span(1, links=[3]), span(2, links=[1]), span(3, links=[2]), span(4, links=[3])) == [
        ("", [1, 2, 3, 4])
    ]
    (found,) = conversations([span(2, start=5, links=[1]), span(1, links=[2])], MOST)
    assert {view.leads_to for view in found.traces} == {trace(2)}


def test_of_unequal_copies_the_fuller_one_counts():
    bare, full = span(1, attributes=3), span(1, ids=("c",), attributes=2)
    (found,) = conversations([bare, full, bare], MOST)
    assert found.conversation_id == "c"
    assert [view.spans for view in found.traces] == [(full,)]


def test_a_long_chain_is_no_deep_recursion():
    chain = [span(1, ids=("c",))] + [span(number, links=[number - 1]) for number in range(2, 3000)]
    (found,) = conversations(chain, MOST)
    assert len(found.traces) == 2999
