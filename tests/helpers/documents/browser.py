"""A real browser, steered over a pipe by the DevTools protocol: pages, scripts in them, widths, colour schemes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import axe_core_python
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WAIT_S = 60.0
AXE = Path(axe_core_python.__file__).with_name("axe.min.js")


def browser_path() -> str:
    """The browser of this machine; without one a test is skipped, where CI is set it fails."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None and os.environ.get("CI"):
        pytest.fail(f"no browser was found; expected one of {', '.join(NAMES)}")
    if found is None:
        pytest.skip(f"no browser was found; looked for {', '.join(NAMES)}")
    return found


class Tab:
    """One page of a browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, os.fdopen(from_browser, "rb", buffering=0)
        self._number, self._rest, self._session = 0, b"", ""
        self.complaints: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; complaints of the page that come in between are kept."""
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._to, json.dumps(asked).encode() + b"\0")
        while (found := self._next()).get("id") != self._number:
            self._note(found)
        assert "error" not in found, found
        return found["result"]

    def open(self, url: str) -> None:
        """Go to an address and wait until it is loaded."""
        self.ask("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str, within_s: float = WAIT_S) -> float:
        """Wait until an expression is true and return how long it took, in seconds."""
        begun = time.monotonic()
        while not self.run(script):
            assert time.monotonic() - begun < within_s, script
            time.sleep(0.05)
        return time.monotonic() - begun

    def shape(self, width: int, height: int = 900, scheme: str = "light", media: str = "screen") -> None:
        """Give the page a size, a colour scheme and a medium."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=features)

    def picture(self, path: Path) -> Path:
        """Take a picture of what is seen."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))
        return path

    def violations(self) -> list[str]:
        """Return what axe-core finds against accessibility in the page: each rule, and the place that breaks it."""
        self.run(AXE.read_text(encoding="utf-8") + "; null")
        return self.run(
            "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.flatMap("
            "rule => rule.nodes.map(node => `${rule.id}: ${node.target} ${node.html.slice(0, 200)}`)))"
        )

    def end(self) -> None:
        """Close the pipe from the browser."""
        self._from.close()

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = self._from.read(1 << 16)
            assert piece, "the browser has ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, found: dict[str, Any]) -> None:
        if found.get("method") == "Log.entryAdded" and found["params"]["entry"]["level"] == "error":
            self.complaints.append(found["params"]["entry"]["text"])
        if found.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(found["params"]["exceptionDetails"]))


@contextmanager
def open_tab(profile: Path) -> Iterator[Tab]:
    """Start a browser with an empty profile and give a page of it."""
    options = "--headless --no-sandbox --disable-gpu --hide-scrollbars --remote-debugging-pipe"
    in_browser, to_browser = os.pipe()
    from_browser, out_browser = os.pipe()
    command = f'exec "$0" {options} --user-data-dir="$1" 3<&{in_browser} 4>&{out_browser}'
    process = subprocess.Popen(
        ["/bin/bash", "-c", command, browser_path(), str(profile)],
        pass_fds=(in_browser, out_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(in_browser)
    os.close(out_browser)
    tab = Tab(to_browser, from_browser)
    try:
        yield tab
    finally:
        process.terminate()
        process.wait(20)
        os.close(to_browser)
        tab.end()


OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
