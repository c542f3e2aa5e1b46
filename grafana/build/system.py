"""`trueup-system`: what someone woken at 3 a.m. needs, in the order in which they need it.

Are the numbers to be trusted; what do they say; which family is it; do agents claim what is not so; what flows through.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders import common as shared
from grafana_foundation_sdk.builders import dashboard, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import stat as numbers
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue as Option

from grafana.build import queries
from grafana.build.flow import flow
from grafana.build.parts import (
    BAD,
    GOOD,
    NO_SESSIONS,
    WARNING,
    band,
    fixed,
    heading,
    lines,
    number,
    place,
    rate_table,
    shares,
    steps,
)
from grafana.build.queries import CHOSEN, CHOSEN_ALL_RATES, CLICKHOUSE, PROMETHEUS, now, over_time, rate

UID = "trueup-system"
RATES = (
    "completion,claimed_completion,verified_completion,resolution,confirmed_resolution,"
    "reopen,escalation,containment,tool_success,attribution"
)
WINDOWS = "1h,6h,24h,7d"
COHORT = "Counts the sessions that ended in the chosen window before the watermark"
AnyPanel = numbers.Panel | table.Panel | timeseries.Panel | statetimeline.Panel


def system() -> dashboard.Dashboard:
    page = (
        dashboard.Dashboard("trueup / System")
        .uid(UID)
        .description("Do agents finish what customers came for, and can these numbers be trusted right now?")
        .tags(["trueup", "tier-1"])
        .time("now-24h", "now")
        .refresh("1m")
        .timezone("utc")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(chosen("window", "Window", WINDOWS, "24h"))
        .with_variable(chosen("rate", "Rate", RATES, "completion"))
        .with_variable(family())
    )
    number_of_panel = 0
    for title, y, panels in sections():
        page = page.with_row(heading(title, y))
        for panel in panels:
            number_of_panel += 1
            page = page.with_panel(panel.id(number_of_panel))
    return page


def sections() -> list[tuple[str, int, list[AnyPanel]]]:
    return [
        ("Can the numbers be trusted?", 0, trust(1)),
        ("What the numbers say: window $window, family ${family:text}", 5, measured(6)),
        ("Which family is it? $rate, window $window", 23, families(24)),
        ("Claims, and what late outcomes made of it", 33, claims(34)),
        ("What flows through, and which alerts were on", 43, [*flow(44)]),
    ]


def chosen(name: str, label: str, values: str, first: str) -> dashboard.CustomVariable:
    current = model.VariableOption(text=first, value=first, selected=True)
    return dashboard.CustomVariable(name).label(label).values(values).current(current)


def family() -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable("family")
        .label("Family (All: the whole system)")
        .datasource(PROMETHEUS)
        .query('label_values(trueup_rate_ratio{cube="family"}, family)')
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .include_all(True)
        .all_value(queries.WHOLE_SYSTEM)
        .current(model.VariableOption(text="All", value="$__all", selected=True))
    )


def trust(y: int) -> list[AnyPanel]:
    firing = number(
        "Alerts firing",
        "How many of each alert fire now. The runbook of an alert has its name, in grafana/runbooks; the last panel "
        "says since when they fire.",
        "none",
        place(0, y, 9, 4),
    )
    behind = number(
        "Event time behind",
        "How far the slowest partition's watermark is behind the clock. Sessions newer than that are not counted yet. "
        "It is rightly large while history is read again; standing still is what raises the alert.",
        "s",
        place(9, y, 3, 4),
    )
    owned = number(
        "Partitions read",
        "Share of the pipeline's partitions that a worker reads. Below 100 % the counts are too low, and the rates "
        "come from a part of the traffic. A hand-over dips for seconds.",
        "percentunit",
        place(12, y, 3, 4),
    )
    dead = number(
        "Dead letters",
        "Of the time range shown. Records that could not be used, each kept with its reason. They are in no rate.",
        "none",
        place(15, y, 3, 4),
    )
    waiting = number(
        "Rows waiting",
        "Rows that wait for ClickHouse. While ClickHouse is down they wait in Kafka: the numbers here go on, "
        "the restated ones below stand still.",
        "short",
        place(18, y, 3, 4),
    )
    delay = number(
        "Outcome delay",
        "How long it takes from the arrival of an outcome until the verdict counts it, for 19 in 20 outcomes of this "
        "range. The gauges follow at the next scrape.",
        "s",
        place(21, y, 3, 4),
    )
    covered = (
        "sum(count by (stage) (max by (stage, partition) (trueup_partition_owned) == 1))"
        " / sum(max by (stage) (trueup_partitions))"
    )
    lag = "max(time() - max by (stage, partition) (trueup_watermark_timestamp_seconds))"
    slow = "histogram_quantile(0.95, sum by (le) (increase(trueup_outcome_to_gauge_seconds_bucket[$__range])))"
    return [
        firing.thresholds(steps((None, GOOD), (1, BAD)))
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .text(shared.VizTextDisplayOptions().title_size(12).value_size(34))
        .with_target(now(queries.alerts("count"), "{{alertname}}")),
        behind.no_value("no worker")
        .decimals(0)
        .thresholds(steps((None, GOOD), (600, WARNING), (3600, BAD)))
        .with_target(now(lag, "behind")),
        owned.no_value("no worker")
        .decimals(0)
        .thresholds(steps((None, BAD), (1, GOOD)))
        .with_target(now(covered, "owned")),
        dead.decimals(0)
        .thresholds(steps((None, GOOD), (1, WARNING)))
        .with_target(
            now('sum(increase(trueup_records_total{result="dead_lettered"}[$__range])) or vector(0)', "dead letters")
        ),
        waiting.no_value("no worker")
        .thresholds(steps((None, GOOD), (10_000, WARNING), (1_000_000, BAD)))
        .with_target(now("sum(trueup_sink_pending_rows)", "waiting")),
        delay.no_value("no outcome")
        .decimals(1)
        .thresholds(steps((None, GOOD), (30, WARNING), (300, BAD)))
        .with_target(now(slow, "95 % within")),
    ]


def measured(y: int) -> list[AnyPanel]:
    """Red, green and blue come from the interval against the target, so a low number of few sessions is not red."""
    value, beyond, inside = (
        rate("ratio", CHOSEN_ALL_RATES),
        queries.beyond_target(CHOSEN_ALL_RATES),
        queries.inside_target(CHOSEN_ALL_RATES),
    )
    same = "on (rate, window, cube, family)"
    overview = (
        number(
            "Red: surely worse than agreed. Green: surely as agreed. Blue: cannot tell yet, or no target",
            f"{COHORT}. Colour is by the whole 95 % interval against the contract's target: red, all of it is on the "
            "wrong side; green, all of it is on the right side; blue, it contains the target, or there is none. "
            "Reopen and escalation are better low, all others high. Exact bounds are in the table.",
            "percentunit",
            place(0, y, 24, 5),
        )
        .no_value(NO_SESSIONS)
        .decimals(1)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .text(shared.VizTextDisplayOptions().title_size(12).value_size(34))
        .with_target(now(f"({value}) and {same} (({beyond}) > 0)", "{{rate}}", "beyond"))
        .with_target(
            now(f"({value}) unless {same} (({beyond}) > 0) unless {same} (({inside}) >= 0)", "{{rate}}", "unsure")
        )
        .with_target(now(f"({value}) and {same} (({inside}) >= 0)", "{{rate}}", "inside"))
        .override_by_query("beyond", [fixed("dark-red")])
        .override_by_query("unsure", [fixed("dark-blue")])
        .override_by_query("inside", [fixed("dark-green")])
    )
    details = rate_table(
        "Every rate with its 95 % interval",
        f"{COHORT}. low and high: the 95 % interval. n: the sessions that this certainty is worth (delayed rates "
        "count for less than they have). maturity: the share of the evidence that is in; below 50 % the rate is "
        "provisional. beyond target: by how much even the kindest end of the interval misses the target, or no.",
        CHOSEN_ALL_RATES,
        "rate",
        place(0, y + 5, 12, 12),
    )
    history = (
        lines(
            "$rate with its 95 % interval, as known at the time (family: ${family:text})",
            f"{COHORT}, as it was known at each moment; late outcomes do not change the past here (they do in the "
            "ClickHouse panel below). The band is the 95 % interval, the dashed line the target. "
            "The axis shows only the part that is needed.",
            "percentunit",
            place(12, y + 5, 12, 12),
        )
        .no_value(NO_SESSIONS)
        .with_target(over_time(rate("ratio", CHOSEN), "{{rate}}", "rate"))
        .with_target(over_time(rate("lower_ratio", CHOSEN), "low", "low"))
        .with_target(over_time(rate("upper_ratio", CHOSEN), "high", "high"))
        .with_target(over_time(rate("target_ratio", CHOSEN), "target", "target"))
        .override_by_query("rate", [fixed("blue")])
        .override_by_name(
            "target",
            [
                fixed("yellow"),
                Option("custom.lineWidth", 1),
                Option("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}),
            ],
        )
    )
    return [overview, details, band(history, "high", "low", "blue")]


def families(y: int) -> list[AnyPanel]:
    one_rate = rate_table(
        "$rate in every task family",
        f"{COHORT}, by task family, each against its own contract's target. A wide interval means few sessions. One "
        "family beyond target points to its agent; all of them, to what they share.",
        queries.ALL_FAMILIES,
        "family",
        place(0, y, 12, 9),
    )
    together = (
        lines(
            "$rate by task family, as known at the time",
            f"{COHORT}, one line for each family. Lines that fall together have a common cause.",
            "percentunit",
            place(12, y, 12, 9),
        )
        .min(0)
        .no_value(NO_SESSIONS)
        .with_target(over_time(rate("ratio", queries.ALL_FAMILIES), "{{family}}"))
    )
    return [one_rate, together]


def claims(y: int) -> list[AnyPanel]:
    gap = (
        shares(
            "Claimed and verified completion (family: ${family:text})",
            f"{COHORT}. claimed: the agent says it finished. verified: an independent system confirmed it; only of "
            "families whose contract has such a criterion. What lies between is claimed and not confirmed.",
            place(0, y, 12, 9),
        )
        .with_target(over_time(rate("ratio", f'rate="claimed_completion",{CHOSEN_ALL_RATES}'), "claimed", "claimed"))
        .with_target(over_time(rate("ratio", f'rate="verified_completion",{CHOSEN_ALL_RATES}'), "verified", "verified"))
        .with_target(over_time(queries.claimed_but_not_verified(CHOSEN_ALL_RATES), "gap", "gap"))
        .override_by_name(
            "claimed", [fixed("orange"), Option("custom.fillBelowTo", "verified"), Option("custom.fillOpacity", 15)]
        )
        .override_by_name("verified", [fixed("green")])
        .override_by_name("gap", [fixed("red"), Option("custom.lineStyle", {"fill": "dash", "dash": [8, 6]})])
    )
    restated = (
        lines(
            "$rate by the hour in which sessions ended: the restated truth (family: ${family:text})",
            "From ClickHouse, of the last 7 days. sessions: all that the rate is of; counted: those of them it "
            "counts, with every outcome that has arrived since. The newest hours are immature and may still change.",
            "short",
            place(12, y, 12, 9),
        )
        .datasource(CLICKHOUSE)
        .no_value(NO_SESSIONS)
        .time_from("7d")
        .interval("1h")
        .draw_style(common.GraphDrawStyle.BARS)
        .line_width(0)
        .min(0)
        .with_target(queries.ClickHouse(queries.RESTATED))
        .override_by_name("sessions", [fixed("semi-dark-blue"), Option("custom.fillOpacity", 30)])
        .override_by_name("counted", [fixed("green"), Option("custom.fillOpacity", 80)])
    )
    return [gap, restated]
