"""Loaded into the worker by the benchmark: at SIGUSR1 it tells the CPU time so far, and what the profiler saw.

The environment says where: `BENCH_CPU` names the file for the seconds, `BENCH_PROFILE` one for cProfile, if wanted.
"""

from __future__ import annotations

import cProfile
import os
import signal
import time
from pathlib import Path
from types import FrameType

_profiler = cProfile.Profile() if "BENCH_PROFILE" in os.environ else None


def _tell(_number: int, _frame: FrameType | None) -> None:
    if _profiler is not None:
        _profiler.disable()
        _profiler.dump_stats(os.environ["BENCH_PROFILE"])
        _profiler.enable()
    told = Path(os.environ["BENCH_CPU"])
    written = told.with_suffix(".new")
    written.write_text(str(time.process_time()))
    written.replace(told)


signal.signal(signal.SIGUSR1, _tell)
if _profiler is not None:
    _profiler.enable()
