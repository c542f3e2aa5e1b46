"""Every kind of scene, and where in the world's days it finds room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeline.simulation.hard import corrections, edges, families_of, keys, moves, oddities, recuts, returns, waiting
from pipeline.simulation.hard.scene import Scene

Play = Callable[[Scene], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of scene.

    Args:
        hours: no session of it ends later than so long after its beginning.
        oldest_h: it begins at most so many hours before now.
        days_ago: it is older than all that is compared by rates; its verdicts are compared all the same.
        every: it is played in each so-manieth round.
    """

    play: Play
    hours: float = 12.0
    oldest_h: float = 165.0
    days_ago: float | None = None
    every: int = 1


KINDS: Mapping[str, Kind] = {
    # what comes late cuts anew
    "recut_late_claim": Kind(recuts.late_claim),
    "recut_bridged": Kind(recuts.bridged),
    "recut_earlier_start": Kind(recuts.earlier_start),
    "recut_late_family": Kind(recuts.late_family),
    "recut_late_second_claim": Kind(recuts.late_second_claim),
    "recut_late_claim_by_tool": Kind(recuts.late_claim_by_tool),
    # traces that move
    "move_late_id": Kind(moves.late_id),
    "move_late_id_before_all": Kind(moves.late_id_before_all),
    "move_late_link": Kind(moves.late_link),
    "move_late_target": Kind(moves.late_target),
    "move_chain": Kind(moves.chain),
    "move_shared_response": Kind(moves.shared_response),
    "move_shared_by_nobody": Kind(moves.shared_by_nobody),
    "move_two_links": Kind(moves.two_links),
    "move_never_named": Kind(moves.never_named),
    "move_circle": Kind(moves.circle),
    "move_other_ids": Kind(moves.other_ids),
    "move_spelled_ids": Kind(moves.spelled_ids),
    "move_no_work": Kind(moves.no_work),
    # reports and their versions
    "correct_address": Kind(corrections.other_address),
    "correct_sort_of_address": Kind(corrections.other_sort_of_address),
    "correct_versions": Kind(corrections.versions),
    "correct_kind": Kind(corrections.other_kind),
    "retract_all": Kind(corrections.retracted),
    "retract_at_once": Kind(corrections.retracted_at_once),
    "retract_proof": Kind(corrections.retracted_proof),
    "revive": Kind(corrections.revived),
    "refute_escalation": Kind(corrections.refuted_escalation),
    "invalidate": Kind(corrections.invalidated),
    "refuse": Kind(corrections.refused),
    "evaluate": Kind(corrections.evaluated),
    "evaluate_itself": Kind(corrections.evaluated_by_itself),
    "evaluate_in_part": Kind(corrections.evaluated_in_part),
    "reopen_unclaimed": Kind(corrections.reopened_unclaimed),
    "past_horizon": Kind(corrections.past_horizon),
    # business keys
    "key_shared": Kind(keys.shared, hours=20),
    "key_shared_here": Kind(keys.shared_here),
    "key_known_before": Kind(keys.known_before),
    "key_before_all": Kind(keys.before_all),
    "key_late_holder": Kind(keys.late_holder),
    "key_several": Kind(keys.several_keys),
    "key_too_broad": Kind(keys.too_broad, every=4),
    "key_of_two_tenants": Kind(keys.of_two_tenants),
    # who comes back
    "elsewhere_by_issue": Kind(returns.elsewhere_by_issue, hours=48),
    "elsewhere_by_key": Kind(returns.elsewhere_by_key, hours=48),
    "elsewhere_assumed": Kind(returns.elsewhere_assumed, hours=48),
    "elsewhere_refused": Kind(returns.elsewhere_refused),
    "elsewhere_of_two": Kind(returns.elsewhere_of_two),
    "elsewhere_and_here": Kind(returns.elsewhere_and_here),
    "elsewhere_one_of_two": Kind(returns.elsewhere_one_of_two),
    "elsewhere_moved": Kind(returns.elsewhere_moved),
    "elsewhere_other_issue": Kind(returns.elsewhere_other_issue),
    "elsewhere_other_customer": Kind(returns.elsewhere_other_customer, hours=14),
    "elsewhere_too_soon": Kind(returns.elsewhere_too_soon),
    "elsewhere_too_late": Kind(returns.elsewhere_too_late, hours=56),
    "elsewhere_nothing_common": Kind(returns.elsewhere_nothing_common),
    "elsewhere_other_task": Kind(returns.elsewhere_other_task),
    "elsewhere_unattributed": Kind(returns.elsewhere_unattributed),
    "elsewhere_never_claimed": Kind(returns.elsewhere_never_claimed),
    "follow_up": Kind(returns.follow_up, hours=58),
    "reopen_twice": Kind(returns.reopened_twice, hours=14),
    "reopen_behind": Kind(returns.reopened_behind, hours=14),
    # which task it was
    "family_inherited": Kind(families_of.inherited),
    "family_taken_over": Kind(families_of.taken_over),
    "family_derived": Kind(families_of.derived),
    "family_nobodys": Kind(families_of.nobodys),
    "family_unknown": Kind(families_of.unknown),
    "family_ambiguous": Kind(families_of.ambiguous),
    "family_made_plain": Kind(families_of.made_plain),
    "family_no_turn": Kind(families_of.no_turn_by_derivation),
    # runs that wait, calls tried again
    "wait_resumed": Kind(waiting.resumed, hours=25),
    "wait_resumed_too_late": Kind(waiting.resumed_too_late, hours=42),
    "wait_abandoned": Kind(waiting.abandoned),
    "wait_never_approved": Kind(waiting.never_approved),
    "wait_approved": Kind(waiting.approved, hours=18),
    "handed_over": Kind(waiting.handed_over),
    "handed_over_in_vain": Kind(waiting.handed_over_in_vain),
    "tool_retries": Kind(waiting.retries),
    # copies, clocks, limits
    "unequal_copies": Kind(oddities.unequal_copies),
    "unequal_tools": Kind(oddities.unequal_tools),
    "unequal_keys": Kind(oddities.unequal_keys),
    "clock_ahead": Kind(oddities.clock_ahead, oldest_h=120),
    "clock_back": Kind(oddities.clock_back),
    "outcome_ahead": Kind(oddities.outcome_ahead),
    "days_long": Kind(oddities.days_long, hours=44, every=2),
    "known_early": Kind(oddities.known_early, hours=13),
    "within_the_skew": Kind(oddities.within_the_skew),
    "never_anyones": Kind(oddities.never_anyones),
    # at the very edge
    "edge_quiet": Kind(edges.quiet),
    "edge_grace": Kind(edges.grace),
    "edge_wait": Kind(edges.wait, hours=26),
    "edge_reopen": Kind(edges.reopen, hours=50),
    "edge_elsewhere": Kind(edges.elsewhere, hours=50),
    "edge_deadline": Kind(edges.deadline),
    "edge_horizon": Kind(edges.horizon),
    "edge_skew": Kind(edges.skew),
    "edge_broad": Kind(edges.broad, every=4),
    # too late for anything
    "settled": Kind(oddities.settled, days_ago=20),
    "sealed": Kind(oddities.sealed, days_ago=45),
}
