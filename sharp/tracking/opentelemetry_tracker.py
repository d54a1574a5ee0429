"""Traces of a run by OpenTelemetry: a span for each model call and program run, sent as its variables (`OTEL_…`) say.

Model calls have the attributes of the semantic conventions for generative AI; prompts and answers are not sent. All
spans of a run are of one trace, and their numbers come from the journal: what is sent again is the same span.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc.journal import EffectRecord
from sharp.tracking.tracker import TrackedRun, ended_at, metrics_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter


class OpenTelemetryTracker:
    """Sends to an OTLP server over HTTP, unless another exporter is given."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        try:
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
            from opentelemetry.sdk.trace.export import SpanExportResult

            if exporter is None:
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

                exporter = OTLPSpanExporter()
        except ImportError:
            raise ImportError("install it with: pip install 'pde-sharp[opentelemetry]'") from None
        self._ids = _made_ids()
        resource = Resource.create({"service.name": "pde-sharp"})
        self._provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        # Whether a span was sent is told by what `export` returns: processors keep that to themselves.
        self._exporter, self._readable = exporter, ReadableSpan
        self._success = SpanExportResult.SUCCESS
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)

    def begin(self, run: TrackedRun, known: str | None) -> str:
        """Take the number of the run's trace from its place; return it."""
        self._ids.run = known or sha256(str(run.path).encode()).hexdigest()[:32]
        self._run = run
        return str(self._ids.run)

    def send(self, effect: EffectRecord) -> None:
        """Send the span of an effect, with the times that it had."""
        end = ended_at(effect)
        model = effect.kind == "chat"
        name = f"chat {effect.request['model']}" if model else f"evaluate {effect.request['split']}"
        self._ids.path = effect.path
        span = self._provider.get_tracer("sharp").start_span(
            name,
            start_time=_nanoseconds(end - effect.meta["seconds"]),
            attributes={
                "sharp.run": self._run.name,
                "sharp.problem": self._run.problem,
                "sharp.path": effect.path,
                **(_call(effect) if model else _evaluation(effect)),
            },
        )
        span.end(_nanoseconds(end))
        assert isinstance(span, self._readable), "a provider of the SDK makes spans that can be read"
        if self._exporter.export([span]) is not self._success:
            raise ConnectionError(f"the span of {effect.path} was not taken")

    def end(self, _files: Sequence[Path], *, finished: bool) -> None:  # noqa: ARG002 - files are no spans
        """Close the connection."""
        self._exporter.shutdown()


def _made_ids() -> Any:
    """Return what numbers a trace and its spans: the same whenever they are asked for."""
    from opentelemetry.sdk.trace.id_generator import IdGenerator

    class Ids(IdGenerator):
        run = ""
        path = ""

        def generate_trace_id(self) -> int:
            return int(self.run, 16)

        def generate_span_id(self) -> int:
            return int(sha256(f"{self.run}/{self.path}".encode()).hexdigest()[:16], 16)

    return Ids()


def _call(effect: EffectRecord) -> Mapping[str, Any]:
    request, reply = effect.request, effect.reply
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": request["model"],
        "gen_ai.request.temperature": request["temperature"],
        "gen_ai.request.max_tokens": request["max_tokens"],
        "gen_ai.response.model": reply["served_by"],
        "gen_ai.response.finish_reasons": tuple(reply["finish_reasons"]),
        "gen_ai.usage.input_tokens": reply["usage"]["prompt"],
        "gen_ai.usage.output_tokens": reply["usage"]["completion"],
        "sharp.purpose": request["purpose"],
    }


def _evaluation(effect: EffectRecord) -> Mapping[str, Any]:
    failure = effect.reply.get("failure")
    numbers = {f"sharp.{name}": value for name, value in metrics_of(effect)}
    return {**numbers, **({"error.type": failure["kind"]} if failure else {})}


def _nanoseconds(seconds: float) -> int:
    return round(1e9 * seconds)
