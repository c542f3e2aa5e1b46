"""`trueup demo`: a simulated week held against its known truth."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipeline.cli.common import Brokers, Config, Contracts, DataDir, Debug, contracts_of, quiet_libraries, settings
from pipeline.demo.compare import write_json, write_summary
from pipeline.demo.kills import Kills
from pipeline.demo.play import play
from pipeline.demo.screen import Screen
from pipeline.demo.sources import WINDOW, Pages
from pipeline.demo.stories import tell
from pipeline.embedded.folder import DataFolder
from pipeline.embedded.machine import Machine
from pipeline.simulation.world import World, build, build_hard

WORLDS: dict[str, Callable[[int, int, datetime], World]] = {"week": build, "hard": build_hard}
"""By name: sessions of last week with all that came of them; the same among every kind of trouble."""
SESSIONS = 2000
WIDTH = 110  # of tables where there is no terminal
IDLE_AFTER = "1h"
"""A world of last week ends with a record that says so. Were its spans called idle when a slow machine lets them wait,
event time would go on to today with the outcomes, whose records are of today."""


def demo(
    world: Annotated[str, typer.Option("--world", help=f"Which world: {', '.join(WORLDS)}.")] = "week",
    sessions: Annotated[int, typer.Option("--sessions", min=1, help="At least so many.")] = SESSIONS,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same world.")] = 1,
    kill_worker: Annotated[int, typer.Option("--kill-worker", min=0, metavar="N", help="kill -9 so often.")] = 0,
    workers: Annotated[int, typer.Option("--workers", min=1, help="With --brokers: so many.")] = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Stay up, and print where.")] = False,
    exit_status: Annotated[bool, typer.Option("--exit", help="Status 0 only if all agree exactly, else 1.")] = False,
    config: Config = None,
    brokers: Brokers = None,
    contracts: Contracts = None,
    data_dir: DataDir = None,
    preload: Annotated[str, typer.Option("--preload", hidden=True)] = "",
    debug: Debug = False,
) -> None:
    """Sends a world whose truth is known through everything, and holds what comes out against it.

    Example: trueup demo --sessions 500 --seed 3 --kill-worker 2
    """
    if world not in WORLDS:
        raise typer.BadParameter(f"there is no world {world}; there is: {', '.join(WORLDS)}")
    chosen = settings(config, brokers=brokers, contracts=contracts, data_dir=data_dir)
    contracts_of(chosen)  # before anything is started that would end for want of them
    kafka = chosen.brokers if "brokers" in chosen.model_fields_set else ()
    quiet_libraries()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    screen = Screen(console)
    arguments = [] if config is None else ["--config", str(config.absolute())]
    judging = [] if contracts is None else ["--contracts", str(contracts.absolute())]
    with stopped_by_sigterm(), DataFolder(chosen.data_dir) as folder:
        if folder.archived:
            screen.say(f"the data of an earlier run is in {folder.archived}")
        machine = Machine(
            folder.path,
            arguments,
            kafka,
            workers,
            worker_arguments=["--idle-after", IDLE_AFTER, *judging, *(["--preload", preload] if preload else [])],
        )
        with machine:
            kills = Kills(machine, kill_worker, seed, screen.say)
            exact = _run(machine, kills, screen, folder.path / "demo", build_world(screen, seed, sessions, world))
            if keep:
                _stay(machine, screen)
    raise typer.Exit(0 if exact or not exit_status else 1)


def build_world(screen: Screen, seed: int, sessions: int, name: str = "week") -> World:
    """The world, and a line about it."""
    began = time.monotonic()
    built = WORLDS[name](seed, sessions, datetime.now(UTC))
    faults, took = built.faults, time.monotonic() - began
    screen.say(
        f"a world of {built.sessions:,} sessions (seed {seed}) built in {took:.1f} s: {faults.late} "
        f"spans and outcomes come late, {faults.duplicates} twice, {faults.reordered} out of order"
    )
    if built.kinds:
        times = built.kinds.values()
        screen.say(f"{sum(times)} scenes of {len(built.kinds)} kinds of trouble, {min(times)} to {max(times)} of each")
    return built


def _run(machine: Machine, kills: Kills, screen: Screen, results: Path, world: World) -> bool:
    began = time.monotonic()
    machine.start(kills.plan())
    started = time.monotonic() - began
    screen.say(f"broker and workers are up after {started:.1f} s")
    urls = {
        "worker": f"http://127.0.0.1:{machine.ports.workers[0]}",
        "gateway": f"http://127.0.0.1:{machine.ports.gateway}",
        "brokers": ",".join(machine.brokers),
    }
    write_json(results / "urls.json", urls)
    with screen:
        played = play(machine, world, screen, kills.look)
    comparison = played.comparison
    screen.comparison(comparison, WINDOW)
    screen.differences(comparison.wrong)
    screen.session_differences(comparison.differences)
    seconds = {"starting": started, **played.seconds, "all": time.monotonic() - began}
    write_summary(results / "summary.json", world, comparison, seconds, kills.done)
    screen.say("")
    screen.say("Claimed complete, and later found otherwise:")
    for line in tell(Pages(lambda: machine.ports), world.stories):
        screen.say(line)
    missing = [kind for kind, times in world.kinds.items() if not times]
    if missing:
        screen.say(f"never played: {', '.join(missing)}")
    verdict = "every number is exact" if comparison.exact else f"{len(comparison.wrong)} numbers are wrong"
    for source, found in comparison.differences.items():
        sessions = len({one.where for one in found})
        verdict += f", {sessions} of {len(world.verdicts):,} sessions differ by {source}" if found else ""
    screen.say(
        f"{verdict}: {len(comparison.rows)} rates of {world.sessions:,} sessions, each read by "
        f"{len(comparison.rows[0].measured)} ways, after {seconds['all']:.0f} s; see {results / 'summary.json'}"
    )
    return comparison.exact and not missing


def _stay(machine: Machine, screen: Screen) -> None:
    try:  # from the first word on: whoever reads it may press Ctrl-C at once
        screen.say(f"worker   http://127.0.0.1:{machine.ports.workers[0]}  (/metrics, /api/rates)")
        screen.say(f"gateway  http://127.0.0.1:{machine.ports.gateway}  (/v1/traces, /v1/outcomes)")
        screen.say(f"brokers  {','.join(machine.brokers)}")
        screen.say("Ctrl-C ends it")
        while True:
            machine.look_after()
            time.sleep(1.0)
    except KeyboardInterrupt:
        screen.say("stopping")


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM ends us as Ctrl-C does: with everything stopped in order."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
