"""What the panels share: how they look, and the columns of the tables of rates."""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders import common as shared
from grafana_foundation_sdk.builders import dashboard, stat, table, timeseries
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue as Option

from grafana.build import queries
from grafana.build.queries import PROMETHEUS

NO_SESSIONS = "no eligible sessions"
GOOD, WARNING, BAD, NEUTRAL = "green", "orange", "red", "text"
ENOUGH = 30  # effective sessions, as in the alert
NUMBER_WIDTH = 76  # pixels of a column, so that all of them are seen beside a graph
MATURE = 0.5  # below it most of the evidence is still to come


def place(x: int, y: int, w: int, h: int) -> model.GridPos:
    return model.GridPos(x=x, y=y, w=w, h=h)


def steps(*levels: tuple[float | None, str]) -> dashboard.ThresholdsConfig:
    """Colours from each value upwards; the first has no lower end."""
    thresholds = [model.Threshold(value=value, color=colour) for value, colour in levels]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(thresholds)


def colour_steps(*levels: tuple[float | None, str]) -> Option:
    return Option("thresholds", {"mode": "absolute", "steps": [{"value": v, "color": c} for v, c in levels]})


def fixed(colour: str) -> Option:
    return Option("color", {"mode": "fixed", "fixedColor": colour})


def heading(title: str, y: int) -> dashboard.Row:
    return dashboard.Row(title).grid_pos(place(0, y, 24, 1)).id(1000 + y)


def number(title: str, description: str, unit: str, at: model.GridPos) -> stat.Panel:
    """One or more big numbers; the newest value, and no graph."""
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .unit(unit)
        .grid_pos(at)
        .color_mode(common.BigValueColorMode.BACKGROUND)
        .graph_mode(common.BigValueGraphMode.NONE)
        .reduce_options(shared.ReduceDataOptions().calcs(["lastNotNull"]))
    )


def lines(title: str, description: str, unit: str, at: model.GridPos) -> timeseries.Panel:
    return (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .unit(unit)
        .grid_pos(at)
        .line_width(2)
        .fill_opacity(0)
        .show_points(common.VisibilityMode.NEVER)
        .span_nulls(False)
        .legend(
            shared.VizLegendOptions()
            .show_legend(True)
            .display_mode(common.LegendDisplayMode.LIST)
            .placement(common.LegendPlacement.BOTTOM)
        )
        .tooltip(shared.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
    )


def shares(title: str, description: str, at: model.GridPos) -> timeseries.Panel:
    """Lines of rates: 0 to 1, and words where there is nothing to rate."""
    return lines(title, description, "percentunit", at).min(0).max(1).no_value(NO_SESSIONS)


def band(panel: timeseries.Panel, upper: str, lower: str, colour: str) -> timeseries.Panel:
    """Fill from one series down to another; neither has a line or a place in the legend."""
    hidden = [
        Option("custom.lineWidth", 0),
        fixed(colour),
        Option("custom.hideFrom", {"legend": True, "tooltip": False, "viz": False}),
    ]
    filled = [*hidden, Option("custom.fillBelowTo", lower), Option("custom.fillOpacity", 30)]
    return panel.override_by_name(upper, filled).override_by_name(lower, hidden)


def rate_table(title: str, description: str, selector: str, subject: str, at: model.GridPos) -> table.Panel:
    """A row for each rate or family: what is measured, how sure that is, and what was agreed."""
    columns: Sequence[tuple[str, str]] = (
        ("rate", queries.rate("ratio", selector)),
        ("low", queries.rate("lower_ratio", selector)),
        ("high", queries.rate("upper_ratio", selector)),
        ("target", queries.rate("target_ratio", selector)),
        ("beyond target", queries.beyond_target(selector)),
        ("n", queries.rate("effective_n", selector)),
        ("maturity", queries.rate("maturity_ratio", selector)),
    )
    refs = "ABCDEFG"
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .unit("percentunit")
        .decimals(1)
        .no_value(NO_SESSIONS)
        .grid_pos(at)
        .align(common.FieldTextAlignment.RIGHT)
        .width(NUMBER_WIDTH)
    )
    for ref, (_, expr) in zip(refs, columns, strict=True):
        panel = panel.with_target(queries.rows(expr, ref))
    names = {f"Value #{ref}": name for ref, (name, _) in zip(refs, columns, strict=True)}
    subject_name = "which rate" if subject == "rate" else subject
    gone = {label: True for label in ("Time", "rate", "window", "cube", "family") if label != subject}
    order = {subject: 0} | {f"Value #{ref}": place for place, ref in enumerate(refs, start=1)}
    return (
        panel.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(
            model.DataTransformerConfig(
                id_val="organize",
                options={
                    "excludeByName": gone,
                    "indexByName": order,
                    "renameByName": {**names, subject: subject_name},
                },
            )
        )
        .override_by_name(subject_name, [Option("custom.align", "left"), Option("custom.width", 180)])
        .override_by_name("target", [Option("noValue", "none")])
        .override_by_name(
            "n",
            [
                Option("unit", "none"),
                Option("decimals", 0),
                Option("custom.cellOptions", {"type": "color-text"}),
                colour_steps((None, WARNING), (ENOUGH, NEUTRAL)),
            ],
        )
        .override_by_name(
            "maturity",
            [
                Option("decimals", 0),
                Option("custom.cellOptions", {"type": "color-text"}),
                colour_steps((None, WARNING), (MATURE, NEUTRAL)),
            ],
        )
        .override_by_name(
            "beyond target",
            [
                Option("custom.width", 120),
                Option("noValue", "no target"),
                Option("custom.cellOptions", {"type": "color-background", "mode": "basic"}),
                colour_steps((None, "transparent"), (1e-9, BAD)),
                Option(
                    "mappings",
                    [{"type": "range", "options": {"from": -1, "to": 0, "result": {"text": "no", "index": 0}}}],
                ),
            ],
        )
    )
