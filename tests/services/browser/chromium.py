"""A headless Chromium, driven over its debugging protocol: no driver and no package is needed, Chromium alone."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome")
START_SECONDS = 60.0
PATIENCE_SECONDS = 20.0
MISSING = f"the page is tested in a real browser, and none of {', '.join(NAMES)} is here: apt-get install chromium"


class NoBrowser(RuntimeError):
    """There is no Chromium, or it does not start."""


class Chromium:
    """A browser process with a profile of its own.

    Raises:
        NoBrowser: with what to do about it.
    """

    def __init__(self) -> None:
        program = next((found for name in NAMES if (found := shutil.which(name))), None)
        if program is None:
            raise NoBrowser(MISSING)
        self._profile = Path(tempfile.mkdtemp(prefix="trueup-browser-"))
        arguments = [
            "--headless=new",
            "--disable-gpu",
            "--hide-scrollbars",
            "--remote-debugging-port=0",
            f"--user-data-dir={self._profile}",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # Chromium refuses to run as root with it
        ]
        self._process = subprocess.Popen(
            [program, *arguments, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._port = self._wait_for_port()

    def _wait_for_port(self) -> int:
        file = self._profile / "DevToolsActivePort"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            if file.exists() and "\n" in (text := file.read_text()):
                return int(text.split("\n")[0])
            time.sleep(0.05)
        self.close()
        raise NoBrowser(f"Chromium did not start within {START_SECONDS:.0f} s")

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    @asynccontextmanager
    async def tab(self, width: int = 1200, height: int = 900, scheme: str = "light") -> AsyncIterator[Tab]:
        """A new tab; closed in the end."""
        async with aiohttp.ClientSession() as session:
            async with session.put(f"http://127.0.0.1:{self._port}/json/new?about:blank") as answer:
                target = await answer.json()
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                reading = asyncio.create_task(tab.read())
                try:
                    for domain in ("Page", "Runtime", "Network", "Log"):
                        await tab.call(f"{domain}.enable")
                    await tab.call("Emulation.setFocusEmulationEnabled", enabled=True)
                    await tab.resize(width, height, scheme)
                    yield tab
                finally:
                    reading.cancel()
            await session.get(f"http://127.0.0.1:{self._port}/json/close/{target['id']}")


class Tab:
    """A page in the browser.

    Attributes:
        complaints: what its console says, exceptions that nobody caught, and requests that failed.
        requested: every URL that it asked for.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._number = socket, 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.complaints: list[str] = []
        self.requested: list[str] = []

    async def read(self) -> None:
        """Takes what the browser says, until it is cancelled."""
        async for message in self._socket:
            said = json.loads(message.data)
            if "id" in said:
                self._waiting.pop(said["id"]).set_result(said)
            elif said["method"] == "Network.requestWillBeSent":
                self.requested.append(said["params"]["request"]["url"])
            elif said["method"] in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                self.complaints.append(json.dumps(said["params"]))

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        answered = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        answer = await asyncio.wait_for(answered, PATIENCE_SECONDS)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    async def resize(self, width: int, height: int, scheme: str) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def go(self, url: str) -> None:
        """To a page, until it shows what it has for this address."""
        await self.call("Page.navigate", url=url)
        await self.shown()

    async def shown(self) -> None:
        await self.until("document.getElementById('main')?.dataset.shown === location.hash")

    async def run(self, script: str) -> Any:
        """What an expression comes to.

        Raises:
            RuntimeError: it threw.
        """
        answer = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    async def until(self, script: str, wanted: Callable[[Any], bool] = bool) -> Any:
        """The first value of an expression that is wanted.

        Raises:
            TimeoutError: it never was.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not wanted(value := await self.run(script)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {PATIENCE_SECONDS:.0f} s {script} is still {value!r}")
            await asyncio.sleep(0.05)
        return value

    async def press(self, key: str, code: int) -> None:
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            await self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                **(text if kind == "keyDown" else {}),
            )  # fmt: skip

    async def picture(self, most: int, scale: float = 1.0) -> bytes:
        """PNG of the page from its top, down to `most` of its pixels."""
        size = (await self.call("Page.getLayoutMetrics"))["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], most), "scale": scale}
        taken = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(taken["data"])
