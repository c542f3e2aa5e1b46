"""The rules that a dashboard keeps, each as a function that lists what breaks it.

Restated from Grafana's dashboard-linter for provisioned, read-only dashboards, with rules of our own about rates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import dashboard as model

from tests.monitoring import promql

Json = dict[str, Any]
DATASOURCES = {"trueup-prometheus", "trueup-clickhouse"}
COLUMNS = 24
FEWEST_WORDS = 10  # a description shorter than that explains nothing
GRAFANAS_OWN = re.compile(r"\$\{?__\w+(?:[.:\[][^}]*\})?")
VARIABLE = re.compile(r"\$\{?([a-z]\w*)")
NO_SUM = {"sum", "avg", "count"}


def panels(dashboard: Json) -> list[Json]:
    """Every panel but headings."""
    every = [*dashboard["panels"], *(inner for row in dashboard["panels"] for inner in row.get("panels", []))]
    return [panel for panel in every if panel["type"] != "row"]


def variables(dashboard: Json) -> dict[str, str]:
    """A value for each variable, as its first choice would be."""
    values = {}
    for variable in dashboard["templating"]["list"]:
        chosen = variable["current"]["value"]
        values[variable["name"]] = variable["allValue"] if chosen == "$__all" else chosen
    return values


def expressions(dashboard: Json) -> list[str]:
    """Every PromQL expression, with its variables replaced."""
    values = variables(dashboard)
    return [
        promql.expanded(target["expr"], values)
        for panel in panels(dashboard)
        for target in panel["targets"]
        if "expr" in target
    ]


def faults(dashboard: Json) -> list[str]:
    return [
        *_frame(dashboard),
        *_grid(dashboard),
        *(fault for p in panels(dashboard) for fault in _panel(dashboard, p)),
    ]


def lost_in_round_trip(dashboard: Json) -> list[str]:
    """Paths that Grafana's typed model does not know: a misspelt option is dropped."""
    register_default_plugins()
    typed = model.Dashboard.from_json(json.loads(json.dumps(dashboard)))
    return list(_differences(dashboard, json.loads(JSONEncoder().encode(typed)), ""))


def _frame(dashboard: Json) -> Iterator[str]:
    if dashboard.get("editable", True):
        yield "the dashboard is editable"
    if not 0 < len(dashboard.get("uid", "")) <= 40:
        yield "the uid is missing or longer than 40 characters"
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(ids) != len(set(ids)):
        yield "two panels have one id"
    text = GRAFANAS_OWN.sub("", json.dumps([dashboard["panels"], dashboard["templating"]]))
    for name in sorted(set(VARIABLE.findall(text)) - variables(dashboard).keys()):
        yield f"undefined variable ${name}"
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query" and variable["refresh"] != 2:
            yield f"variable {variable['name']} does not follow the time range"


def _grid(dashboard: Json) -> Iterator[str]:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        if at["x"] + at["w"] > COLUMNS:
            yield f"{panel['title']}: wider than the page"
        if cells & taken:
            yield f"{panel['title']}: overlaps another panel"
        taken |= cells


def _panel(dashboard: Json, panel: Json) -> Iterator[str]:
    name = f"panel {panel['id']} {panel.get('title')!r}"
    defaults = panel["fieldConfig"]["defaults"]
    if not panel.get("title"):
        yield f"{name}: no title"
    if len(panel.get("description", "").split()) < FEWEST_WORDS:
        yield f"{name}: no description that explains the number"
    if not defaults.get("unit"):
        yield f"{name}: no unit"
    rated = any("trueup_rate_" in target.get("expr", "") for target in panel.get("targets", []))
    if rated and (defaults.get("unit"), defaults.get("noValue")) != ("percentunit", "no eligible sessions"):
        yield f"{name}: a rate is a percentunit, and says when there are no eligible sessions"
    if rated and "Counts the sessions that ended" not in panel.get("description", ""):
        yield f"{name}: does not say which sessions it counts"
    if not panel.get("targets"):
        yield f"{name}: no query"
    for target in panel.get("targets", []):
        source = (target.get("datasource") or panel.get("datasource") or {}).get("uid")
        if source not in DATASOURCES:
            yield f"{name}: unknown data source {source}"
        if "expr" in target:
            yield from (f"{name}: {fault}" for fault in _expression(dashboard, target["expr"]))
    yield from (f"{name}: {fault}" for fault in _overrides(panel))


def _expression(dashboard: Json, expression: str) -> Iterator[str]:
    try:
        plain = promql.expanded(expression, variables(dashboard))
        found, reduced = promql.selectors(plain), list(promql.aggregations(plain))
    except (KeyError, ValueError) as fault:
        yield f"PromQL: {fault}"
        return
    for selector in found:
        counter = selector.name.endswith(("_total", "_bucket"))
        inside = re.search(rf"(rate|increase)\({selector.name}\b", plain) is not None
        if counter and not inside:
            yield f"counter {selector.name} without rate()"
    if set(promql.ranges(expression)) - {"$__rate_interval", "$__range"}:
        yield "a fixed range: use $__rate_interval, or $__range for one number"
    for operator, kept, under in reduced:
        rates = [selector for selector in under if selector.name.startswith("trueup_rate_")]
        for selector in rates:
            pinned = {label for label, kind, _ in selector.matchers if kind == "="}
            if operator in NO_SUM or not {"rate", "window"} <= pinned | set(kept):
                yield f"{operator} of {selector.name} mixes rates, windows or workers"


def _overrides(panel: Json) -> Iterator[str]:
    names = {target["legendFormat"] for target in panel["targets"] if target.get("legendFormat")}
    names |= set(re.findall(r"\bAS (\w+)", " ".join(target.get("rawSql", "") for target in panel["targets"])))
    for transformation in panel.get("transformations", []):
        names |= set(transformation["options"].get("renameByName", {}).values())
        names |= set(transformation["options"].get("indexByName", {}))
    refs = {target["refId"] for target in panel["targets"]}
    for override in panel["fieldConfig"].get("overrides", []):
        known = names if override["matcher"]["id"] == "byName" else refs
        if override["matcher"]["options"] not in known:
            yield f"override for the unknown {override['matcher']['options']!r}"


def _differences(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key in after:
                yield from _differences(value, after[key], f"{path}.{key}")
            elif value not in (None, [], {}):
                yield f"{path}.{key}: dropped"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, f"{path}[{index}]")
    elif before != after:
        yield f"{path}: {before!r} became {after!r}"
