"""The rules of a fleet and what they read, by part: parts of every fleet, and optional parts with small fleets."""

from collections.abc import Iterable, Mapping
from typing import Final

import featured_fleets
from lifefold.core.fleet.board import intake, service_slot
from lifefold.core.fleet.dispatch import (
    budgets,
    claims,
    dependencies,
    notifications,
    plan_approval,
    preemption,
    restarts,
    task_index,
    trust,
)
from lifefold.core.fleet.service import model, rules
from lifefold.core.fleet.system import board, worker
from lifefold.core.fleet.worker import (
    announcer,
    conversations,
    orphans,
    output,
    question,
    question_model,
    shutdown,
    stall_detector,
    steering,
    turns,
    usage,
)
from lifefold.core.fleet.worker import restarts as worker_restarts
from rule_mutation import Source

SOURCES: Final = (
    Source(
        task_index,
        intake,
        claims,
        dependencies,
        plan_approval,
        board,
        names=(
            "fold _fold_worker_slot _fold_task offer is_at_work _introduce _own _overlapping folders _offer _put"
            " _withdrawn _at_work _close _hinder _without is_lost are_open match next_pair hand_over brief_of recall"
            " KEPT release retry_granted block_waiting free_waiting look_again lose_role gather gathered divide"
            " cancel_parts _cancelled _CANCELLABLE _PARTS _WAITS is_unmet _was_lost _waiting_for _records"
            " _are_closed _lost decide decide_late stop_workers is_unwanted"
        ).split(),
    ),
    Source(
        shutdown,
        worker,
        names=(
            "go_on obey leave_to_others decline interrupt abandon _interrupt work_begins work_ends _GIVEN_UP report"
            " _given_back next_round deliver close_mailbox leave drained has_begun is_gone is_ending"
        ).split(),
    ),
)
"""The rules of every fleet."""

FEATURES: Final[Mapping[Source, Iterable[str]]] = {
    Source(
        *(task_index, budgets, claims, preemption, board),
        name="preemption",
        changed=(task_index, claims, preemption),
        names=(
            "preempt take_away use_request drop_request _used next_asked _waiting _passed_on is_ready _asked _may_take"
            " _within_ms _fold_preemption_request _go_to CLAIMED"
        ).split(),
    ): featured_fleets.PREEMPTING,
    Source(
        *(orphans, worker),
        name="orphans",
        changed=(orphans,),
        names=(
            "ending has_died begin_inspection _is_alive report_death report_rescue report_loss _ADOPTED _found"
        ).split(),
    ): featured_fleets.ORPHANS,
    Source(
        *(worker_restarts, shutdown, worker),
        name="restarts",
        changed=(worker_restarts,),
        names="comes_back on_agent_stopped dismiss ask restart_agent".split(),
    ): featured_fleets.RESTARTED,
    Source(
        *(restarts, board),
        name="permits",
        changed=(restarts,),
        names="permits_of grant spend give_back _held".split(),
    ): featured_fleets.RESTARTED,
    Source(
        *(stall_detector, worker),
        name="stall_detector",
        changed=(stall_detector,),
        names="WATCHED keep_watch give_up _is_to_be_watched".split(),
    ): featured_fleets.WATCHED,
    Source(
        *(question_model, steering, question, stall_detector, worker),
        name="questions",
        changed=(question, question_model),
        names="keep_open waits _may_be_asked".split(),
    ): (*featured_fleets.ASKING, *featured_fleets.STEERING),
    Source(
        *(notifications, board),
        name="notifications",
        changed=(notifications,),
        names=(
            "notifiers _announce announce_task announce_plan announce_limit announce_budget announce_stop"
            " announce_service _announce_end _is_over _is_news"
        ).split(),
    ): featured_fleets.TELLING,
    Source(
        *(announcer, worker),
        name="announcer",
        changed=(announcer,),
        names="note_question pass_on".split(),
    ): featured_fleets.ANNOUNCING,
    Source(
        *(output, turns, worker),
        name="turns",
        changed=(output, turns),
        names=(
            "keep_following stop_following reap_after_end RUNS OVER NONE"
            " begin_turn launch_turn run_turn follow_work verify_turn end_turn reap_turn"
            " is_left of_sessions _begin_of _end_of"
        ).split(),
    ): featured_fleets.TURNS,
    Source(
        *(task_index, budgets, claims, preemption, dependencies, board),
        name="budgets",
        changed=(task_index, budgets),
        names=(
            "of_task admits out_of_money share_of _concerned reserve settle _cost reopen go_without unblock_after_raise"
            " _blocked _fold_budget whole_of"
        ).split(),
    ): featured_fleets.LIMITED,
    Source(
        *(usage, shutdown, worker),
        name="usage",
        changed=(usage,),
        names="measuring measure _most_ms clear_meter spent is_counting is_used_up _exceeds_share".split(),
    ): featured_fleets.LIMITED,
    Source(
        *(conversations, worker),
        name="conversations",
        changed=(conversations,),
        names="take_up choose listen keep _kept replaces_lost_conversation _ended".split(),
    ): featured_fleets.TALKING,
    Source(
        *(steering, question, worker),
        name="steering",
        changed=(steering,),
        names=(
            "open_steering close_steering post_message reaches cancels leaves_urgent mark_taken mark_taken_at_the_end"
            " _taken taken_by"
        ).split(),
    ): featured_fleets.STEERING,
    Source(
        *(task_index, claims, dependencies, trust, board),
        name="trust",
        changed=(task_index, claims, trust),
        names=(
            "earn earned frees trust_again withdraw WITHDRAWABLE is_allowed _claim abilities any_agent_may"
            " is_distrusting _distrust"
        ).split(),
    ): featured_fleets.TRUSTED,
    Source(
        *(model, rules),
        name="service",
        names=(
            "is_idle is_down may_begin come_up watch cut_off serve rest drain leave has_failed fire wake end obey"
            " drained"
        ).split(),
    ): featured_fleets.SERVING,
    Source(
        *(service_slot, board),
        name="service_slot",
        changed=(service_slot, board),
        names="service_slots is_kept stop_workers close_down _drain_services".split(),
    ): featured_fleets.SERVING,
}
"""The rules of optional parts of a fleet, each with the small fleets that have the part."""
