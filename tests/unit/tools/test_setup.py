"""The set-up names the one thing that is missing, touches nothing then, and does nothing when all is there."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools.setup import STAMP, Interpreter, Machine, Version, probe, set_up, this_machine, wanted_stamp

SYSTEM = "/usr/bin/python3"
PLENTY = 10**11


@dataclass
class FakeMachine:
    """Pythons by their path, free disk, and what was run on it; `venv` really makes the folder that pip fills."""

    root: Path
    pythons: dict[str, tuple[Version, bool]]
    free: int = PLENTY
    failing: str = ""
    ran: list[list[str]] = field(default_factory=list)

    def machine(self) -> Machine:
        return Machine(SYSTEM, self.which, self.probe, lambda path: self.free, self.run)

    def which(self, name: str) -> str | None:
        path = f"/usr/bin/{name}"
        return path if path in self.pythons else None

    def probe(self, command: str) -> Interpreter | None:
        if command not in self.pythons:
            return None
        version, makes_environments = self.pythons[command]
        return Interpreter(command, version, makes_environments)

    def run(self, argv: list[str]) -> int:
        self.ran.append(argv)
        if self.failing and self.failing in argv:
            return 1
        if "venv" in argv:
            inside = Path(argv[-1]) / "bin" / "python"
            inside.parent.mkdir(parents=True)
            inside.touch(mode=0o755)
        return 0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "requirements.lock").write_text("rich==15.0.0\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    return tmp_path


@pytest.mark.parametrize(
    ("pythons", "free", "package"),
    [
        pytest.param({SYSTEM: (Version(3, 9), True)}, PLENTY, "python3.11-venv", id="only an old Python"),
        pytest.param(
            {SYSTEM: (Version(3, 14), True)}, PLENTY, "python3.11-venv", id="only a Python newer than the lock"
        ),
        pytest.param({SYSTEM: (Version(3, 11), False)}, PLENTY, "python3-venv", id="a Python without venv"),
        pytest.param({}, PLENTY, "python3.11-venv", id="a Python that does not run"),
        pytest.param({SYSTEM: (Version(3, 11), True)}, 10**9, "2 GB of free disk", id="a full disk"),
    ],
)
def test_what_is_missing_is_named_in_one_line_and_nothing_is_touched(root, pythons, free, package, capsys):
    fake = FakeMachine(root, pythons, free)

    assert set_up(fake.machine(), root) == 2
    said = capsys.readouterr()
    assert package in said.err
    assert said.err.count("\n") == 1
    assert fake.ran == []
    assert not (root / ".venv").exists()


def test_an_old_python_hands_over_to_the_oldest_suitable_one(root):
    pythons = {SYSTEM: (Version(3, 9), True)}
    pythons |= {f"/usr/bin/python3.{minor}": (Version(3, minor), True) for minor in (12, 13)}
    fake = FakeMachine(root, pythons)

    assert set_up(fake.machine(), root) == 0
    assert fake.ran[0] == ["/usr/bin/python3.12", "-m", "venv", str(root / ".venv")]


def test_a_python_that_cannot_make_environments_is_passed_over_for_one_that_can(root):
    fake = FakeMachine(root, {SYSTEM: (Version(3, 11), False), "/usr/bin/python3.13": (Version(3, 13), True)})

    assert set_up(fake.machine(), root) == 0
    assert fake.ran[0][0] == "/usr/bin/python3.13"


def test_packages_are_installed_by_hash_and_the_project_without_an_index(root):
    fake = FakeMachine(root, {SYSTEM: (Version(3, 11), True)})

    set_up(fake.machine(), root)

    packages, project = fake.ran[1:]
    assert packages[-3:] == ["--require-hashes", "-r", "requirements.lock"]
    assert {"--no-index", "--no-deps", "--no-build-isolation"} <= set(project)


def test_an_up_to_date_environment_is_left_alone_even_on_a_full_disk(root, capsys):
    fake = FakeMachine(root, {SYSTEM: (Version(3, 11), True)})
    set_up(fake.machine(), root)
    fake.ran.clear()
    fake.free = 0
    capsys.readouterr()

    assert set_up(fake.machine(), root) == 0
    assert fake.ran == []
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["requirements.lock", "pyproject.toml"])
def test_a_changed_lock_or_project_is_installed_into_the_environment_that_is_there(root, name):
    inside = str(root / ".venv" / "bin" / "python")
    fake = FakeMachine(root, {SYSTEM: (Version(3, 11), True), inside: (Version(3, 11), True)})
    set_up(fake.machine(), root)
    fake.ran.clear()
    (root / name).write_text("changed")

    assert set_up(fake.machine(), root) == 0
    assert [argv[0] for argv in fake.ran] == [inside, inside]
    assert (root / ".venv" / STAMP).read_text() == wanted_stamp(root)


def test_a_failed_installation_leaves_no_stamp_so_that_the_next_run_tries_again(root, capsys):
    fake = FakeMachine(root, {SYSTEM: (Version(3, 11), True)}, failing="--require-hashes")

    assert set_up(fake.machine(), root) == 1
    assert not (root / ".venv" / STAMP).exists()
    assert "run this again" in capsys.readouterr().err


def test_an_environment_that_does_not_run_is_named_and_not_deleted(root, capsys):
    (root / ".venv" / "bin").mkdir(parents=True)
    fake = FakeMachine(root, {SYSTEM: (Version(3, 11), True)})

    assert set_up(fake.machine(), root) == 2
    assert "remove that folder" in capsys.readouterr().err
    assert (root / ".venv" / "bin").exists()
    assert fake.ran == []


def test_the_running_python_is_probed_as_what_it_is():
    found = probe(this_machine().running)

    assert found is not None
    assert Version(3, 11) <= found.version <= Version(3, 13)
    assert found.makes_environments


def test_a_command_that_is_no_python_is_no_interpreter():
    assert probe("/bin/false") is None
    assert probe("no-such-python") is None
