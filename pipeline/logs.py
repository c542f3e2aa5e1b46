"""Log lines: a fixed message and fields, one line each, at the edges only.

The rule this file keeps: what varies is a field, so that a message can be searched for and counted.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

NOISY = ("faust", "mode", "aiokafka", "kafka", "aiohttp.access")
"""Loggers of the engine: their information is about themselves, so only warnings pass."""


class Fields(logging.Formatter):
    """`time LEVEL message key=value ...`, or the same as a JSON object."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self.as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "fields", {})
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if record.exc_info:
            fields = {**fields, "error": self.formatException(record.exc_info)}
        if self.as_json:
            line = {"time": time, "level": record.levelname.lower(), "message": record.getMessage(), **fields}
            return json.dumps(line, default=str)
        words = [time, record.levelname, record.getMessage(), *(f"{key}={value}" for key, value in fields.items())]
        return " ".join(words)


def set_up(level: str = "INFO", as_json: bool = False) -> None:
    """Send all log lines to stderr; stdout belongs to the commands."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Fields(as_json))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelName(level)))


class Log:
    """The log of one module.

    Example:
        log = Log("runners.sink")
        log.info("rows written", table="verdicts", rows=500)
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"trueup.{name}")

    def info(self, message: str, **fields: object) -> None:
        self._logger.info(message, extra={"fields": fields})

    def warning(self, message: str, **fields: object) -> None:
        self._logger.warning(message, extra={"fields": fields})

    def error(self, message: str, error: BaseException | None = None, **fields: object) -> None:
        """With `error`, its stack trace too."""
        self._logger.error(message, extra={"fields": fields}, exc_info=error)
