"""Runs the parts of one process until it is told to stop, or until one of them fails."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from pipeline.cli.common import debugging
from pipeline.embedded.folder import make_folder
from pipeline.embedded.ports import check_free
from pipeline.errors import TrueupError
from pipeline.logs import set_up
from pipeline.sinks.connection import EMBEDDED
from pipeline.worker.parts import Part, ProcessOptions
from pipeline.worker.process import Process


def run(options: ProcessOptions) -> NoReturn:
    """Run it; SIGTERM and Ctrl-C stop it in order.

    The process ends without waiting for threads and tasks that the engine may have left behind: by then all is durable.

    Raises:
        PortTaken, NoSuchPlace, FolderUnusable: before anything is started.
    """
    for part, port in ((Part.GATEWAY, options.gateway_port), (Part.API, options.api_port)):
        if part in options.parts:
            check_free(options.host, port, "--port")
    if Part.STAGES in options.parts:
        make_folder(options.runner.data_dir)
    if options.dsn.startswith(EMBEDDED):
        make_folder(Path(options.dsn.removeprefix(EMBEDDED)))
    set_up()
    code = asyncio.new_event_loop().run_until_complete(_run(options))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def _run(options: ProcessOptions) -> int:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    process = Process(options)
    try:
        starting = asyncio.ensure_future(process.start())
        if not await _before(starting, stopped):
            return 0
        failure = asyncio.ensure_future(process.until_failure())
        failed = await _before(failure, stopped)
        clean = await process.stop()
    except (TrueupError, OSError) as error:
        _say(error)
        return 2
    if failed:
        _say(failure.result())
        return 1
    return 0 if clean else 1


async def _before(task: asyncio.Future[Any], stopped: asyncio.Event) -> bool:
    """Whether the task ended before the process was told to stop; else it is cancelled. Its error is raised."""
    stopping: asyncio.Future[Any] = asyncio.ensure_future(stopped.wait())
    await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=30.0)
        return False
    task.result()
    return True


def _say(error: BaseException) -> None:
    if debugging():
        traceback.print_exception(error)
    print(f"trueup: {' '.join(str(error).split())}", file=sys.stderr)
