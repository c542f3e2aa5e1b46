"""`python -m grafana.preview.render`: run a demo, scrape it with a real Prometheus, and draw the dashboard.

The demo is stopped before the picture is taken, since its ClickHouse belongs to one process; Prometheus is then asked
for the last moment at which the worker was there. With --dsn it draws what that ClickHouse holds, and a running worker
(--worker) or a Prometheus data folder (--tsdb).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from aiohttp import web

from grafana.preview.bridge import HERE, create_app

ROOT = HERE.parent.parent
PICTURE = ROOT / "docs" / "images" / "trueup-system.png"
SCRAPE_SECONDS = 1.0
DEMO_WITHIN_SECONDS = 300.0
STOPS_WITHIN_SECONDS = 60.0
MISSING = 2


def main() -> int:
    options = _options()
    missing = [name for name in ("node", "prometheus", "chromium") if shutil.which(name) is None]
    if not (HERE / "node_modules").is_dir():
        missing.append("grafana/preview/node_modules (run `npm ci` there)")
    if missing:
        print(f"missing: {', '.join(missing)}", file=sys.stderr)
        return MISSING
    subprocess.run(["node", "bundle.mjs"], cwd=HERE, check=True)
    with tempfile.TemporaryDirectory(prefix="trueup-preview-") as folder:
        scratch = Path(folder)
        tsdb = options.tsdb or scratch / "tsdb"
        with prometheus(scratch, tsdb) as address:
            if options.dsn:
                if options.worker:
                    _scrape(scratch, options.worker)
                    time.sleep(options.linger)
                dsn, until = options.dsn, time.time()
            else:
                dsn, until = demo(scratch, options.sessions, options.linger)
            since = until - options.minutes * 60
            drawn = asyncio.run(draw(address, dsn, since, until, options))
    failed = [each for each in drawn["asked"] if not each["ok"]]
    empty = [each["query"] for each in drawn["asked"] if each["ok"] and not each["rows"]]
    print(f"{len(drawn['asked'])} queries, {len(failed)} failed, {len(empty)} without rows; {options.out}")
    for trouble in [*(f"failed: {each['query']}: {each['error']}" for each in failed), *drawn["errors"]]:
        print(trouble, file=sys.stderr)
    for query in empty:
        print(f"no rows: {query}")
    return 1 if failed or drawn["errors"] else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=2000, help="of the demo")
    parser.add_argument("--linger", type=float, default=45, help="seconds to go on scraping after the demo is measured")
    parser.add_argument("--minutes", type=float, default=5, help="how much of the past the picture shows")
    parser.add_argument("--tsdb", type=Path, help="a Prometheus data folder to draw from")
    parser.add_argument("--dsn", help="a ClickHouse to draw from, instead of a demo's")
    parser.add_argument("--worker", help="with --dsn: the address of a running worker, scraped for --linger seconds")
    parser.add_argument("--window", default="7d")
    parser.add_argument("--rate", default="completion")
    parser.add_argument("--family", default="$__all")
    parser.add_argument("--out", type=Path, default=PICTURE)
    return parser.parse_args()


@contextmanager
def prometheus(scratch: Path, tsdb: Path) -> Iterator[str]:
    """A Prometheus with our rules that scrapes what `targets.json` names, on a free port."""
    (scratch / "targets.json").write_text("[]", "utf-8")
    configuration = {
        "global": {"scrape_interval": f"{SCRAPE_SECONDS:.0f}s", "evaluation_interval": "5s"},
        "rule_files": [str(ROOT / "grafana" / "alerts" / "trueup.rules.yml")],
        "scrape_configs": [
            {
                "job_name": "trueup",
                "file_sd_configs": [{"files": [str(scratch / "targets.json")], "refresh_interval": "1s"}],
            }
        ],
    }
    (scratch / "prometheus.yml").write_text(json.dumps(configuration), "utf-8")  # JSON is YAML
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["prometheus", f"--config.file={scratch / 'prometheus.yml'}", f"--storage.tsdb.path={tsdb}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=30d"]
    with (scratch / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/-/ready", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"{address} did not get ready")


def demo(scratch: Path, sessions: int, linger: float) -> tuple[str, float]:
    """Run a demo to its end while Prometheus looks on; gives its ClickHouse and the last moment it could be scraped."""
    data = scratch / "data"
    command = [sys.executable, "-m", "pipeline", "demo", "--keep", "--sessions", str(sessions)]
    running = subprocess.Popen([*command, "--data-dir", str(data)], cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        urls = json.loads(_once_there(data / "demo" / "urls.json", running))
        _scrape(scratch, urls["worker"])
        _once_there(data / "demo" / "summary.json", running)
        time.sleep(linger)
        until = time.time()
    finally:
        running.send_signal(signal.SIGINT)
        try:
            running.wait(STOPS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            running.kill()
            raise
    return f"chdb://{data / 'clickhouse'}", until


def _scrape(scratch: Path, worker: str) -> None:
    """Tell Prometheus of a worker; it looks every second."""
    (scratch / "targets.json").write_text(json.dumps([{"targets": [worker.removeprefix("http://")]}]), "utf-8")


def _once_there(file: Path, running: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + DEMO_WITHIN_SECONDS
    while running.poll() is None and time.monotonic() < deadline:
        if file.is_file() and (text := file.read_text("utf-8")):
            return text
        time.sleep(0.2)
    raise RuntimeError(f"the demo did not write {file}")


async def draw(prometheus: str, dsn: str, since: float, until: float, options: argparse.Namespace) -> dict[str, list]:  # type: ignore[type-arg]
    runner = web.AppRunner(create_app(prometheus, dsn, SCRAPE_SECONDS))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    chosen = {"var-window": options.window, "var-rate": options.rate, "var-family": options.family}
    span = {"from": int(since * 1000), "to": int(until * 1000)}
    url = f"http://127.0.0.1:{port}/?{urlencode({'dashboard': 'trueup-system', **span, **chosen})}"
    options.out.parent.mkdir(parents=True, exist_ok=True)
    browser = str(shutil.which("chromium"))
    try:
        shoot = await asyncio.create_subprocess_exec(
            "node", "shoot.mjs", url, str(options.out.resolve()), browser, cwd=HERE, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await shoot.communicate()
        if shoot.returncode != 0:
            raise RuntimeError("the page could not be drawn")
        drawn: dict[str, list] = json.loads(output)  # type: ignore[type-arg]
        return drawn
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    sys.exit(main())
