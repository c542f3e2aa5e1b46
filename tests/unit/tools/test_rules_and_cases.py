"""Every rule of RULES.md has at least two tests by its number, every case of CASES.md one."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DESIGN = ROOT / "docs" / "design"
TESTS = ROOT / "tests"
NOT_OF_THE_PIPELINE = TESTS / "unit" / "oracle"
"""Tests of the oracle hold the oracle to the rules."""
WANTED = 2
NAMED = re.compile(r"test_(rule_\d\d[a-z]?|case_[A-Z]\d\d)_")


def rules() -> list[str]:
    """As tests name them: `rule_07`."""
    found = re.findall(r"^(\d+)([a-z]?)\. ", (DESIGN / "RULES.md").read_text("utf-8"), re.MULTILINE)
    return [f"rule_{int(number):02d}{letter}" for number, letter in found]


def cases() -> list[str]:
    return [
        f"case_{name}"
        for name in re.findall(r"^- \*\*([A-Z]\d\d)\*\*", (DESIGN / "CASES.md").read_text("utf-8"), re.MULTILINE)
    ]


@cache
def numbered() -> Counter[str]:
    """How many tests each has; a parametrised one counts for as many as its list is long."""
    found: Counter[str] = Counter()
    for file in TESTS.rglob("test_*.py"):
        if NOT_OF_THE_PIPELINE in file.parents:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and (named := NAMED.match(node.name)):
                found[named[1]] += times(node)
    return found


def times(test: ast.FunctionDef) -> int:
    """How often a test runs, as far as its decorators say."""
    many = 1
    for decorator in test.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize"):
            values = decorator.args[1]
            many *= len(values.elts) if isinstance(values, ast.List | ast.Tuple) else WANTED
    return many


def test_the_lists_are_read_whole() -> None:
    assert rules()[:3] == ["rule_01", "rule_02", "rule_03"]
    assert rules()[-1] == "rule_49"
    assert {name[5] for name in cases()} == set("ADEFGH")


def test_every_rule_has_two_tests_by_its_number() -> None:
    assert [name for name in rules() if numbered()[name] < WANTED] == []


def test_every_case_has_a_test_by_its_number() -> None:
    assert [name for name in cases() if not numbered()[name]] == []


def test_no_test_names_a_rule_or_a_case_that_there_is_not() -> None:
    assert sorted(numbered().keys() - {*rules(), *cases()}) == []
