"""The preview's packages are pinned and name no address; its macros say what the data source's say."""

from __future__ import annotations

import json
import re

import pytest

from grafana.preview.bridge import expanded
from tests.monitoring.rules import ROOT

PREVIEW = ROOT / "grafana" / "preview"


def test_packages_are_pinned_and_the_lock_names_no_registry() -> None:
    packages = json.loads((PREVIEW / "package.json").read_text("utf-8"))
    lock = json.loads((PREVIEW / "package-lock.json").read_text("utf-8"))["packages"]
    wanted = packages["dependencies"] | packages["devDependencies"]

    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    assert {name: lock[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert not [name for name, package in lock.items() if "resolved" in package]
    assert all("integrity" in package for name, package in lock.items() if name)


@pytest.mark.parametrize(
    ("macro", "sql"),
    [
        ("$__timeFilter(bucket)", "bucket >= toDateTime(100) AND bucket <= toDateTime(200)"),
        ("$__timeInterval(bucket)", "toStartOfInterval(toDateTime(bucket), INTERVAL 60 second)"),
        ("$__nothing(bucket)", "$__nothing(bucket)"),
    ],
)
def test_a_macro_is_expanded_as_the_data_source_does(macro: str, sql: str) -> None:
    assert expanded(macro, 100, 200, 60) == sql
