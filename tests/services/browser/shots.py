"""Pictures of the page of a running worker, for the documentation.

python -m tests.services.browser.shots http://127.0.0.1:6066 default/chat-17#1 docs/images
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from urllib.parse import quote

from tests.services.browser.chromium import Chromium

SCALE = 0.75  # small enough for a repository, and still to be read


async def take(browser: Chromium, worker: str, session: str, folder: Path) -> None:
    """`page-overview.png` and `page-session.png`."""
    tenant, _, rest = session.partition("/")
    conversation, _, ordinal = rest.rpartition("#")
    address = "/".join(quote(part, safe="") for part in (tenant, conversation, ordinal))
    shots = {
        "page-overview.png": ("#/?window=7d", 1400),
        "page-session.png": (f"#/session/{address}", 1580),
    }
    for name, (where, height) in shots.items():
        async with browser.tab(width=1120) as tab:
            await tab.go(f"{worker}/{where}")
            (folder / name).write_bytes(await tab.picture(height, SCALE))


def main(worker: str, session: str, folder: str) -> None:
    browser = Chromium()
    try:
        asyncio.run(take(browser, worker.rstrip("/"), session, Path(folder)))
    finally:
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
