"""The last section of `trueup-system`: what flows through, what waits, and which alerts were on."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, statetimeline, timeseries
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as model

from grafana.build import queries
from grafana.build.parts import BAD, GOOD, lines, place, steps
from grafana.build.queries import PROMETHEUS, over_time

PER_SECOND = "suffix: /s"


def flow(y: int) -> list[timeseries.Panel | statetimeline.Panel]:
    used = lines(
        "Records used, by stage",
        "Records a second, by the clock and not by event time. All lines at zero: nothing arrives. One stage at zero "
        "while those before it are not: it stands still. What is not used is beside.",
        PER_SECOND,
        place(0, y, 8, 8),
    ).with_target(
        over_time('sum by (stage) (rate(trueup_records_total{result="used"}[$__rate_interval]))', "{{stage}}")
    )
    reasons = (
        lines(
            "Dropped and dead-lettered, by reason",
            "Records a second that are in no rate, and why. duplicates are normal; anything new here is worth a look.",
            PER_SECOND,
            place(8, y, 8, 8),
        )
        .no_value("nothing dropped")
        .with_target(
            over_time(
                "sum by (result, reason) "
                '(rate(trueup_records_total{result=~"dropped|dead_lettered"}[$__rate_interval]))',
                "{{result}}: {{reason}}",
            )
        )
    )
    lag = lines(
        "Event time behind the clock, by stage",
        "Of each stage's slowest partition. A line that rises by one second a second stands still: the first stage "
        "that does is the cause. Falling lines are history being read.",
        "s",
        place(16, y, 8, 8),
    ).with_target(
        over_time(
            "max by (stage) (time() - max by (stage, partition) (trueup_watermark_timestamp_seconds))", "{{stage}}"
        )
    )
    held = (
        lines(
            "Waiting inside the pipeline",
            "Sessions not over yet, traces whose conversation is not known yet, and outcomes whose session has not "
            "been seen. They are in no rate until they are decided.",
            "short",
            place(0, y + 8, 8, 7),
        )
        .min(0)
        .with_target(over_time("sum(trueup_open_sessions)", "open sessions", "sessions"))
        .with_target(over_time("sum(trueup_unresolved_traces)", "traces without a conversation", "traces"))
        .with_target(over_time("sum(trueup_waiting_outcomes)", "outcomes without a session", "outcomes"))
    )
    healed = (
        lines(
            "Messages read past the engine",
            "Messages that the stream engine did not deliver, which the pipeline found missing and read itself. "
            "Counted, not lost; more than now and then points to rebalances that overlap.",
            PER_SECOND,
            place(8, y + 8, 8, 7),
        )
        .no_value("none")
        .min(0)
        .with_target(
            over_time(
                "sum by (stage, topic) (rate(trueup_caught_up_records_total[$__rate_interval]))", "{{stage}} {{topic}}"
            )
        )
    )
    alerts = (
        statetimeline.Panel()
        .title("Alert state")
        .description("Which alerts of trueup fired, and when. Each has a runbook of its name in grafana/runbooks.")
        .datasource(PROMETHEUS)
        .unit("none")
        .grid_pos(place(16, y + 8, 8, 7))
        .show_value(common.VisibilityMode.NEVER)
        .thresholds(steps((None, GOOD), (1, BAD)))
        .color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
        .mappings(
            [
                model.ValueMap(
                    options={
                        "0": model.ValueMappingResult(text="quiet", color=GOOD),
                        "1": model.ValueMappingResult(text="firing", color=BAD),
                    }
                )
            ]
        )
        .with_target(over_time(queries.alerts("max"), "{{alertname}}"))
    )
    return [used, reasons, lag, held, healed, alerts]
