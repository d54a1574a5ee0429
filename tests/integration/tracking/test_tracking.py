"""The course of a real run at real trackers: each effect once, whoever works on the run, and no tracker can harm it."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from mlflow import MlflowClient
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import sharp.plugins
from hpc.journal import EffectRecord, read_run
from sharp.tracking import TrackedRun, Tracker, follow, following
from sharp.tracking.opentelemetry_tracker import OpenTelemetryTracker
from tests.helpers.cli.sharp_command import Sharp, settings

SMALL = settings(
    genesis__candidates="2", models__judges="[rule-based]", synthesis__max_rounds="1", budget__calls="4"
)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that a budget has stopped after four calls."""
    folder = tmp_path_factory.mktemp("tracked")
    done = Sharp(folder)("run", "advection", "--run-dir", folder / "run", *SMALL)
    assert done.returncode == 6, done.stderr
    return folder / "run"


@pytest.fixture
def run(stopped: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stopped, tmp_path / "run"))


def command(run: Path, monkeypatch: pytest.MonkeyPatch) -> Sharp:
    store = {"MLFLOW_TRACKING_URI": f"file:{run.parent / 'store'}", "MLFLOW_ALLOW_FILE_STORE": "true"}
    for name, value in {**store, "WANDB_MODE": "offline"}.items():
        monkeypatch.setenv(name, value)
    return Sharp(run.parent, {**store, "WANDB_MODE": "offline"})


def effects(run: Path) -> list[EffectRecord]:
    return sorted(read_run(run).effects.values(), key=lambda effect: effect.seq)


def sent(run: Path, exporter: SpanExporter) -> list[str]:
    """Follow a run that nobody works on; return what went wrong."""
    said: list[str] = []
    follow(run, {"traces": OpenTelemetryTracker(exporter)}, lambda _: True, said.append)
    return said


def test_mlflow_has_each_effect_once_though_the_run_was_stopped_and_resumed(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharp = command(run, monkeypatch)
    sharp.ok("track", run, "--to", "mlflow")
    sharp.ok("resume", run, "--budget", "calls=100", "--track", "mlflow")
    sharp.ok("track", run, "--to", "mlflow")
    client = MlflowClient()
    (found,) = client.search_runs([client.get_experiment_by_name("pde-sharp").experiment_id])
    assert found.info.status == "FINISHED"
    assert found.data.params["genesis.candidates"] == "2"
    recorded = effects(run)
    calls = [effect for effect in recorded if effect.kind == "chat"]
    assert len(calls) > 4
    history = client.get_metric_history(found.info.run_id, "call.prompt_tokens")
    assert [(each.step, each.value) for each in history] == [
        (effect.seq, effect.reply["usage"]["prompt"]) for effect in calls
    ]
    scored = [
        e
        for e in recorded
        if e.kind == "evaluate" and e.request["split"] == "validation" and e.reply["scores"]
    ]
    errors = client.get_metric_history(found.info.run_id, "validation.nrmse")
    assert [each.value for each in errors] == [effect.reply["scores"]["nrmse"] for effect in scored]
    assert {each.path for each in client.list_artifacts(found.info.run_id)} == {"report.html", "solver.py"}


def test_a_trace_has_a_span_for_each_effect_with_its_times_and_tokens(run: Path) -> None:
    exporter = InMemorySpanExporter()
    assert sent(run, exporter) == []
    spans = exporter.get_finished_spans()
    recorded = effects(run)
    assert [span.attributes["sharp.path"] for span in spans] == [effect.path for effect in recorded]
    assert len({span.context.trace_id for span in spans}) == 1
    for span, effect in zip(spans, recorded, strict=True):
        assert (span.end_time - span.start_time) / 1e9 == pytest.approx(effect.meta["seconds"], abs=1e-6)
    call = spans[0]
    assert call.name == "chat rule-based"
    assert call.attributes["gen_ai.usage.input_tokens"] == recorded[0].reply["usage"]["prompt"]
    assert not any("You are" in str(value) for span in spans for value in span.attributes.values())


def test_nothing_is_sent_twice_and_what_was_not_taken_is_sent_later(run: Path) -> None:
    class Refusing(InMemorySpanExporter):
        def export(self, spans: Sequence[object]) -> SpanExportResult:
            if len(self.get_finished_spans()) == 2:
                return SpanExportResult.FAILURE
            return super().export(spans)

    first, second, third = Refusing(), InMemorySpanExporter(), InMemorySpanExporter()
    (said,) = sent(run, first)
    assert "was not taken; the run goes on without it" in said
    assert sent(run, second) == sent(run, third) == []
    paths = [
        [s.attributes["sharp.path"] for s in each.get_finished_spans()] for each in (first, second, third)
    ]
    assert paths == [[e.path for e in effects(run)[:2]], [e.path for e in effects(run)[2:]], []]
    shutil.rmtree(run / "tracking")
    again = InMemorySpanExporter()
    sent(run, again)
    ids = [span.context.span_id for each in (first, second) for span in each.get_finished_spans()]
    assert ids == [span.context.span_id for span in again.get_finished_spans()]


class Broken(Tracker):
    """Fails in one method, or never comes back from it."""

    def __init__(self, where: str, stuck: threading.Event | None = None) -> None:
        self.where, self.stuck = where, stuck

    def _fail(self, where: str) -> None:
        if where == self.where and self.stuck is not None:
            self.stuck.wait()
        elif where == self.where:
            raise RuntimeError(f"no {where}")

    def begin(self, run: TrackedRun, known: str | None) -> str:
        self._fail("begin")
        return "x"

    def send(self, effect: EffectRecord) -> None:
        self._fail("send")

    def end(self, files: Sequence[Path], *, finished: bool) -> None:
        self._fail("end")


@pytest.mark.parametrize("where", ["begin", "send", "end", "stuck"])
def test_no_tracker_can_fail_a_run_or_hold_it_up(
    run: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = threading.Event() if where == "stuck" else None
    broken = Broken("send" if stuck else where, stuck)
    monkeypatch.setattr(following, "make_tracker", lambda _: broken)
    if stuck:
        monkeypatch.setattr(following, "PATIENCE_S", 0.2)
    done = command(run, monkeypatch)("resume", run, "--budget", "calls=100", "--track", "broken", "--json")
    if stuck:
        stuck.set()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["best"]
    assert ("not everything is sent" if stuck else f"RuntimeError: no {where}") in done.stderr


def test_weights_and_biases_keeps_a_run_offline(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sharp = command(run, monkeypatch)
    assert sharp.process("track", run, "--to", "wandb").returncode == 0
    (kept,) = (run / "tracking" / "wandb").glob("offline-run-*/*.wandb")
    assert b"call.prompt_tokens" in kept.read_bytes()
    assert json.loads((run / "tracking" / "wandb.json").read_text())["sent"] == len(effects(run))


def test_an_unknown_tracker_is_refused_before_anything_is_done(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (run / "journal.jsonl").read_bytes()
    done = command(run, monkeypatch)("resume", run, "--track", "mlflov")
    assert done.returncode == 2
    assert "did you mean 'mlflow'?" in done.stderr
    assert (run / "journal.jsonl").read_bytes() == before
    assert "mlflow" in sharp.plugins.plugin_names("sharp.trackers")
