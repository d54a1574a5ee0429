"""A stand-in for vLLM: a real HTTP server with its interface and its ways to fail, but without any model.

    python stand_in_server.py serve WEIGHTS --served-model-name N --host H --port P …

Started like `vllm serve`, it behaves as vLLM 0.32 was seen to: the port opens only once it is ready; `/v1` wants the
key of VLLM_API_KEY, other pages do not; a process of its own (the engine) does the work, hangs while pages still
answer, and is left behind with its shared memory when the first process is killed; a port in use ends it with code 1.
With `--nnodes`, headless processes join before it is ready. Its answers are echoes, or with `--answers rule-based`
those of the embedded rule-based model. `POST /fault` asks for faults (after `hold` answers wait for the next order),
and `GET /pids` names its processes. Standard library only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BLOCK = 64
"""Characters of a block of the prefix cache: 16 tokens of 4."""


def main() -> None:
    options = parse(sys.argv[1:])
    if options.engine:
        Engine(options).run()
        return
    time.sleep(options.ready_after)
    if options.fail_with:
        sys.exit(f"RuntimeError: {options.fail_with}")
    if options.headless:
        join(options)
        return
    server = StandIn(options)
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    server.run()


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("serve")
    parser.add_argument("weights")
    parser.add_argument("--served-model-name", default="stand-in")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--ready-after", type=float, default=0.0)
    parser.add_argument("--fail-with", default="")
    parser.add_argument("--answers", choices=["echo", "rule-based"], default="echo")
    parser.add_argument("--engine", action="store_true")
    parser.add_argument("--nnodes", type=int, default=1)
    parser.add_argument("--node-rank", type=int, default=0)
    parser.add_argument("--master-addr", default="127.0.0.1")
    parser.add_argument("--master-port", type=int, default=0)
    parser.add_argument("--headless", action="store_true")
    return parser.parse_known_args(arguments)[0]


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def join(options: argparse.Namespace) -> None:
    """Meet the first node's process, and stay, as vLLM does, even when that one has gone."""
    while True:
        try:
            socket.create_connection((options.master_addr, options.master_port), timeout=60)
        except OSError:
            time.sleep(0.1)
        else:
            break
    while True:
        time.sleep(60)


def gather(options: argparse.Namespace) -> None:
    with socket.create_server((options.master_addr, options.master_port)) as listener:
        for _ in range(options.nnodes - 1):
            listener.accept()


class Engine:
    """The process that does the work: one question a line, one answer a line."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._seen: set[int] = set()

    def run(self) -> None:
        shared = Path(f"/dev/shm/psm_stand_in_{os.getpid()}")
        shared.write_bytes(bytes(4096))
        with shared.open("r+b") as file:
            memory = mmap.mmap(file.fileno(), 4096)
        for line in sys.stdin:
            say(json.dumps(self._answer(json.loads(line))))
        while len(memory):  # the first process was killed: vLLM's engine keeps the GPU
            time.sleep(60)

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt = "\0".join(message["content"] for message in body["messages"])
        texts, completion = self._texts(body, prompt)
        return {
            "texts": texts,
            "prompt_tokens": len(prompt) // 4,
            "cached_tokens": self._cached(prompt),
            "completion_tokens": completion,
        }

    def _texts(self, body: dict[str, Any], prompt: str) -> tuple[list[str], int]:
        n, most = body.get("n", 1), body.get("max_tokens", 16)
        if self._options.answers == "rule-based" and most > 1:
            from sharp.llm.protocol import ChatRequest, Message
            from sharp.rule_based.backend import RuleBasedBackend

            messages = tuple(Message(m["role"], m["content"]) for m in body["messages"])
            request = ChatRequest("rule-based", "", messages, body["temperature"], most, body["seed"], n)
            reply = asyncio.run(RuleBasedBackend("rule-based").complete(request))
            return list(reply.texts), reply.usage.completion
        return [f"{body.get('seed')}/{number}: {prompt[-40:]}" for number in range(n)], n * min(most, 10)

    def _cached(self, prompt: str) -> int:
        """Return the tokens of the longest beginning, in whole blocks, that was asked before; keep this one."""
        ends = range(BLOCK, len(prompt) + 1, BLOCK)
        beginnings = [hash(prompt[:end]) for end in ends]
        known = next((i for i, one in enumerate(beginnings) if one not in self._seen), len(beginnings))
        self._seen.update(beginnings)
        return known * BLOCK // 4


class StandIn(ThreadingHTTPServer):
    """The first process: HTTP, the key, the counts."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__((options.host, options.port), Handler, bind_and_activate=False)
        self.options = options
        self.key = os.environ.get("VLLM_API_KEY")
        self.fault: dict[str, Any] = {}
        self.counts = dict.fromkeys(("running", "finished", "prompt", "generated", "looked_up", "found"), 0)
        self._stopping = False
        self._lock = threading.Lock()
        self._engine_lock = threading.Lock()
        if options.nnodes > 1:
            gather(options)
        self.engine = subprocess.Popen(
            [sys.executable, __file__, *sys.argv[1:], "--engine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self) -> None:
        threading.Thread(target=self._die_with_engine, daemon=True).start()
        self.server_bind()  # the address may be taken: OSError: [Errno 98] Address already in use
        self.server_activate()
        say(f"stand-in: serving {self.options.served_model_name} on {self.options.port}")
        self.serve_forever(poll_interval=0.05)

    def stop(self) -> None:
        """End as vLLM does on SIGTERM: at once, the engine first, its memory given back."""
        self._stopping = True
        self.engine.kill()
        self._give_back()
        os._exit(0)

    def count(self, **changes: int) -> None:
        with self._lock:
            for name, change in changes.items():
                self.counts[name] += change

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        with self._engine_lock:
            self.engine.stdin.write(json.dumps(body) + "\n")
            self.engine.stdin.flush()
            answer: dict[str, Any] = json.loads(self.engine.stdout.readline())
        return answer

    def _die_with_engine(self) -> None:
        self.engine.wait()
        if not self._stopping:
            say("stand-in: the engine died")
            self._give_back()
            os._exit(1)

    def _give_back(self) -> None:
        Path(f"/dev/shm/psm_stand_in_{self.engine.pid}").unlink(missing_ok=True)


class Handler(BaseHTTPRequestHandler):
    server: StandIn
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        pages = {
            "/health": self._health,
            "/metrics": self._metrics,
            "/pids": self._pids,
            "/v1/models": self._models,
        }
        page = pages.get(self.path)
        if page is None:
            self.reply(404, {"error": {"message": "no such page"}})
        elif self._may_enter():
            page()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._may_enter():
            return
        if self.path == "/v1/chat/completions":
            self._complete(body)
        elif self.path == "/tokenize":
            self.reply(200, {"count": len(body["prompt"]) // 4})
        elif self.path == "/fault":
            self.server.fault = body
            self.reply(200, {})
        else:
            self.reply(404, {"error": {"message": "no such page"}})

    def reply(self, status: int, body: Any, kind: str = "application/json") -> None:
        payload = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def _may_enter(self) -> bool:
        key = self.server.key
        if key and self.path.startswith("/v1/") and self.headers["Authorization"] != f"Bearer {key}":
            self.reply(401, {"error": {"message": "Unauthorized"}})
            return False
        return True

    def _health(self) -> None:
        self.reply(200, "", "text/plain")

    def _models(self) -> None:
        name = self.server.options.served_model_name
        self.reply(
            200, {"object": "list", "data": [{"id": name, "object": "model", "max_model_len": 100_000}]}
        )

    def _pids(self) -> None:
        options, environment = self.server.options, dict(os.environ)
        words = {"server": os.getpid(), "engine": self.server.engine.pid}
        self.reply(200, {**words, "argv": sys.argv, "nodes": options.nnodes, "environment": environment})

    def _metrics(self) -> None:
        counts, name = self.server.counts, self.server.options.served_model_name
        named = {
            "num_requests_running": counts["running"],
            "num_requests_waiting": 0,
            "request_success_total": counts["finished"],
            "prompt_tokens_total": counts["prompt"],
            "generation_tokens_total": counts["generated"],
            "prefix_cache_queries_total": counts["looked_up"],
            "prefix_cache_hits_total": counts["found"],
        }
        lines = [
            f'vllm:{key}{{engine="0",model_name="{name}"}} {float(value)}' for key, value in named.items()
        ]
        self.reply(200, "# HELP a stand-in's counters\n" + "\n".join(lines) + "\n", "text/plain")

    def _complete(self, body: dict[str, Any]) -> None:
        server, fault = self.server, self.server.fault
        if body["model"] != server.options.served_model_name:
            self.reply(
                404, {"error": {"message": f"The model {body['model']!r} does not exist.", "code": 404}}
            )
            return
        is_probe = body.get("max_tokens") == 1
        if fault.get("status") and not is_probe:
            self.reply(fault["status"], {"error": {"message": "a fault that was asked for"}})
            return
        server.count(running=1)
        time.sleep(fault.get("probe_delay_s" if is_probe else "delay_s", 0.0))
        while server.fault.get("hold") and not is_probe:
            time.sleep(0.05)
        answer = server.ask(body)
        server.count(
            running=-1, finished=1, prompt=answer["prompt_tokens"], generated=answer["completion_tokens"]
        )
        server.count(looked_up=answer["prompt_tokens"], found=answer["cached_tokens"])
        self.reply(200, completion(body["model"], answer))


def completion(model: str, answer: dict[str, Any]) -> dict[str, Any]:
    choices = [
        {"index": number, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for number, text in enumerate(answer["texts"])
    ]
    usage = {
        "prompt_tokens": answer["prompt_tokens"],
        "completion_tokens": answer["completion_tokens"],
        "total_tokens": answer["prompt_tokens"] + answer["completion_tokens"],
        "prompt_tokens_details": {"cached_tokens": answer["cached_tokens"]},
    }
    return {
        "id": "stand-in",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": choices,
        "usage": usage,
    }


if __name__ == "__main__":
    main()
