"""Asking a server over HTTP whether it answers, for which model, and how much it has done."""

from __future__ import annotations

import http.client
import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{[^}]*\})? ([-+0-9.eE]+)$", re.MULTILINE)
_QUESTION_S = 10.0


class ProbeError(Exception):
    """The server gave no answer, or none that can be read; `status` is that of HTTP, where it came so far."""

    def __init__(self, sentence: str, status: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Work:
    """What a server counts: requests at hand, requests finished, tokens read and written, prefix-cache lookups."""

    at_hand: int
    finished: int
    tokens: int
    looked_up: int
    found: int


class Probe:
    """A client of one server, past any proxy. All methods block, and raise `ProbeError`."""

    def __init__(self, url: str, key: str, served_name: str) -> None:
        self._url, self._key, self._served_name = urlsplit(url), key, served_name

    def models(self) -> tuple[str, ...]:
        """Return the names of the models that it offers."""
        listed = self._json("GET", f"{self._url.path}/models", None, _QUESTION_S)
        try:
            return tuple(str(entry["id"]) for entry in listed["data"])
        except (KeyError, TypeError):
            raise ProbeError("what it offers cannot be read") from None

    def generate(self, limit_s: float) -> None:
        """Have it generate one token."""
        question = {
            "model": self._served_name,
            "messages": [{"role": "user", "content": "Say yes."}],
            "max_tokens": 1,
            "temperature": 0,
        }
        answer = self._json("POST", f"{self._url.path}/chat/completions", question, limit_s)
        if not isinstance(answer, dict) or not answer.get("choices"):
            raise ProbeError("it answered without a choice")

    def work(self) -> Work | None:
        """Return what it counts; None where it counts nothing that is known here."""
        try:
            text = self._exchange("GET", "/metrics", None, _QUESTION_S)
        except ProbeError as error:
            if error.status is None:
                raise
            return None
        totals: Counter[str] = Counter()
        for name, value in _SAMPLE.findall(text):
            totals[name.removeprefix("vllm:")] += float(value)  # type: ignore[assignment]
        if "num_requests_running" not in totals:
            return None
        return Work(
            at_hand=int(totals["num_requests_running"] + totals["num_requests_waiting"]),
            finished=int(totals["request_success_total"]),
            tokens=int(totals["prompt_tokens_total"] + totals["generation_tokens_total"]),
            looked_up=int(totals["prefix_cache_queries_total"]),
            found=int(totals["prefix_cache_hits_total"]),
        )

    def _json(self, method: str, path: str, body: Any, limit_s: float) -> Any:
        text = self._exchange(method, path, body, limit_s)
        try:
            return json.loads(text)
        except ValueError:
            raise ProbeError(f"the answer is not JSON; it begins with {text[:60]!r}") from None

    def _exchange(self, method: str, path: str, body: Any, limit_s: float) -> str:
        host, port = self._url.hostname or "", self._url.port
        connection = http.client.HTTPConnection(host, port, timeout=limit_s)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise ProbeError(f"no answer ({error or type(error).__name__})") from None
        finally:
            connection.close()
        if response.status != http.HTTPStatus.OK:
            raise ProbeError(f"HTTP {response.status}: {' '.join(text.split())[:200]}", response.status)
        return text
