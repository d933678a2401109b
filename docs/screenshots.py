"""Pictures of the UI for the pages: `python docs/screenshots.py` writes docs/ui/*.png.

The real UI over the sample corpus, in headless Chromium, driven by its DevTools protocol. The
workspace is built first if it is not up to date. Everything listens on loopback, and is ended.
"""

import argparse
import asyncio
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from websockets.asyncio.client import ClientConnection, connect

from chunking_assets import config as configuration
from dagster_defs.home import prepare_home
from dagster_defs.pages import GROUPS

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "ui"
MOST_BYTES = 300_000
WAIT_SECONDS = 90
OPEN = ",".join(f"global@global:{group}" for group in GROUPS.values())


@dataclass(frozen=True)
class Picture:
    """A page of the UI: it is ready when `text` is on it; then `steps` of JavaScript are taken."""

    name: str
    path: str
    text: str
    steps: tuple[str, ...] = ()
    width: int = 1500
    height: int = 900


HIDE_NAVIGATION = """[...document.querySelectorAll("button, a, div")]
    .filter(e => e.innerText?.trim() === "Hide navigation").at(-1)?.click()"""

PICTURES_OF = (
    Picture(
        "graph",
        f"/asset-groups?expanded={quote(OPEN)}",
        "live_index",
        (HIDE_NAVIGATION,),
        width=2400,
        height=940,
    ),
    Picture(
        "partition",
        f"/assets/chunk_sets?view=partitions&partition={quote('recursive-400@1|help-center')}",
        "mean_tokens",
        (HIDE_NAVIGATION,),
    ),
    Picture(
        "leaderboard",
        "/assets/strategy_comparison?view=events",
        "heading-400-hybrid",
        (HIDE_NAVIGATION,),
        height=820,
    ),
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process and all it starts, ended at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603
            command,
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Dagster stops by SIGINT, which a shell may have told its background jobs to ignore.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answer(url: str) -> bytes:
    """What is at an address, once something is."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as response:  # noqa: S310  # loopback
                return bytes(response.read())
        except (urllib.error.URLError, OSError):
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


class Browser:
    """One tab, told what to do by the DevTools protocol."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket, self.sent = socket, 0

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.sent += 1
        await self.socket.send(
            json.dumps({"id": self.sent, "method": method, "params": parameters})
        )
        while True:
            message = json.loads(await self.socket.recv())
            if message.get("id") == self.sent:
                return dict(message.get("result", {}))

    async def run(self, javascript: str) -> Any:
        found = await self.call("Runtime.evaluate", expression=javascript, returnByValue=True)
        return found.get("result", {}).get("value")

    async def take(self, base: str, picture: Picture) -> bytes:
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=picture.width, height=picture.height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        await self.call("Page.navigate", url=base + picture.path)
        until = time.monotonic() + WAIT_SECONDS
        shown = f"document.body && document.body.innerText.includes({json.dumps(picture.text)})"
        while not await self.run(shown):
            if time.monotonic() > until:
                text = await self.run("document.body.innerText")
                raise SystemExit(f"{picture.name}: {picture.text!r} did not appear in: {text}")
            await asyncio.sleep(0.5)
        await asyncio.sleep(4)  # layout and icons
        for step in picture.steps:
            await self.run(step)
            await asyncio.sleep(2)
        shot = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(shot["data"])


async def photograph(base: str, debugger: int, names: list[str]) -> None:
    tabs = json.loads(answer(f"http://127.0.0.1:{debugger}/json"))
    address = next(tab for tab in tabs if tab["type"] == "page")["webSocketDebuggerUrl"]
    async with connect(address, max_size=64_000_000) as socket:
        browser = Browser(socket)
        for picture in PICTURES_OF:
            if names and picture.name not in names:
                continue
            content = await browser.take(base, picture)
            file = PICTURES / f"{picture.name}.png"
            file.write_bytes(content)
            print(f"{file}: {len(content):,} bytes")
            if len(content) > MOST_BYTES:
                raise SystemExit(f"{file} has more than {MOST_BYTES:,} bytes; show less.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="which pictures; all if none is named")
    names = parser.parse_args().names
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no chromium. Install it: apt-get install -y chromium")
    subprocess.run(
        [sys.executable, "-m", "dagster_defs.materialize", "--promote-first"], cwd=ROOT, check=True
    )
    prepare_home(configuration.load().home)
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "yes"
    PICTURES.mkdir(exist_ok=True)
    port, debugger = free_port(), free_port()
    serve = [sys.executable, "-m", "dagster_webserver", "-w", "workspace.yaml"]
    with tempfile.TemporaryDirectory() as scratch:
        browse = [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
            f"--user-data-dir={scratch}/profile", f"--remote-debugging-port={debugger}",
            "--remote-debugging-address=127.0.0.1", "about:blank",
        ]  # fmt: skip
        with (
            running([*serve, "-h", "127.0.0.1", "-p", str(port)], Path(scratch) / "ui.log"),
            running(browse, Path(scratch) / "browser.log"),
        ):
            answer(f"http://127.0.0.1:{port}/server_info")
            asyncio.run(photograph(f"http://127.0.0.1:{port}", debugger, names))


if __name__ == "__main__":
    main()
