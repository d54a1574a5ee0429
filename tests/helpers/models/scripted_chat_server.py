"""A real HTTP server on the loopback that speaks the chat API and misbehaves on script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openai  # noqa: F401 - takes long to load; here it is done before any clock starts

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def completion(*texts: str | None, model: str = "tiny", finish: str = "stop", **more: Any) -> dict[str, Any]:
    """The body of a chat completion."""
    choices = [
        {"index": i, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        for i, text in enumerate(texts)
    ]
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": model, "choices": choices}
    return {**body, "usage": USAGE, **more}


def error(message: str, code: str | None = None, **more: Any) -> dict[str, Any]:
    """The body of an error."""
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": code},
        **more,
    }


class Handler(BaseHTTPRequestHandler):
    """Answers one request with the next act of the script."""

    server: ScriptedChatServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.take(self, body)

    def do_GET(self) -> None:
        if self.server.models is None:
            self.reply(404, error("no such page"))
        else:
            listed = [{"id": model} if isinstance(model, str) else model for model in self.server.models]
            self.reply(200, {"object": "list", "data": listed})

    def reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


Act = Callable[[Handler, dict[str, Any]], None]


class ScriptedChatServer(ThreadingHTTPServer):
    """Plays its script act by act and the last act forever; records what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Act] = [answer(completion("hello"))]
        self.models: list[Any] | None = ["tiny"]
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.failures: list[Exception] = []
        self.in_flight = self.most_in_flight = 0
        self.asked = threading.Event()
        self.stopping = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def take(self, handler: Handler, body: dict[str, Any]) -> None:
        with self._lock:
            act = self.script[min(len(self.bodies), len(self.script) - 1)]
            self.bodies.append(body)
            self.asked.set()
            self.keys.append(handler.headers["Authorization"])
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            act(handler, body)
        except OSError:
            raise
        except Exception as failure:
            self.failures.append(failure)
            raise
        finally:
            with self._lock:
                self.in_flight -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is what some tests want."""


def answer(body: Any, status: int = 200, **headers: str) -> Act:
    """Reply at once; underscores in header names stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: handler.reply(status, body, named)


def as_many_as_asked(handler: Handler, body: dict[str, Any]) -> None:
    """Answer with n choices that name the seed."""
    handler.reply(200, completion(*[f"{body.get('seed')}/{i}" for i in range(body.get("n", 1))]))


def streamed(*events: Any, pause_s: float = 0.0) -> Act:
    """Answer in parts, with a pause before each, and hang up."""

    def act(handler: Handler, _: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        handler.end_headers()
        for event in (*map(json.dumps, events), "[DONE]"):
            handler.server.stopping.wait(pause_s)
            handler.wfile.write(f"data: {event}\n\n".encode())
            handler.wfile.flush()
        handler.close_connection = True

    return act


def slow(seconds: float) -> Act:
    """Answer late."""

    def act(handler: Handler, _: dict[str, Any]) -> None:
        handler.server.stopping.wait(seconds)
        handler.reply(200, completion("late"))

    return act


def truncated(handler: Handler, _: dict[str, Any]) -> None:
    """Promise more bytes than are sent, and hang up."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"mess')
    handler.close_connection = True


def hang_up(handler: Handler, _: dict[str, Any]) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


@contextmanager
def serving() -> Iterator[ScriptedChatServer]:
    """Run a server on a free port. Raises what its acts raised, which clients see as a lost connection."""
    server = ScriptedChatServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()
    if server.failures:
        raise ExceptionGroup("the server could not play its script", server.failures)
