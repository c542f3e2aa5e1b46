"""Each import law fails on a seeded violation, and on nothing that the layers allow."""

from pathlib import Path

import pytest

from tools.layers import check, check_module


def objections(path: str, source: str) -> list[str]:
    return [violation.message for violation in check_module(Path(path), source)]


@pytest.mark.parametrize(
    ("path", "source", "part"),
    [
        pytest.param("pipeline/utils.py", "", "no place", id="a module without a place"),
        pytest.param("pipeline/helpers/text.py", "", "no place", id="a folder without a place"),
        pytest.param(
            "schemas/span.py", "from pipeline.core import effects", "imports point right", id="schemas import core"
        ),
        pytest.param("pipeline/core/sessions.py", "import pipeline.metrics", "point right", id="core imports metrics"),
        pytest.param("pipeline/sinks/chdb.py", "from pipeline.topology import STAGES", "point right", id="siblings"),
        pytest.param("pipeline/runners/a.py", "from pipeline import serve", "point right", id="runners import serve"),
        pytest.param("pipeline/serve/api.py", "from ..runners import a\nfrom ..cli import b", "`cli`", id="relative"),
        pytest.param(
            "pipeline/serve/api.py", "import importlib\nimportlib.import_module('pipeline.cli')", "`cli`", id="by name"
        ),
        pytest.param("pipeline/serve/api.py", "def f():\n    import pipeline.cli.up", "`cli`", id="inside a function"),
        pytest.param(
            "pipeline/embedded.py", "from pipeline.settings import Settings", "`settings`", id="settings not by the CLI"
        ),
        pytest.param(
            "pipeline/embedded.py", "from pipeline.cache import get", "no place", id="import of an unplaced module"
        ),
        pytest.param("pipeline/embedded.py", "import pipeline", "name the module", id="the package itself"),
        pytest.param(
            "pipeline/__init__.py", "from pipeline.core import ingest", "point right", id="the package imports a step"
        ),
        pytest.param("pipeline/core/ingest.py", "import asyncio", "pure", id="core imports asyncio"),
        pytest.param("pipeline/core/ingest.py", "from time import monotonic", "pure", id="core imports time"),
        pytest.param("pipeline/core/ingest.py", "import clickhouse_connect", "pure", id="core imports ClickHouse"),
        pytest.param(
            "pipeline/core/ingest.py", "from prometheus_client import Counter", "pure", id="core imports Prometheus"
        ),
        pytest.param("schemas/topics.py", "import os.path", "pure", id="schemas import os"),
        pytest.param("schemas/topics.py", "import random", "pure", id="schemas import random"),
        pytest.param(
            "pipeline/core/ingest.py",
            "from datetime import datetime\ndatetime.now()",
            "no clock",
            id="core reads a clock",
        ),
        pytest.param(
            "pipeline/core/ingest.py",
            "import datetime as d\nd.datetime.now(d.UTC)",
            "no clock",
            id="a clock by its module",
        ),
        pytest.param(
            "pipeline/core/outcomes.py", "from pipeline.core import sessions", "steps do not", id="step imports step"
        ),
        pytest.param(
            "pipeline/core/outcomes.py",
            "from pipeline.core.sessions.close import f",
            "steps do not",
            id="step imports inside step",
        ),
        pytest.param(
            "pipeline/core/effects.py", "import pipeline.core.ingest", "steps do not", id="shared imports a step"
        ),
        pytest.param(
            "pipeline/core/judging/a.py",
            "import pipeline.core.dialects.otel",
            "not import `ingest`",
            id="a part of another step",
        ),
        pytest.param(
            "pipeline/core/__init__.py", "from pipeline.core import ingest", "steps do not", id="core imports a step"
        ),
        pytest.param(
            "pipeline/simulation/world.py", "from pipeline.core import effects", "knows the truth", id="simulation"
        ),
        pytest.param(
            "pipeline/simulation/world.py", "import pipeline.errors", "knows the truth", id="simulation imports errors"
        ),
        pytest.param("pipeline/embedded.py", "import faust", "only `runners`", id="Faust outside runners"),
        pytest.param(
            "pipeline/topology.py", "from faust.types import TP", "only `runners`", id="Faust's types outside runners"
        ),
        pytest.param("pipeline/gateway/a.py", "from aiokafka import AIOKafkaConsumer", "consumes", id="consumer"),
        pytest.param(
            "pipeline/gateway/a.py",
            "import aiokafka\naiokafka.AIOKafkaConsumer()",
            "consumes",
            id="consumer by attribute",
        ),
        pytest.param("pipeline/gateway/a.py", "import os\nos.environ['X']", "environment", id="environment"),
        pytest.param("pipeline/gateway/a.py", "from os import getenv", "environment", id="environment by name"),
        pytest.param("pipeline/gateway/a.py", "from tests.builders import span", "not shipped", id="tests"),
        pytest.param("pipeline/cli/up.py", "import tools.setup", "not shipped", id="tools"),
    ],
)
def test_a_seeded_violation_is_found(path, source, part):
    found = objections(path, source)

    assert len(found) == 1
    assert part in found[0]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        pytest.param("pipeline/__main__.py", "from pipeline.cli import main", id="python -m pipeline"),
        pytest.param(
            "pipeline/cli/up.py", "import os\nfrom pipeline.settings import Settings\nos.environ", id="the CLI"
        ),
        pytest.param("pipeline/cli/up.py", "from pipeline.cli import console", id="inside a layer"),
        pytest.param(
            "pipeline/embedded.py", "import pipeline.gateway.otlp\nfrom pipeline import runners", id="to the right"
        ),
        pytest.param(
            "pipeline/runners/a.py", "import faust\nfrom aiokafka import AIOKafkaConsumer", id="runners consume"
        ),
        pytest.param(
            "pipeline/gateway/a.py", "from aiokafka import AIOKafkaProducer\nimport os\nos.kill", id="a producer"
        ),
        pytest.param(
            "pipeline/core/sessions/close.py", "from pipeline.core.sessions.state import S", id="inside a step's folder"
        ),
        pytest.param(
            "pipeline/core/verdicts.py",
            "from pipeline.core import effects, estimators, timeline\nfrom pipeline.core.contracts.cel import check",
            id="what steps share",
        ),
        pytest.param(
            "pipeline/core/ingest.py", "from datetime import datetime\ndatetime.fromtimestamp(0)", id="a given time"
        ),
        pytest.param(
            "pipeline/simulation/world.py",
            "import random\nimport pipeline.simulation.faults\nimport schemas.span",
            id="simulation",
        ),
        pytest.param(
            "pipeline/core/ingest/spans.py", "import pipeline.core.dialects.otel", id="a folder that is part of a step"
        ),
        pytest.param("schemas/verdict.py", "from schemas.session import Session", id="schemas meet"),
    ],
)
def test_what_the_layers_allow_is_not_objected_to(path, source):
    assert objections(path, source) == []


def test_two_names_of_one_import_are_one_violation():
    assert len(objections("pipeline/core/outcomes.py", "from pipeline.core.sessions import a, b")) == 1


def test_a_tree_is_searched_to_its_leaves_and_the_place_is_named(tmp_path):
    deep = tmp_path / "pipeline" / "core" / "ingest" / "dialects" / "otel.py"
    deep.parent.mkdir(parents=True)
    deep.write_text('"""Doc."""\n\nimport socket\n')
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "span.py").write_text("import faust\n")

    assert [str(violation) for violation in check(tmp_path)] == [
        "pipeline/core/ingest/dialects/otel.py:3: `core` is pure, and may not import `socket`",
        "schemas/span.py:1: `schemas` is pure, and may not import `faust`",
    ]
