"""Every query of the dashboards, built from the few ways in which our series may be reduced.

A gauge of a rate comes from the worker that owns its segment; during a hand-over two may expose it. So each expression
takes one value over the workers and never sums them, with the widest interval, as the recording rules do.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.cog import builder, variants
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

PROMETHEUS = common.DataSourceRef(type_val="prometheus", uid="trueup-prometheus")
CLICKHOUSE = common.DataSourceRef(type_val="grafana-clickhouse-datasource", uid="trueup-clickhouse")
CLICKHOUSE_PLUGIN = "4.20.0"  # the plugin whose query format this is

# `All` families is the value ^$, which matches series without a family: the cube of the whole system.
WHOLE_SYSTEM = "^$"
CHOSEN = 'rate="$rate",window="$window",family=~"$family"'
CHOSEN_ALL_RATES = 'window="$window",family=~"$family"'
ALL_FAMILIES = 'rate="$rate",window="$window",cube="family"'
BETTER_LOW = 'rate=~"reopen|escalation"'
BETTER_HIGH = 'rate!~"reopen|escalation"'
ALERTS = ("TrueupRateBeyondTarget", "TrueupNoData", "TrueupWatermarkStuck")

_REDUCED = {
    "ratio": "max",
    "lower_ratio": "min",
    "upper_ratio": "max",
    "target_ratio": "max",
    "maturity_ratio": "min",
    "effective_n": "min",
    "numerator_sessions": "max",
    "denominator_sessions": "max",
}


def rate(what: str, selector: str) -> str:
    """One value for each segment, whoever exposes it."""
    return f"{_REDUCED[what]} by (rate, window, cube, family) (trueup_rate_{what}{{{selector}}})"


def beyond_target(selector: str) -> str:
    """Above 0 where the whole interval is on the wrong side of the target, by how much."""
    high, low = f"{selector},{BETTER_HIGH}", f"{selector},{BETTER_LOW}"
    return (
        f"({rate('target_ratio', high)} - {rate('upper_ratio', high)})"
        f" or ({rate('lower_ratio', low)} - {rate('target_ratio', low)})"
    )


def inside_target(selector: str) -> str:
    """At or above 0 where the whole interval is on the right side of the target."""
    high, low = f"{selector},{BETTER_HIGH}", f"{selector},{BETTER_LOW}"
    return (
        f"({rate('lower_ratio', high)} - {rate('target_ratio', high)})"
        f" or ({rate('target_ratio', low)} - {rate('upper_ratio', low)})"
    )


def claimed_but_not_verified(selector: str) -> str:
    return (
        f'max by (window, cube, family) (trueup_rate_ratio{{rate="claimed_completion",{selector}}})'
        f' - max by (window, cube, family) (trueup_rate_ratio{{rate="verified_completion",{selector}}})'
    )


FIRING = 'ALERTS{alertname=~"Trueup.*",alertstate="firing"}'


def alerts(operator: str) -> str:
    """By alert; 0 for one that does not fire, so that each has a place also before it ever fired."""
    quiet = " or ".join(f'label_replace(vector(0), "alertname", "{name}", "", "")' for name in ALERTS)
    return f"{operator} by (alertname) ({FIRING}) or {quiet}"


# Restated truth: what the buckets of the last days say now, with every late outcome counted in.
RESTATED = """SELECT $__timeInterval(bucket) AS time, sum(denominator) AS sessions, sum(numerator) AS counted
FROM trueup.v_rates
WHERE $__timeFilter(bucket) AND rate = '$rate'
  AND cube = if('$family' = '^$', 'system', 'family') AND ('$family' = '^$' OR dimensions['family'] = '$family')
GROUP BY time ORDER BY time"""


def over_time(expr: str, legend: str, ref: str = "A") -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(ref).datasource(PROMETHEUS).range()


def now(expr: str, legend: str, ref: str = "A") -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(ref).datasource(PROMETHEUS).instant()


def rows(expr: str, ref: str) -> prometheus.Dataquery:
    return now(expr, "", ref).format(PromQueryFormat.TABLE)


class ClickHouseQuery(variants.Dataquery):
    """A query of grafana-clickhouse-datasource, which the SDK does not know."""

    def __init__(self, sql: str, ref: str) -> None:
        self.sql = sql
        self.ref_id = ref

    def to_json(self) -> dict[str, object]:
        return {
            "refId": self.ref_id,
            "datasource": CLICKHOUSE.to_json(),
            "editorType": "sql",
            "queryType": "timeseries",
            "format": 0,
            "pluginVersion": CLICKHOUSE_PLUGIN,
            "rawSql": self.sql,
        }


class ClickHouse(builder.Builder[variants.Dataquery]):
    def __init__(self, sql: str, ref: str = "A") -> None:
        self._query = ClickHouseQuery(sql, ref)

    def build(self) -> variants.Dataquery:
        return self._query
