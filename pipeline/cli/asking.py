"""What the commands share that ask a running worker: their options, the question, and what is said if it goes wrong.

The rule this file keeps: an answer that cannot be used becomes the asking command's own error, and says what to give.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import requests
import typer

from pipeline.errors import TrueupError

DEFAULT_TENANT = "default"
PATIENCE_SECONDS = 30.0  # for one answer
GOOD = (requests.codes.ok, requests.codes.accepted)
REFUSED = (requests.codes.unauthorized, requests.codes.forbidden)


class Format(StrEnum):
    """How it is told."""

    TEXT = "text"
    JSON = "json"


Url = Annotated[str | None, typer.Option("--url", help="Of a worker; its port on this machine if not given.")]
AsFormat = Annotated[Format, typer.Option("--format", help="For people or for programs.")]


def base_of(url: str | None, port: int) -> str:
    """Where the worker is: as given, else at this port of this machine."""
    return (url or f"http://127.0.0.1:{port}").rstrip("/")


class Asker:
    """One command, as it asks.

    Args:
        token_file: has its bearer token.
        hint: what to give where that is refused.
        error: what the command raises.

    Raises:
        error: the token cannot be read.
    """

    def __init__(self, token_file: Path | None, hint: str, error: type[TrueupError]) -> None:
        self._hint, self._error = hint, error
        self._headers = {} if token_file is None else {"Authorization": f"Bearer {self._token(token_file)}"}

    def ask(
        self, method: str, url: str, named: str | None = None, body: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """What is answered; None where there is nothing.

        Args:
            named: what errors call the worker; its url if not given.

        Raises:
            error: nobody answers, or not as a worker would.
        """
        named = named or url
        try:
            answer = requests.request(method, url, headers=self._headers, json=body, timeout=PATIENCE_SECONDS)
            told: dict[str, Any] = answer.json()
        except requests.JSONDecodeError as error:
            what = f"{named} answers with {answer.status_code} and no JSON: is it a trueup worker?"
            raise self._error(what) from error
        except requests.RequestException as error:
            why = type(error).__name__
            raise self._error(f"{named} does not answer ({why}): name a running worker with --url") from error
        if answer.status_code == requests.codes.not_found:
            return None
        if answer.status_code not in GOOD:
            hint = f"; {self._hint}" if answer.status_code in REFUSED else ""
            reason = told.get("error", "no reason given")
            raise self._error(f"{named} answers with {answer.status_code}: {reason}{hint}")
        return told

    def _token(self, file: Path) -> str:
        try:
            return file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise self._error(f"{file}: cannot be read: {error}") from error


def print_json(told: Any) -> None:
    """For programs."""
    print(msgspec.json.format(msgspec.json.encode(told)).decode())
