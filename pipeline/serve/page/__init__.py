"""The small page at `/`: three files without a build step, served as they are.

The rule this file keeps: the page loads nothing from anywhere else and runs no script but its own, and the browser is
told so; what the API answers is shown as text and never as markup.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import blake2b
from pathlib import Path

from aiohttp import web

FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

Handler = Callable[[web.Request], Awaitable[web.Response]]


def routes() -> list[web.RouteDef]:
    """One for each file; they are read once."""
    return [web.get(path, _serve(name, content_type)) for path, (name, content_type) in FILES.items()]


def _serve(name: str, content_type: str) -> Handler:
    body = (Path(__file__).parent / name).read_bytes()
    tag = blake2b(body, digest_size=8).hexdigest()

    async def handler(request: web.Request) -> web.Response:
        if any(known.value == tag for known in request.if_none_match or ()):
            return web.Response(status=304, headers={**HEADERS, "ETag": f'"{tag}"'})
        return web.Response(
            body=body, content_type=content_type, charset="utf-8", headers={**HEADERS, "ETag": f'"{tag}"'}
        )

    return handler
