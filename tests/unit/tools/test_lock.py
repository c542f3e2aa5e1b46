"""The locks pin every package by version and hash, name no source, and cover what is asked for."""

import re
import tomllib
from pathlib import Path

import pytest

from tools.lock import EXAMPLES_LOCK, LOCK, LOCKS, ROOT, command

PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; [^\\]+)?$")
HASH = re.compile(r"^--hash=sha256:[0-9a-f]{64}$")


def locked(lock: str = LOCK) -> dict[str, str]:
    """Name -> version; fails on a line that is neither a pin nor a hash, and on a pin without one."""
    text = (ROOT / lock).read_text(encoding="ascii").replace(" \\\n    ", "\t")
    pins = {}
    for line in text.splitlines():
        pin, *hashes = line.split("\t")
        found = PIN.match(pin)
        assert found, line[:80]
        assert hashes, pin
        assert all(HASH.match(one) for one in hashes), pin
        pins[found["name"]] = found["version"]
    return pins


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_is_a_pin_with_hashes_so_no_source_is_named(lock):
    assert locked(lock)


def test_every_package_the_project_asks_for_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["dev"]
    asked += project["build-system"]["requires"]

    assert_covered(asked, locked())


def test_every_package_an_example_asks_for_is_locked():
    lines = (ROOT / LOCKS[EXAMPLES_LOCK]).read_text(encoding="ascii").splitlines()

    assert_covered([line for line in lines if line and not line.startswith("#")], locked(EXAMPLES_LOCK))


def assert_covered(asked, pins):
    for requirement in asked:
        found = re.match(r"([\w.-]+)(?:\[\w+\])?(?:==(\S+))?", requirement)
        assert found, requirement
        name = re.sub(r"[-_.]+", "-", found[1]).lower()
        assert name in pins
        assert found[2] in (None, pins[name])


def test_the_resolver_asks_for_hashes_of_wheels_for_every_platform():
    argv = command(Path("uv"), upgrade=False)

    assert {"--generate-hashes", "--universal", "--only-binary", "--no-annotate", "--no-header"} <= set(argv)
    assert "--upgrade" not in argv
    assert "--upgrade" in command(Path("uv"), upgrade=True)


def test_the_examples_are_resolved_apart_so_that_they_do_not_weigh_on_the_project():
    argv = command(Path("uv"), upgrade=False, lock=EXAMPLES_LOCK)

    assert argv[3] == LOCKS[EXAMPLES_LOCK]
    assert argv[-1] == EXAMPLES_LOCK
    assert "--extra" not in argv
