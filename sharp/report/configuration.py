"""The problem, and everything that was decided before the run began."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from sharp.config import RunConfig, SynthesisOptions
from sharp.document import Block, Code, Details, Facts, Heading, Paragraph, Section, Table
from sharp.document.text import MISSING, count_text, duration_text, error_text, plural
from sharp.evaluation.protocol import Evaluation
from sharp.llm.context import count_tokens, strip_droppable_markers
from sharp.llm.protocol import Message
from sharp.problems import render_description
from sharp.problems.interface_text import signature
from sharp.reference.datasets import make_splits
from sharp.report.report_data import ReportData
from sharp.runs.directory import RunDirectory

DATA_KINDS = {
    "pdebench": "generated with the scheme of the published data set, its errors included",
    "reference": "generated: self-converged solutions",
    "imported": "a file that was brought along",
}


def setting(evidence: ReportData) -> Section:
    """Return the problem and the configuration."""
    run = evidence.run
    blocks: list[Block] = [
        Facts(tuple(_problem(run))),
        Details(
            "The problem as the models were told",
            (Code(render_description(run.problem), "markdown", wrap=True),),
        ),
        Heading("Models"),
        Table(("model", "roles", "what it is"), tuple(_models(run))),
        Heading("Data and limits"),
        Facts(tuple(_data(run))),
        Heading("Configuration"),
        Facts(tuple(_options(run.config))),
        *_prior(run),
    ]
    scored = evidence.state.test or evidence.evaluation_of(evidence.state.best)
    if scored is not None:
        blocks += [Heading("Where and how the winner was run"), Facts(tuple(_environment(scored)))]
    return Section("setting", "Problem and configuration", tuple(blocks))


def limits_text(run: RunDirectory) -> str:
    """Return the limits of one run of a program."""
    options, own = run.config.evaluation, run.problem.limits
    memory, wall = options.memory_mb or own.memory_mb, options.wall_s or own.wall_s
    return f"{duration_text(wall)}, {memory} MB, {plural(options.threads, 'thread')}"


def _problem(run: RunDirectory) -> Iterator[tuple[str, str]]:
    problem = run.problem
    yield "Problem", f"{problem.title} ({problem.label})"
    yield ("Equation" + "s" * (len(problem.equations) > 1)), "\n".join(problem.specification.equations)
    ranges = [f"{name} from {low:g} to {high:g}" for name, (low, high) in problem.bounds.items()]
    if problem.time is not None:
        ranges.append(f"{problem.time_name} from {problem.time[0]:g} to {problem.time[1]:g}")
    yield "Domain", ", ".join(ranges)
    yield "Parameters", ", ".join(f"{k} = {v:.6g}" for k, v in problem.parameters.items()) or "none"
    sizes = " × ".join(str(count) for count in problem.grid.points.values())
    times = f", {problem.grid.times} output times" if problem.grid.times else ""
    yield "Grid", f"{sizes} {problem.grid.kind}{times}"
    yield "Solver", signature(problem)
    if problem.published is not None:
        yield "Best published error", f"{error_text(problem.published.nrmse)} ({problem.published.source})"


def _models(run: RunDirectory) -> Iterator[tuple[str, str, str]]:
    for name, played in _roles(run.config).items():
        yield name, ", ".join(played), run.cards[name].description if name in run.cards else MISSING


def _roles(config: RunConfig) -> Mapping[str, list[str]]:
    """Return what each model that the method asks is asked for."""
    models, roles = config.models, defaultdict(list)
    if config.method != "pde-sharp":
        roles[models.generator].append("writes and debugs all programs")
        if config.method == "cepo":
            roles[config.cepo.rating_model or models.generator].append("rates answers")
        return roles
    roles[models.analyst].append("analyst")
    if config.analysis.written:
        roles[models.writer].append("writer of the analysis")
    roles[models.generator].append("generator")
    for number, name in enumerate(models.judges, start=1):
        roles[name].append(f"judge {number}")
    roles[models.reporter].append("reporter")
    return roles


def _data(run: RunDirectory) -> Iterator[tuple[str, str]]:
    data, options = run.manifest["data"], run.config.evaluation
    splits = make_splits(data["samples"], options.test, options.validation, options.smoke)
    yield "Data set", f"{data['label']}: {DATA_KINDS.get(data['kind'], data['kind'])}"
    yield (
        "Samples",
        f"{data['samples']} in all; test {_range(splits.test)}, validation {_range(splits.validation)}",
    )
    shortened = ", the first tenth of the output times" if run.problem.time else ""
    yield "Smoke runs", f"samples {_range(splits.smoke)}{shortened}"
    yield "Limits of one run", limits_text(run)


def _options(config: RunConfig) -> Iterator[tuple[str, str]]:
    options, judged = config.evaluation, config.method == "pde-sharp"
    yield "Method", config.method
    yield "Seed", f"{config.seed} (data: {options.data_seed})"
    yield f"Feedback to {'judges' if judged else 'models'}", " and ".join(config.feedback.metrics)
    yield from _stages(config) if judged else _other_method(config)
    yield "64-bit mode of JAX", {None: "as written in each program", True: "on", False: "off"}[options.x64]


def _stages(config: RunConfig) -> Iterator[tuple[str, str]]:
    yield "Prompts of the analysis", config.analysis.prompting
    yield "Candidates", count_text(config.genesis.candidates)
    yield from _tournament(config.synthesis)
    yield _repairs(config)


def _other_method(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Yield the options of a method without judges: FunSearch and AIDE say themselves how many programs they write."""
    if config.method not in ("funsearch", "aide"):
        yield "Candidates", count_text(config.genesis.candidates)
    for name, value in config.method_options or config.options.items():
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        yield name.replace("_", " ").capitalize(), MISSING if value is None else text
    if config.method != "aide":
        yield _repairs(config)


def _repairs(config: RunConfig) -> tuple[str, str]:
    return "Repairs", f"at most {config.synthesis.repairs} for one program"


def _prior(run: RunDirectory) -> Iterator[Block]:
    if not run.prior:
        return
    told = strip_droppable_markers(run.prior)
    tokens = count_tokens((Message("user", told),))
    yield Paragraph(
        f"Whoever wrote the programs was told of an earlier run, {run.config.genesis.prior_run}: about "
        f"{count_text(tokens)} tokens in each of these calls, which the counts of tokens include."
    )
    yield Details("What they were told of it", (Code(told, "markdown", wrap=True),))


def _tournament(options: SynthesisOptions) -> Iterator[tuple[str, str]]:
    if options.mode == "best-of-n":
        yield "Tournament", "none: every candidate is run and the best is taken"
        return
    rounds, cycles = plural(options.max_rounds, "round"), plural(options.max_cycles, "cycle")
    yield "Criteria of judges", options.criteria
    yield (
        "Tournament",
        f"at most {rounds} in a cycle and {cycles}; another cycle follows: {options.next_cycle}",
    )
    stale = f"{plural(options.patience, 'round')} (later cycles: {options.later_patience})"
    yield "Saturation", f"after {stale} with a gain below {options.min_relative_gain:.3g}"


def _environment(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    yield "First call", duration_text(evaluation.run_time_s)
    yield "Further calls", steady_text(evaluation.repeat_times_s)
    yield "Precision of the result", evaluation.dtype or MISSING
    yield from ((name, str(value)) for name, value in evaluation.environment.items() if value is not None)


def steady_text(times_s: Sequence[float]) -> str:
    """Return the run time after the first call, which may have compiled: median and spread."""
    if not times_s:
        return "not timed"
    low, high = (duration_text(bound) for bound in (min(times_s), max(times_s)))
    return f"{duration_text(median(times_s))} (median of {len(times_s)}, from {low} to {high})"


def _range(samples: range) -> str:
    return f"{samples.start}–{samples.stop - 1}" if len(samples) > 1 else str(samples.start)
