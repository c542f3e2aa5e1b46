"""What all routes of the gateway share: who asks, and the body as bytes.

The rule this file keeps: a body is read and unpacked only up to the limit, whatever its headers say.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from aiohttp import web

CHUNK = 65_536
GZIP = 16 + zlib.MAX_WBITS


class Scope(StrEnum):
    SPANS = "spans"
    OUTCOMES = "outcomes"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who sends a request."""

    name: str


Authorize = Callable[[web.Request, Scope], Awaitable[Principal]]
"""Raises `Refused` with 401 or 403."""


class Refused(Exception):
    """A request that is answered with an error; each route puts it into its own form.

    Args:
        status: of HTTP.
        retry_after_seconds: set where the same request may be taken later.
    """

    def __init__(self, status: int, message: str, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after_seconds = status, message, retry_after_seconds

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after_seconds is None else {"Retry-After": str(self.retry_after_seconds)}


async def anyone(_request: web.Request, _scope: Scope) -> Principal:
    """Without tokens, which only a gateway on loopback may be."""
    return Principal("local")


async def body_of(request: web.Request, limit: int) -> bytes:
    """The body, unpacked.

    Raises:
        Refused: 413 above `limit` bytes, 415 for an encoding other than gzip, 400 where it is not what it says.
    """
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", ""):
        raise Refused(415, f"Content-Encoding {encoding[:40]} is not supported; send gzip or none")
    unpack = zlib.decompressobj(GZIP) if encoding == "gzip" else None
    body = bytearray()
    try:
        async for chunk in request.content.iter_chunked(CHUNK):
            body += chunk if unpack is None else unpack.decompress(chunk, limit + 1 - len(body))
            if len(body) > limit:
                raise Refused(413, f"the body is above {limit} bytes; send smaller batches")
    except zlib.error as error:
        raise Refused(400, "the body is not gzip, as its Content-Encoding says") from error
    if unpack is not None and not unpack.eof:
        raise Refused(400, "the gzip body ends too early")
    return bytes(body)
