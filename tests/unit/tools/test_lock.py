"""The lock pins every package by version and hash, names no source, and covers what the project asks for."""

import re
import tomllib
from pathlib import Path

from tools.lock import LOCK, ROOT, command

PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; [^\\]+)?$")
HASH = re.compile(r"^--hash=sha256:[0-9a-f]{64}$")


def locked() -> dict[str, str]:
    """Name -> version; fails on a line that is neither a pin nor a hash, and on a pin without one."""
    text = (ROOT / LOCK).read_text(encoding="ascii").replace(" \\\n    ", "\t")
    pins = {}
    for line in text.splitlines():
        pin, *hashes = line.split("\t")
        found = PIN.match(pin)
        assert found, line[:80]
        assert hashes, pin
        assert all(HASH.match(one) for one in hashes), pin
        pins[found["name"]] = found["version"]
    return pins


def test_every_line_is_a_pin_with_hashes_so_no_source_is_named():
    assert locked()


def test_every_package_the_project_asks_for_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["dev"]
    asked += project["build-system"]["requires"]
    pins = locked()

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
