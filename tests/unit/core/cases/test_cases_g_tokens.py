"""Tokens that are counted twice, or by nobody, as they are in the field.

The cases are listed in docs/design/CASES.md.
"""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.timeline import HOUR, SECOND
from tests.builders import T0
from tests.unit.core.line import AGENT, CHAT, Line, sent

END = T0 + 10 * SECOND
ID = {"session.id": "c"}


def usage(sent_: int, got: int, **more: Any) -> dict[str, Any]:
    return {"gen_ai.usage.input_tokens": sent_, "gen_ai.usage.output_tokens": got, **more}


def tokens(*said: dict[str, Any], chain: bool = False) -> list[int]:
    """Of a session: a root that says the first, over spans that say the others, below it or one below the other."""
    spans = [sent(1, 1, T0, END, {**ID, **said[0]})]
    spans += [sent(1, n, T0, END, one, n - 1 if chain else 1) for n, one in enumerate(said[1:], start=2)]
    found: list[int] = Line().spans(*spans).until(END + HOUR).only()["tokens"]
    return found


def test_case_G01_an_agent_that_holds_the_sum_of_its_models_is_not_added() -> None:
    assert tokens({**AGENT, **usage(30, 12)}, {**CHAT, **usage(10, 4)}, {**CHAT, **usage(20, 8)}) == [30, 12, 0]


def test_case_G02_of_models_within_models_the_innermost_counts() -> None:
    model = {**CHAT, **usage(10, 4)}
    assert tokens(AGENT, model, model, chain=True) == [10, 4, 0]
    assert tokens(AGENT, model, model, model, chain=True) == [10, 4, 0]


def test_case_G02_a_model_that_a_tool_of_a_model_calls_is_a_call_of_its_own() -> None:
    model = {**CHAT, **usage(10, 4)}
    for name in ("ask", "transfer_to_human"):  # a hand-off is a tool, too
        inner = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        assert tokens(AGENT, model, inner, model, chain=True) == [20, 8, 0]


def test_case_G03_a_wrapper_with_a_rolled_up_sum_and_no_model_is_left_out_whole() -> None:
    wrapper = {**CHAT, **usage(30, 12)}
    parts = [
        {**CHAT, "gen_ai.request.model": "m", **usage(10, 4)},
        {**CHAT, "gen_ai.request.model": "m", **usage(20, 8)},
    ]
    spans = [sent(1, 1, T0, END, {**AGENT, **ID}), sent(1, 2, T0, END, wrapper, 1)]
    spans += [sent(1, n, T0, END, one, 2) for n, one in enumerate(parts, start=3)]
    found = Line().spans(*spans).until(END + HOUR).only()
    assert (found["tokens"], found["models"]) == ([30, 12, 0], ["m"])


def test_case_G04_what_a_wrapper_did_not_report_is_not_estimated() -> None:
    wrapper = {"ai.operationId": "ai.generateText", "ai.model.id": "m", "ai.prompt": "a long text " * 100}
    assert tokens({**AGENT, **wrapper}, {**CHAT, **usage(10, 4)}) == [10, 4, 0]
    assert tokens(AGENT, {**CHAT, "gen_ai.input.messages": "a long text " * 100}) == [0, 0, 0]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        pytest.param(
            usage(100, 5, **{"gen_ai.usage.cache_read.input_tokens": 80}), [100, 5, 80], id="the total holds it"
        ),
        pytest.param(
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.usage_details": '{"input": 20, "input_cache_read": 80, "output": 5}',
            },
            [100, 5, 80],
            id="it was taken out of the total",
        ),
    ],
)
def test_case_G05_cached_input_is_counted_once_whatever_the_emitter_takes_as_the_total(
    said: dict[str, Any], found: list[int]
) -> None:
    counted = tokens(AGENT, {**CHAT, **said})
    assert counted == found
    assert counted[2] <= counted[0]


def test_case_G07_what_a_total_holds_beyond_its_parts_is_no_output() -> None:
    assert tokens(AGENT, {**CHAT, **usage(4_299, 631, **{"gen_ai.usage.total_tokens": 58_291})}) == [4_299, 631, 0]


def test_case_G08_usage_under_an_unknown_key_is_not_taken_for_anything_else() -> None:
    assert tokens(AGENT, {**CHAT, **usage(10, 4, **{"gen_ai.usage.cache_write_maybe": 999})}) == [10, 4, 0]
