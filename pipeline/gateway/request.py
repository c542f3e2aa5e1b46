"""What all routes of the gateway share: who asks, and the body as bytes.

The rule this file keeps: a body is read and unpacked only up to the limit and only while there is room, whatever its
headers say.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from aiohttp import web

from pipeline.gateway.limits import Held, Limits, NoRoom
from pipeline.tokens import NotAdmitted, Scope, Token, Tokens

CHUNK = 65_536
GZIP = 16 + zlib.MAX_WBITS
NO_ROOM_SECONDS = 1

Authorize = Callable[[web.Request, Scope], Awaitable[Token]]
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
        headers = {} if self.retry_after_seconds is None else {"Retry-After": str(self.retry_after_seconds)}
        return headers | ({"WWW-Authenticate": "Bearer"} if self.status == 401 else {})


async def anyone(_request: web.Request, _scope: Scope) -> Token:
    """Without tokens, which only a gateway on loopback may be."""
    return Token("local", frozenset(Scope), tenant=None, sources=None)


def bearer(tokens: Tokens) -> Authorize:
    """Admits who shows one of the tokens."""

    async def authorize(request: web.Request, scope: Scope) -> Token:
        try:
            return tokens.admit(request.headers.get("Authorization", ""), scope)
        except NotAdmitted as refused:
            raise Refused(refused.status, refused.message) from refused

    return authorize


async def body_of(request: web.Request, limits: Limits, held: Held) -> bytes:
    """The body, unpacked; what it takes is held.

    Raises:
        Refused: 413 above the limit, 429 while others take all the room, 415 for an encoding other than gzip, 408 for a
            sender that is slow, 400 where the body is not what it says.
    """
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", ""):
        raise Refused(415, f"Content-Encoding {encoding[:40]} is not supported; send gzip or none")
    chunks = request.content.iter_chunked(CHUNK)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.read_seconds):
            async for chunk in _unpacked(chunks) if encoding == "gzip" else chunks:
                if len(body) + len(chunk) > limits.request_bytes:
                    raise Refused(413, f"the body is above {limits.request_bytes} bytes; send smaller batches")
                held.grow(len(chunk))
                body += chunk
    except zlib.error as error:
        raise Refused(400, "the body is not gzip, as its Content-Encoding says") from error
    except TimeoutError as error:
        raise Refused(408, f"the body did not come within {limits.read_seconds:g} s; send it again") from error
    except NoRoom as error:
        raise Refused(429, "too much waits for Kafka now; send it again", NO_ROOM_SECONDS) from error
    return bytes(body)


async def _unpacked(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The gzip's members, one after the other, never more than `CHUNK` at once.

    Raises:
        zlib.error: it is none, or its end is missing.
    """
    unpack: Any = zlib.decompressobj(GZIP)
    async for chunk in chunks:
        packed = chunk
        while packed:
            if unpack.eof:
                unpack = zlib.decompressobj(GZIP)
            if piece := unpack.decompress(packed, CHUNK):
                yield piece
            packed = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
    while not unpack.eof and (piece := unpack.decompress(b"", CHUNK)):
        yield piece
    if not unpack.eof:
        raise zlib.error("the end is missing")
