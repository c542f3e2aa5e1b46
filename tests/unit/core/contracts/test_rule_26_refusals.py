"""What a contract may not say (RULES.md 23, 25, 26): each refusal names file, line, field and remedy."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pipeline.core.contracts.parse import ContractError, load, read_all
from pipeline.core.contracts.problems import Problem
from pipeline.core.timeline import TimeRules

HEAD = "family: order\nversion: 1\n"
TWICE = "expected_tool_calls:\n  - {calls: []}\n  - {calls: []}\n"
LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{one}: &{one} [{', '.join([f'*{before}'] * 10)}]\n" for before, one in pairwise("abcdef")
)
"""Ten lists of ten lists of ten lists, and so on."""
OK = 'criteria:\n  - {id: a, check: "state.a == 1"}\n'


def problems(*texts: str) -> list[Problem]:
    with pytest.raises(ContractError) as refused:
        load([(f"{index}.yaml", text) for index, text in enumerate(texts)], TimeRules())
    return refused.value.problems


def only(*texts: str) -> Problem:
    (problem,) = problems(*texts)
    assert problem.remedy, "every refusal says what to do"
    assert str(problem).startswith(f"{problem.file}:{problem.line}: {problem.field}: ")
    return problem


def criterion(**fields: str) -> str:
    """A contract whose one criterion has these fields, a line each; `check` is the third of its lines."""
    return HEAD + "criteria:\n  - id: a\n" + "".join(f"    {name}: {value}\n" for name, value in fields.items())


def test_rule_26_an_independent_criterion_may_read_evidence_alone() -> None:
    told = only(criterion(check='"evidence.x == 1 && state.y"', trust="independent", deadline="24h"))
    assert (told.file, told.line, told.field) == ("0.yaml", 5, "criteria.0.check")
    assert "may not read `state`" in told.text
    assert told.remedy == "it may read evidence"


@pytest.mark.parametrize("variable", ["state.y", "tools['y'].ok > 0", "resource['y'] == 1", "session.errors > 0"])
def test_rule_26_what_refutes_an_independent_criterion_is_evidence_too(variable: str) -> None:
    text = criterion(check='"evidence.x == 1"', fails_when=f'"{variable}"', trust="independent", deadline="24h")
    told = problems(text)[0]
    assert (told.line, told.field) == (6, "criteria.0.fails_when")
    assert "may not read" in told.text


@pytest.mark.parametrize("field", ["check", "fails_when"])
def test_rule_26_what_reads_evidence_needs_a_deadline(field: str) -> None:
    fields = {"check": '"state.a"', field: '"evidence.x == 1"'}
    told = only(criterion(**fields))
    assert (told.line, told.field) == (5, "criteria.0.check")
    assert "deadline" in told.text
    assert "deadline: 24h" in told.remedy
    assert not read_all([("0.yaml", criterion(**fields, deadline="0h"))], TimeRules())[1], "even one of no length"


def test_rule_26_applies_may_not_read_evidence() -> None:
    told = only(criterion(check='"state.a"', applies='"evidence.x == 1"'))
    assert (told.line, told.field) == (6, "criteria.0.applies")


@pytest.mark.parametrize(
    ("field", "expression"),
    [
        ("applies_when", "evidence.x == 1"),
        ("claimed_when", "evidence.x == 1"),
        ("refused_when", "evidence.x == 1"),
        ("refused_when", "state.x == 1"),
        ("invalid_when", "evidence.x == 1"),
        ("invalid_when", "state.x == 1"),
        ("applies_when", "session.claimed"),
        ("claimed_when", "session.turns > 1"),
        ("refused_when", "session.handoffs > 0"),
    ],
)
def test_rule_26_what_decides_who_is_judged_may_not_read_what_is_judged(field: str, expression: str) -> None:
    told = only(HEAD + f'{field}: "{expression}"\n' + OK)
    assert (told.line, told.field) == (3, field)


@pytest.mark.parametrize("field", ["applies_when", "claimed_when"])
def test_rule_26_families_and_claims_may_read_state(field: str) -> None:
    assert not read_all([("0.yaml", HEAD + f'{field}: "state.x == 1"\n' + OK)], TimeRules())[1]


def test_rule_26_two_versions_may_not_share_a_number() -> None:
    other = "family: order\nversion: 1\neffective_from: 2026-01-01T00:00:00Z\n" + OK
    told = only(HEAD + OK, other)
    assert (told.file, told.line, told.field) == ("1.yaml", 2, "version")
    assert "0.yaml" in told.text
    assert "number of its own" in told.remedy


def test_rule_26_the_same_version_twice_is_told_apart_from_another_content() -> None:
    told = only(HEAD + OK, "# the same\n" + HEAD + OK)
    assert (told.file, told.line) == ("1.yaml", 3)
    assert "same content" in told.text


@pytest.mark.parametrize("since", ["", "effective_from: 2026-01-01T00:00:00Z\n"], ids=["from the beginning", "later"])
def test_rule_26_two_versions_may_not_share_a_moment(since: str) -> None:
    told = only(HEAD + since + OK, "family: order\nversion: 2\n" + since + OK)
    assert (told.file, told.line) == ("1.yaml", 3 if since else 2)
    assert "same moment as order@1" in told.text


def test_rule_26_a_nanosecond_apart_is_apart() -> None:
    second = "family: order\nversion: 2\neffective_from: 1970-01-01T00:00:00.000001Z\n" + OK
    assert len(load([("0.yaml", HEAD + OK), ("1.yaml", second)], TimeRules())) == 2


def test_rule_26_of_several_files_each_that_is_well_can_be_used() -> None:
    broken = HEAD.replace("order", "search") + 'criteria:\n  - {id: a, check: "state.a ="}\n'
    found, wrong = read_all([("good.yaml", HEAD + OK), ("bad.yaml", broken)], TimeRules())
    assert [one.contract.name for one in found] == ["order@1"]
    assert [(one.file, one.line) for one in wrong] == [("bad.yaml", 4)]


@pytest.mark.parametrize(
    ("text", "line", "field", "said"),
    [
        ("family: order\nversion: 1\ncriteria: []\n", 3, "criteria", "at least 1"),
        ("family: order\n" + OK, 1, "version", "is missing"),
        (HEAD + "effective_form: 2026-01-01\n" + OK, 3, "effective_form", "no such field"),
        (HEAD + OK + "risk: low\nrisk: high\n", 6, "risk", "twice"),
        (HEAD + 'criteria:\n  - {id: a, check: "state.a", weight: 0}\n', 4, "criteria.0.weight", "greater than 0"),
        (HEAD + 'criteria:\n  - {id: a, check: "state.a", weight: .inf}\n', 4, "criteria.0.weight", "finite"),
        (HEAD + 'criteria:\n  - {id: a, check: "state.a", stage: shipping}\n', 4, "criteria.0.stage", "planning"),
        (HEAD + 'criteria:\n  - {id: a, check: "state.a", deadline: 24}\n', 4, "criteria.0.deadline", "no unit"),
        (HEAD + 'criteria:\n  - {id: a, check: "state.a", deadline: 36d}\n', 4, "criteria.0.deadline", "longer"),
        (HEAD + "criteria:\n  - {id: a, check: true}\n", 4, "criteria.0.check", "string"),
        (HEAD + OK + '  - {id: a, check: "state.b"}\n', 3, "criteria", "must differ"),
        (HEAD + OK + "reopen_window: 36d\n", 5, "reopen_window", "longer"),
        (HEAD + OK + "targets: {completon: 0.9}\n", 5, "targets.completon", "neither a rate nor a measure"),
        (HEAD + OK + "targets: {completion: 90}\n", 5, "targets.completion", "between 0 and 1"),
        (HEAD + OK + "targets: {coherence: 85}\n", 5, "targets.coherence", "0 to 10"),
        (HEAD + OK + "goal_achievement:\n  a: {max: 3, weight: 0.5}\n", 5, "goal_achievement", "add up to 0.5"),
        (HEAD + OK + "goal_achievement:\n  a: {max: 0, weight: 1}\n", 6, "goal_achievement.a.max", "greater than 0"),
        (HEAD + OK + "escalated_when: {tools: ['']}\n", 5, "escalated_when.tools.0", "at least 1"),
        (HEAD + OK + TWICE, 7, "expected_tool_calls.1.scenario", "twice"),
        ("version: [1\n", 2, "file", "is no YAML"),
        ("- family\n", 1, "file", "must be a mapping"),
        (HEAD + OK + "---\nfamily: other\n", 5, "file", "several documents"),
        (LAUGHS, 1, "file", "aliases"),
    ],
)  # fmt: skip
def test_rule_26_grammar_is_told_with_its_line(text: str, line: int, field: str, said: str) -> None:
    told = problems(text)[0]
    assert (told.line, told.field) == (line, field)
    assert said in told.text
    assert told.remedy


@pytest.mark.parametrize(
    ("check", "said", "remedy"),
    [
        ("state.a ==", "no CEL", ""),
        ("stat.a == 1", "reads `stat`", "state"),
        ("now() > 1", "calls `now`", "timestamp"),
        ("state.a.foo()", "calls `foo`", "startsWith"),
        ("size(state) > 0", "without naming a field", "state.name"),
        ("state[session.agents[0]] == 1", "without naming a field", "state['name']"),
        ("'a' in tools", "without naming a field", "tools.name"),
        ("session.agent == 'a'", "session has no agent", "agents"),
        ("state.a == 1 // why", "comment", "#"),
        ("state.a == '''x'''", "triple quotes", "single"),
        ("1 + 1", "neither true nor false", "compare"),
        ("session.turns", "neither true nor false", "compare"),
        ("state.a + state.b", "neither true nor false", "compare"),
        ("session.agents > 3", "raises whatever the session is", "one kind"),
        ("tools['x'] > 0", "raises whatever the session is", "one kind"),
    ],
)
def test_rule_23_an_expression_names_its_fields_and_may_be_true_or_false(check: str, said: str, remedy: str) -> None:
    told = problems(criterion(check=f'"{check}"'))[0]
    assert (told.line, told.field) == (5, "criteria.0.check")
    assert said in told.text
    assert remedy in told.remedy


@pytest.mark.parametrize(
    "check",
    [
        "state.a",
        "state.a[3] == 'x'",
        "timestamp(state.a) > timestamp('2026-01-01T00:00:00Z')",
        "session.agents[0] == 'first'",
        "state.a.exists(x, x.startsWith('a'))",
        "has(state.a) && state.a.matches('^[A-Z]{2}-[0-9]+$')",
        "resource['k'] in [true, 'true']",
    ],
)
def test_rule_23_what_can_be_meant_is_let_through(check: str) -> None:
    assert not read_all([("0.yaml", criterion(check=f'"{check}"'))], TimeRules())[1]


@pytest.mark.parametrize(
    "check",
    ['"true"', '"!has(evidence.declined)"', '"evidence.x == 1 || true"'],
    ids=["always", "by silence", "either way"],
)
def test_rule_26_silence_verifies_nothing(check: str) -> None:
    told = only(criterion(check=check, trust="independent", deadline="24h"))
    assert told.field == "criteria.0.check"
    assert "evidence" in told.text


# --- one fault hides no other


def told(*texts: str) -> list[tuple[str, int, str]]:
    found = problems(*texts)
    assert all(one.remedy and one.text for one in found)
    return [(one.file, one.line, one.field) for one in found]


WRONG = """family: order
version: 1
claimed_when: "evidence.x"
criteria:
  - {id: a, check: "state.a == "}
  - {id: a, check: "state.a == 1", weight: -1}
  - {id: b, check: "evidence.a == 1", deadline: 3}
  - {id: c, check: "foo.bar == 1"}
  - {id: d, check: 5, applies: "evidence.x == 1"}
  - 7
targets: {nope: 1}
reopen_window: 900d
nope: 1
"""


def test_rule_26_everything_that_is_wrong_with_a_file_is_told_at_once() -> None:
    assert told(WRONG) == [
        ("0.yaml", 3, "claimed_when"),
        ("0.yaml", 4, "criteria"),  # an id twice, seen once the criteria are criteria
        ("0.yaml", 5, "criteria.0.check"),
        ("0.yaml", 6, "criteria.1.weight"),
        ("0.yaml", 7, "criteria.2.deadline"),  # and not that what reads evidence needs one
        ("0.yaml", 8, "criteria.3.check"),
        ("0.yaml", 9, "criteria.4.check"),
        ("0.yaml", 9, "criteria.4.applies"),
        ("0.yaml", 10, "criteria.5"),
        ("0.yaml", 11, "targets.nope"),
        ("0.yaml", 12, "reopen_window"),
        ("0.yaml", 13, "nope"),
    ]


BAD_CEL = HEAD + 'criteria:\n  - {id: b, check: "state.b == "}\n'


def test_rule_26_a_version_that_is_there_twice_hides_no_bad_expression_and_the_other_way_round() -> None:
    assert told(HEAD + OK, BAD_CEL) == [("1.yaml", 2, "version"), ("1.yaml", 4, "criteria.0.check")]
    assert told(BAD_CEL, HEAD + OK) == [("0.yaml", 2, "version"), ("0.yaml", 4, "criteria.0.check")]
    assert told(BAD_CEL, BAD_CEL) == [
        ("0.yaml", 4, "criteria.0.check"),
        ("1.yaml", 2, "version"),
        ("1.yaml", 4, "criteria.0.check"),
    ]


def test_rule_26_a_file_that_cannot_be_used_takes_nothing_from_one_that_can() -> None:
    found, _ = read_all([("bad.yaml", BAD_CEL), ("good.yaml", HEAD + OK)], TimeRules())
    assert [one.file for one in found] == ["good.yaml"]


@pytest.mark.parametrize("unknown", ["version: one", "version: 1\neffective_from: soon"])
def test_rule_26_where_the_version_is_not_known_none_is_there_twice(unknown: str) -> None:
    assert len(told(HEAD + OK, f"family: order\n{unknown}\n{OK}")) == 1


@pytest.mark.parametrize("criteria", ["criteria: 5", "criteria: []", "risk: low", "criteria: [[[]]]"])
def test_rule_26_nothing_is_said_of_criteria_that_are_not_there(criteria: str) -> None:
    assert [field for _, _, field in told(f'{HEAD}invalid_when: "evidence.x"\n{criteria}\n')] in (
        ["invalid_when", "criteria"],
        ["criteria", "invalid_when"],
        ["invalid_when", "criteria.0"],
    )


def test_rule_26_what_is_said_twice_hides_nothing_and_the_last_holds() -> None:
    assert told(f'{HEAD}version: 2\ninvalid_when: "evidence.x"\n{OK}', f"family: order\nversion: 2\n{OK}") == [
        ("0.yaml", 3, "version"),
        ("0.yaml", 3, "version"),  # order@2 is in the other
        ("0.yaml", 4, "invalid_when"),
    ]


def test_rule_26_one_criterion_written_once_and_used_twice_is_two() -> None:
    shared = 'criteria:\n  - &one {id: a, check: "state.a =="}\n  - *one\n'
    assert told(HEAD + shared) == [
        ("0.yaml", 3, "criteria"),
        ("0.yaml", 4, "criteria.0.check"),
        ("0.yaml", 4, "criteria.1.check"),
    ]
