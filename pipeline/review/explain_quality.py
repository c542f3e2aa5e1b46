"""How well a session was done: what judges and people scored, and how a trial compares with what was expected of it.

The rule this file keeps: an evaluator that abstained or failed is told as that; nothing is a zero but a zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.review.wording import listed, plural

Record = Mapping[str, Any]

STATES = {"abstained": "its evaluator abstained", "error": "its evaluation failed"}
MOST_TEXT = 200
TRIAL = (
    ("tool_name_precision", "names precise"),
    ("tool_name_recall", "names recalled"),
    ("tool_argument_precision", "arguments precise"),
    ("tool_argument_recall", "arguments recalled"),
    ("reliability", "reliability"),
)


def how_well(session: Record, story: Record) -> list[str]:
    """Sentences; none where nobody scored anything.

    Args:
        session: as the read API tells it, of the conversation `story`.
    """
    verdict: Record = session["verdict"]
    evaluations: Sequence[Record] = session.get("evaluations") or []
    return [
        *_measure("Goal achievement", verdict.get("goal_achievement"), verdict.get("goal_state")),
        *_coherence(verdict, evaluations, story),
        *(_told(one) for one in evaluations if one["evaluation"] != "coherence"),
        *_feedback(verdict),
        *_trial(verdict),
    ]


def cause(verdict: Record) -> Iterator[str]:
    """Where it broke first."""
    stage, what = verdict.get("failure_stage"), verdict.get("failure_cause")
    if not stage:
        return
    agent = f", by the agent {verdict['failure_agent']}" if verdict.get("failure_agent") else ""
    known = {
        "model": "a model call that failed at the end",
        "run": "a run that broke",
        "refusal": "a refusal that only the agent claims",
    }
    name = known.get(str(what)) or (f"the {what}" if str(what).startswith("tool ") else f"the criterion {what}")
    yield f"It broke first in the stage {stage}: {name}{agent}."


def _measure(name: str, value: float | None, state: str | None) -> Iterator[str]:
    if value is not None:
        yield f"{name} {_number(value)} of 10."
    elif state in STATES:
        yield f"{name} is not known: {STATES[state]}."


def _coherence(verdict: Record, evaluations: Sequence[Record], story: Record) -> Iterator[str]:
    yield from _measure("Coherence", verdict.get("coherence"), verdict.get("coherence_state"))
    held = next((one for one in evaluations if one["evaluation"] == "coherence"), None)
    if held is None or not verdict.get("contradictions"):
        return
    told = [
        outcome["data"].get("contradictions")
        for outcome in story["outcomes"]
        if outcome["kind"] == "evaluation"
        and (outcome["data"] or {}).get("name") == "coherence"
        and (outcome["source"], outcome["event_time"]) == (held["source"], held["at"])
    ]
    texts = next((one for one in told if isinstance(one, list)), [])
    what = f": {'; '.join(str(one)[:MOST_TEXT] for one in texts)}" if texts else ""
    yield f"{held['source']} found {plural(verdict['contradictions'], 'contradiction')}{what}."


def _told(one: Record) -> str:
    about = f", about {one['layer']}" if one.get("layer") else ""
    whose = " (a claim of the agent's own)" if one.get("from_agent") else ""
    if one["state"] in STATES:
        return f"{one['evaluation']}{about}: {STATES[one['state']]} ({one['source']})."
    score = _number(one["score"]) if one.get("score") is not None else ""
    label = f"{one['label']!r}" if one.get("label") else ""
    return f"{one['evaluation']}{about}: {listed(text for text in (score, label) if text)} by {one['source']}{whose}."


def _feedback(verdict: Record) -> Iterator[str]:
    if verdict.get("feedback") is not None:
        yield f"The customer's feedback is {verdict['feedback']:.0%} of its scale."


def _trial(verdict: Record) -> Iterator[str]:
    if not verdict.get("scenario"):
        return
    trial = f", trial {verdict['trial']}" if verdict.get("trial") else ""
    name = f"It plays the scenario {verdict['scenario']}{trial}"
    scores = [f"{words} {verdict[column]:.0%}" for column, words in TRIAL if verdict.get(column) is not None]
    yield f"{name}: {listed(scores)}." if scores else f"{name}; its contract expects no calls of it, or none is known."


def _number(value: float) -> str:
    return f"{value:g}"
