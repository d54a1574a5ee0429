"""The web server of the live page: on loopback alone, for whoever has the token, and read-only."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from sharp.errors import InputError
from sharp.view.watching import ORDER, Campaign, Watch

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

HOST = "127.0.0.1"
COOKIE = "sharp-view"
LOOK_S = 0.25  # between two looks at the files of the runs that are shown
AGAIN_S = 5.0  # after which a run is looked at even if no file has changed: whoever steered it may be gone
START_S = 0.5  # before the list of runs is read
LIST_S = 1.0  # between two versions of the list of runs
MOST = 6  # runs side by side
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def serve(folder: Path, campaign: Campaign, port: int, say: Callable[[str], None]) -> None:
    """Serve the page of a run, a sweep or a folder of runs until interrupted; `say` is told its address.

    `campaign` returns what is to be shown of a folder's jobs and servers. Port 0 takes a free one. Raises `InputError`
    where the extra `view` is not installed or the port is taken, and `RunDirectoryError` where there is no folder.
    """
    try:
        import uvicorn
    except ImportError:
        raise _missing() from None
    token = secrets.token_urlsafe(24)
    app = make_app(folder, campaign, token)
    listening = _listen(port)
    say(f"http://{HOST}:{listening.getsockname()[1]}/?token={token}")
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, lifespan="on")
    with listening:
        uvicorn.Server(config).run(sockets=[listening])


def _missing() -> InputError:
    return InputError(
        "the live page needs starlette and uvicorn; install them with: pip install 'pde-sharp[view]'"
    )


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        # From now on whoever opens the address waits for an answer instead of being turned away.
        listening.listen()
    except OSError as error:
        listening.close()
        raise InputError(
            f"--port {port}: {error.strerror}; choose another, or 0 for any that is free"
        ) from None
    return listening


def make_app(folder: Path, campaign: Campaign, token: str) -> Starlette:
    """Return the application; raises like `serve`."""
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError:
        raise _missing() from None
    site = _Site(Watch(folder, campaign), token)
    pages = (
        ("/", site.front),
        ("/runs", site.runs),
        ("/events", site.events),
        ("/view.css", site.style),
        ("/view.js", site.script),
    )
    routes = [Route(path, site.guarded(page)) for path, page in pages]
    return Starlette(routes=routes, lifespan=site.reading)


class _Site:
    def __init__(self, watch: Watch, token: str) -> None:
        self.watch, self.token = watch, token
        self._followers = 0

    @asynccontextmanager
    async def reading(self, _: Starlette) -> AsyncIterator[None]:
        """Read the list of runs in a thread of its own, as long as the server works."""
        over = threading.Event()
        thread = threading.Thread(target=self._read, args=(over,), daemon=True)
        thread.start()
        yield
        over.set()
        await asyncio.to_thread(thread.join)

    def _read(self, over: threading.Event) -> None:
        # The first page does not wait for what reading loads.
        over.wait(START_S)
        while not over.is_set():
            for _ in self.watch.read_rows():
                # Requests come first: reading gives up the interpreter between two runs, for longer where a page of
                # a run is followed.
                if over.wait(0.05 if self._followers else 0.002):
                    return
            over.wait(2 * LIST_S)
            self.watch.find()

    def guarded(self, page: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Return a page for whoever has the token, given once in the address and kept in a cookie from then on."""
        from starlette.responses import PlainTextResponse, RedirectResponse

        async def answer(request: Request) -> Response:
            # Another name would be that of another site that leads here.
            if request.url.hostname not in (HOST, "localhost"):
                return PlainTextResponse("This page is for this machine alone.", 400)
            given = request.query_params.get("token", "")
            if secrets.compare_digest(given.encode(), self.token.encode()):
                kept = RedirectResponse(str(request.url.remove_query_params("token")), 303)
                kept.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
                return kept
            if not secrets.compare_digest(request.cookies.get(COOKIE, "").encode(), self.token.encode()):
                return PlainTextResponse("Open the whole address that `sharp view` has printed.", 403)
            response: Response = await page(request)
            response.headers.update(
                {
                    "Content-Security-Policy": _POLICY,
                    "Referrer-Policy": "no-referrer",
                    "Cache-Control": "no-store",
                }
            )
            return response

        return answer

    async def front(self, _: Request) -> Response:
        """Return the list of runs, or the page of the only one."""
        if list(self.watch.runs) == ["."]:
            return self._panes(["."])
        return _html(
            "list.html.j2", folder=self.watch.folder, rows=self.watch.rows(), most=MOST, events="/events"
        )

    async def runs(self, request: Request) -> Response:
        """Return the page of one run, or of several side by side."""
        from starlette.responses import PlainTextResponse

        names = request.query_params.getlist("run")[:MOST]
        unknown = [name for name in names if name not in self.watch.runs]
        if unknown or not names:
            return PlainTextResponse(
                f"There is no run {', '.join(unknown) or 'named'} in {self.watch.folder}.", 404
            )
        return self._panes(names)

    def _panes(self, names: list[str]) -> Response:
        events = "/events?" + urlencode([("run", name) for name in names])
        return _html("runs.html.j2", folder=self.watch.folder, names=names, order=ORDER, events=events)

    async def events(self, request: Request) -> Response:
        """Return what changes, as server-sent events: parts of runs, or the list of them where none is named."""
        from starlette.responses import StreamingResponse

        names = [name for name in request.query_params.getlist("run")[:MOST] if name in self.watch.runs]
        stream = self._parts(names) if names else self._list()
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _list(self) -> AsyncIterator[str]:
        sent: list[Any] = []
        while True:
            rows = self.watch.rows()
            if rows != sent:
                sent = rows
                yield _event("rows", _render("rows.html.j2", rows=rows))
            await asyncio.sleep(LIST_S)

    async def _parts(self, names: list[str]) -> AsyncIterator[str]:
        """Yield what changes of some runs; what the journal tells does not wait for what needs the method's state."""
        found: asyncio.Queue[str] = asyncio.Queue()
        self._followers += 1
        try:
            async with asyncio.TaskGroup() as group:
                for made in (self.watch.quick, self.watch.slow):
                    group.create_task(self._follow(names, made, found))
                while True:
                    yield await found.get()
        finally:
            self._followers -= 1

    async def _follow(
        self, names: list[str], made: Callable[[str, str], dict[str, str]], found: asyncio.Queue[str]
    ) -> None:
        sent: dict[str, str] = {}
        seen: dict[str, tuple[Any, float]] = {}
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            for number, name in enumerate(names):
                stamp, looked = seen.get(name, (None, 0.0))
                current = await asyncio.to_thread(self._stamp, name)
                if stamp == current and clock() - looked < AGAIN_S:
                    continue
                seen[name] = current, clock()
                parts = await asyncio.to_thread(made, name, f"p{number}-")
                for anchor, html in parts.items():
                    slot = f"p{number}-slot-{anchor}"
                    if sent.get(slot) != html:
                        sent[slot] = html
                        found.put_nowait(_event(slot, html))
            # What takes long to make leaves as much time to others.
            await asyncio.sleep(max(LOOK_S, clock() - began))

    def _stamp(self, name: str) -> Any:
        from sharp.view.finding import signature

        return signature(self.watch.runs[name])

    async def style(self, _: Request) -> Response:
        """Return the style sheet of every report, and what only this page has."""
        from starlette.responses import Response

        from sharp.document import style_sheet

        own = (Path(__file__).parent / "view.css").read_text(encoding="utf-8")
        return Response(style_sheet() + own, media_type="text/css")

    async def script(self, _: Request) -> Response:
        """Return the script that puts parts in their places."""
        from starlette.responses import Response

        text = (Path(__file__).parent / "view.js").read_text(encoding="utf-8")
        return Response(text, media_type="text/javascript")


def _event(slot: str, html: str) -> str:
    return f"data: {json.dumps({'slot': slot, 'html': html})}\n\n"


def _html(template: str, **values: Any) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(_render(template, **values))


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
