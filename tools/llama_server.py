"""Serves a model by llama.cpp on loopback until it is ended: python llama_server.py MODEL.gguf PORT [THREADS].

It needs xllamacpp alone, which has no command of its own. One request is answered at a time, and others wait: two cores
answer two together no sooner. `/metrics` counts tokens as the server sees them.
"""

from __future__ import annotations

import signal
import sys

CONTEXT = 16384


def main(model: str, port: int, threads: int = 2) -> None:
    """Serve."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = ["small"]
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.endpoint_metrics = True
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}/v1\n")
    sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
