"""Draws whole conversations: one session or several, and the silence between them.

The silences are far from every limit: a customer who returns does so hours inside or hours outside the window.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pipeline.simulation.plan import HOUR_NS, MINUTE_NS, ConversationPlan, Kind, SessionPlan
from pipeline.simulation.profiles import FAMILIES, LONGEST_HORIZON_NS, Family
from pipeline.simulation.sessions import CLAIMS, SessionOrder, draw_session

KINDS = {
    Kind.SINGLE: 0.72,
    Kind.UNATTRIBUTED: 0.07,
    Kind.RETURNS_SAME_ISSUE: 0.05,
    Kind.RETURNS_WITHOUT_ISSUE: 0.03,
    Kind.RETURNS_OTHER_ISSUE: 0.03,
    Kind.RETURNS_TOO_LATE: 0.03,
    Kind.RETURNS_TO_SAME_ORDER: 0.025,
    Kind.TURNS_TO_OTHER_TASK: 0.04,
    Kind.THERE_AND_BACK: 0.02,
}
RETURNS = (Kind.RETURNS_SAME_ISSUE, Kind.RETURNS_WITHOUT_ISSUE, Kind.RETURNS_TO_SAME_ORDER)
# Sessions end at least this long before now: every horizon is over then, with two hours to spare.
MATURE_NS = LONGEST_HORIZON_NS + 2 * HOUR_NS
OLDEST_NS = round(6.9 * 24 * HOUR_NS)


def draw_conversation(rng: Random, number: int, now_ns: int) -> ConversationPlan:
    """The `number`-th conversation of the world, without outcomes."""
    family = rng.choices(list(FAMILIES.values()), [family.share for family in FAMILIES.values()])[0]
    weights = [weight * (family.returns if kind in RETURNS else 1.0) for kind, weight in KINDS.items()]
    kind = rng.choices(list(KINDS), weights)[0]
    name = f"conv-{number:05d}-{rng.getrandbits(32):08x}"
    sessions: list[SessionPlan] = []
    for index, draft in enumerate(_drafts(rng, kind, family, number)):
        pause_ns = _pause(rng, kind, index, sessions) if sessions else 0
        start_ns = sessions[-1].end_ns + pause_ns if sessions else 0
        sessions.append(draw_session(rng, draft, start_ns))
    first_end_ns, last_end_ns = sessions[0].end_ns, sessions[-1].end_ns
    earliest_ns = now_ns - OLDEST_NS - first_end_ns + 10 * MINUTE_NS
    latest_ns = now_ns - MATURE_NS - last_end_ns - 10 * MINUTE_NS
    base_ns = rng.randint(earliest_ns, latest_ns)
    base_ns -= base_ns % 1_000_000
    placed = tuple(
        replace(session, start_ns=session.start_ns + base_ns, end_ns=session.end_ns + base_ns) for session in sessions
    )
    return ConversationPlan(name, kind, base_ns, placed)


def _drafts(rng: Random, kind: Kind, family: Family, number: int) -> list[SessionOrder]:
    other = rng.choice([candidate for candidate in FAMILIES.values() if candidate is not family])
    families = {Kind.TURNS_TO_OTHER_TASK: [family, other], Kind.THERE_AND_BACK: [family, other, family]}.get(
        kind, [family] if kind in (Kind.SINGLE, Kind.UNATTRIBUTED) else [family, family]
    )
    issues: list[str | None] = [rng.choice(each.issues) if rng.random() < 0.6 else None for each in families]
    if kind in (Kind.RETURNS_SAME_ISSUE, Kind.RETURNS_OTHER_ISSUE, Kind.THERE_AND_BACK):
        first, second = rng.sample(family.issues, 2)
        issues[0], issues[-1] = first, second if kind is Kind.RETURNS_OTHER_ISSUE else first
    if kind is Kind.RETURNS_WITHOUT_ISSUE:
        issues[rng.randrange(2)] = None
    keys = [f"{each.key_prefix}-{number:05d}-{index}" for index, each in enumerate(families)]
    if kind is Kind.RETURNS_TO_SAME_ORDER:
        keys, issues = [keys[0]] * 2, [issues[0]] * 2
    return [
        SessionOrder(
            family=each, key=keys[index], issue=issues[index], subject=f"customer-{number:05d}",
            attributed=kind is not Kind.UNATTRIBUTED, companion=len(families) > 1, followed=index + 1 < len(families),
        )
        for index, each in enumerate(families)
    ]  # fmt: skip


def _pause(rng: Random, kind: Kind, index: int, before: list[SessionPlan]) -> int:
    """How long the customer stays away before the `index`-th session."""
    last = before[-1]
    window_ns = FAMILIES[last.family].reopen_window_ns
    if kind is Kind.RETURNS_TOO_LATE:
        return window_ns + _hours(rng, 3, 7)
    if index == 1 and kind in (Kind.TURNS_TO_OTHER_TASK, Kind.THERE_AND_BACK):
        return round(rng.uniform(4, 50) * MINUTE_NS)
    if kind is not Kind.THERE_AND_BACK and last.ending in CLAIMS and rng.random() < 0.3:
        # After an explicit claim activity that is more than thanks starts anew, however soon.
        return round(rng.uniform(15, 80) * MINUTE_NS)
    return _hours(rng, 3.5, 0.55 * window_ns / HOUR_NS)


def _hours(rng: Random, least: float, most: float) -> int:
    return round(rng.uniform(least, most) * HOUR_NS)
