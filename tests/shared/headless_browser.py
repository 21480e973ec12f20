"""A headless Chromium that tests drive by its debugging protocol through a pipe; nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SECONDS = 30.0


def chromium() -> str:
    """Return the browser, or skip the test."""
    path = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("needs a headless browser: install Debian's package chromium")
    return path


class HeadlessBrowser:
    """One page of a browser of its own, with all requests that it makes."""

    def __init__(self) -> None:
        self._path = chromium()
        self._profile = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self._received = b""
        self._session: str | None = None

    def __enter__(self) -> Self:
        read_end, write_end = os.pipe()  # the browser reads what we write
        back_read, back_write = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars"]
        flags += [
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
        ]
        flags += ["--disable-component-update", "--force-color-profile=srgb", f"--user-data-dir={self._profile.name}"]

        def pass_pipes() -> None:  # the protocol has fixed numbers for both ends
            for source, target in ((read_end, 13), (back_write, 14)):
                os.dup2(source, target)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self._process = subprocess.Popen(
            [self._path, *flags, "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=pass_pipes,
            start_new_session=True,
        )
        os.close(read_end)
        os.close(back_write)
        self._to, self._from = write_end, back_read
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError, AssertionError):
            self._session = None
            self._call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait(10)
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    def show_as(self, width: int, height: int, *, dark: bool = False, reduced_motion: bool = True) -> None:
        """Be a screen of a size, for people with such preferences."""
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced_motion else "no-preference"},
        ]
        self._call("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str) -> None:
        """Go to an address and wait until its document is there."""
        self._call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        result = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, script: str, seconds: float = _SECONDS) -> None:
        """Wait until an expression is true."""
        limit = time.monotonic() + seconds
        while not self.evaluate(script):
            assert time.monotonic() < limit, f"never true: {script}"
            time.sleep(0.05)

    def press(self, key: str, code: int) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Save what the page looks like, all of it or what fits on the screen."""
        picture = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))

    def requested(self) -> list[str]:
        """Return the addresses that the page has asked for, but for data in itself."""
        self.evaluate("1")
        sent = [
            event["params"]["request"]["url"]
            for event in self._events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in sent if not url.startswith(("data:", "about:"))]

    def complaints(self) -> list[str]:
        """Return errors of scripts, and what the browser has logged, such as breaches of the page's policy."""
        self.evaluate("1")
        thrown = [str(event["params"]) for event in self._events if event["method"] == "Runtime.exceptionThrown"]
        logged = [event["params"]["entry"] for event in self._events if event["method"] == "Log.entryAdded"]
        return thrown + [entry["text"] for entry in logged if entry["level"] == "error"]

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        limit = time.monotonic() + _SECONDS
        while True:
            answer = self._next_message(limit)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def _next_message(self, limit: float) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._from], [], [], max(0.0, limit - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._from, 1 << 20)
            assert part, "the browser has gone"
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded
