"""The configuration of a run: every option of the paper is a key here, with its section and default.

Sections are those of the paper (arXiv 2511.00183). What it leaves open, and what is done here, is listed in
`docs/reference/configuration.md`, which is generated from this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hpc.slurm import Minutes
from sharp.evaluation import Target, checked_launcher
from sharp.llm import checked_url

Method = Literal[
    "pde-sharp", "codepde", "codepde-refine", "cot-reflection", "moa", "cepo", "funsearch", "aide"
]
"""The built-in methods that a run can carry out; each is a file of `sharp/methods`."""

Objective = Literal["error", "front", "time"]
"""What is wanted of a solver: a small error, both a small error and a short time, or a short time at a given error."""

RetryableFailure = Literal["timeout", "memory", "import", "exception"]
"""Kinds of a program's failure that can be the machine's doing."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Server(_Section):
    """How to reach the server of a model; overrides what its card says."""

    base_url: str | None = Field(None, description="base URL of an OpenAI-compatible server, ending in /v1")
    served_name: str | None = Field(None, description="the model's name at that server")
    api_key_env: str | None = Field(
        None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="environment variable that holds the key; keys never stand in files",
    )

    @field_validator("base_url")
    @classmethod
    def _is_plain_url(cls, url: str | None) -> str | None:
        return url if url is None else checked_url(url)


class Connections(_Section):
    """Where models are served, and how patiently they are called."""

    servers: Mapping[str, Server] = Field(
        default_factory=dict, description="per model card: where its server is"
    )
    deadline_s: float = Field(1800, gt=0, description="seconds for one answer, all retries included")
    attempt_timeout_s: float = Field(
        600, gt=0, description="seconds without a word from the server after which an attempt is given up"
    )
    concurrency: int = Field(16, ge=1, description="calls in flight per model")

    @property
    def patience(self) -> dict[str, Any]:
        """How long a model is waited for, and how many calls are in flight: keywords of `make_backend`."""
        return self.model_dump(include={"deadline_s", "attempt_timeout_s", "concurrency"})


class Models(Connections):
    """Which model plays which role (paper section 4.1); names of model cards."""

    analyst: str = Field("rule-based", description="model of the analysis stage")
    generator: str = Field("rule-based", description="model that writes the candidates")
    generators: tuple[str, ...] = Field(
        (),
        max_length=9,
        description="several models that write the candidates, in place of `models.generator`",
    )
    allocation: Literal["in-turn", "thompson"] = Field(
        "in-turn",
        description="which of `models.generators` writes the next program of a search (codepde-refine, funsearch, "
        "aide): each in turn, or the more often the better its programs were (Thompson "
        "sampling, docs/explanations/methods.md); "
        "what is written before any program was run is written in turn",
    )
    judges: tuple[str, ...] = Field(
        ("rule-based", "rule-based", "rule-based"),
        min_length=1,
        max_length=9,
        description="one model for each judge; the paper uses three, any mix, the same model thrice is allowed",
    )
    reporter: str = Field(
        "rule-based", description="model that writes the report's prose; its numbers come from the run"
    )
    writer: str = Field(
        "rule-based", description="model that writes the prompts of the analysis where it is asked to (B.2.1)"
    )
    override: Literal["rule-based"] | None = Field(
        None,
        description="the rule-based model answers for every model, under that model's name and at no price: for "
        "trying a study without models; reports say so",
    )
    replay_from: Path | None = Field(
        None,
        description="an earlier run whose answers, by place, stand in for all models; "
        "what it does not hold is refused",
    )

    @field_validator("generators")
    @classmethod
    def _are_distinct(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
        if twice is not None:
            raise ValueError(f"'{twice}' is given twice; expected distinct models")
        return names

    @property
    def authors(self) -> tuple[str, ...]:
        """The models that write programs."""
        return self.generators or (self.generator,)


class SamplingParams(_Section):
    """How replies are drawn in one role (the paper gives no values); None takes the model card's."""

    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature")
    max_tokens: int | None = Field(None, ge=16, description="tokens of one answer at most")


class SamplingByRole(_Section):
    """Sampling for each role."""

    analysis: SamplingParams = SamplingParams()
    genesis: SamplingParams = SamplingParams()
    judge: SamplingParams = SamplingParams()
    search: SamplingParams = SamplingParams()
    debug: SamplingParams = SamplingParams()
    reporter: SamplingParams = SamplingParams()


class SamplingByAgent(_Section):
    """Sampling for each agent of a team; without a temperature nothing is left to chance."""

    planner: SamplingParams = SamplingParams()
    parser: SamplingParams = SamplingParams()
    solver: SamplingParams = SamplingParams()
    orchestrator: SamplingParams = SamplingParams()
    programmer: SamplingParams = SamplingParams()


class AnalysisOptions(_Section):
    """Stage 1 (paper section 3.1)."""

    prompting: Literal["multi-step", "merged", "written-multi", "written-single"] = Field(
        "multi-step",
        description="five prompts in one conversation, or a single one; our own, or written by models.writer (ablation "
        "B.2.1)",
    )
    stability: bool = Field(True, description="derive symbolic time-step bounds (ablation B.2.2 omits it)")
    per_candidate: bool = Field(False, description="analyse once for each candidate instead of once a run")

    @model_validator(mode="after")
    def _written_prompts_are_the_writers(self) -> AnalysisOptions:
        if self.written and not self.stability:
            raise ValueError(
                f"`stability: false` leaves one of our prompts out; with prompting '{self.prompting}' a model writes "
                "them"
            )
        return self

    @property
    def written(self) -> bool:
        """Whether a model writes the prompts."""
        return self.prompting in ("written-multi", "written-single")

    @property
    def single(self) -> bool:
        """Whether one prompt asks for everything."""
        return self.prompting in ("merged", "written-single")


class GenesisOptions(_Section):
    """Stage 2 (paper section 3.2)."""

    candidates: int = Field(32, ge=1, le=999, description="programs written, none executed (B.2.4 varies it)")
    samples_per_call: int = Field(
        1, ge=1, le=128, description="programs asked for in one call (`n` of the chat protocol)"
    )
    replay_from: Path | None = Field(
        None,
        description="an earlier run whose analysis and genesis answers serve wherever the same is asked, as the same "
        "programs do for every jury of B.2.5",
    )
    replay_repairs: bool = Field(
        False,
        description="its answers to the debugging of programs that all are run (best of N) serve in the same way",
    )
    prior_run: Path | None = Field(
        None,
        description="an earlier run on the same problem and data; what it tried and found stands in the prompts that "
        "ask for programs (section 3)",
    )
    start: tuple[Path, ...] = Field(
        (),
        description="solvers of one's own to start from (`--start`): they are candidates like the others, run first, "
        "and shown to those who write programs",
    )
    two_step: bool = Field(
        True, description="derive first, code second on the analytical and transformed branches (section 3.2)"
    )
    assignments: Literal["none", "plan"] = Field(
        "none",
        description="whether each candidate's author is asked for a method of its own: a discretisation, an "
        "integrator, a transformation and a library that fit the problem, each combination "
        "once (docs/explanations/methods.md)",
    )
    smoke_run: bool = Field(
        False,
        description="run every candidate on the smoke samples before judging; judges are told what came of it, and "
        "nothing is dropped",
    )

    @model_validator(mode="after")
    def _assigns_one_by_one(self) -> GenesisOptions:
        if self.assignments == "plan" and self.samples_per_call > 1:
            raise ValueError(
                "genesis.assignments 'plan' gives each program a prompt of its own; expected samples_per_call 1, found "
                f"{self.samples_per_call}"
            )
        return self


class SynthesisOptions(_Section):
    """Stage 3 (paper section 3.3)."""

    mode: Literal["tournament", "best-of-n"] = Field(
        "tournament", description="judged tournament, or run every candidate and take the best (B.2.5)"
    )
    execute: Literal["always", "never"] = Field(
        "always",
        description="run what judges choose; or never run anything: the first choice of most judges wins, unverified",
    )
    criteria: Literal["dynamic", "fixed", "self-generated"] = Field(
        "dynamic", description="how judges get their criteria (B.2.5)"
    )
    shortlist: int | None = Field(
        None, ge=1, description="length of a short list; by default half of the pool, at least 3"
    )
    duplicates: Literal["shown", "layout", "names"] = Field(
        "layout",
        description="which equal programs of the pool are shown to judges once, with the names of the others: none, "
        "those that differ in comments and layout alone, those that differ in names and the order of imports as well; "
        "with `names`, variants that differ in constants alone are marked",
    )
    distinct_nominees: bool = Field(
        False, description="a judge whose nominee is taken gets the next of its list"
    )
    max_rounds: int = Field(4, ge=1, description="rounds in a cycle, the nominees' run being the first")
    max_cycles: int = Field(3, ge=1, description="judging cycles at most")
    next_cycle: Literal["if-not-saturated", "never", "always", "fixed"] = Field(
        "if-not-saturated",
        description="when another cycle follows: after a cycle that hit its round limit without saturating; never; "
        "after every cycle; after every cycle, and each cycle plays all its rounds (B.2.7)",
    )
    min_relative_gain: float = Field(
        0.01, ge=0, lt=1, description="relative gain below which a round counts as stale"
    )
    patience: int = Field(2, ge=1, description="stale rounds that saturate the first cycle")
    later_patience: int = Field(1, ge=1, description="stale rounds that saturate a later cycle")
    repairs: int = Field(4, ge=0, description="debugging attempts for one program")
    patch_retries: int = Field(2, ge=0, description="times a judge is asked again for a patch that fails")
    pool: Literal["shortlisted", "all"] = Field(
        "shortlisted",
        description="originals shown again in later cycles: the union of short lists, or all",
    )
    shuffle: bool = Field(True, description="seeded order of candidates for each judge and cycle")


class FeedbackOptions(_Section):
    """What judges learn from a run (paper section 3.3, appendix D.1)."""

    metrics: tuple[str, ...] = Field(
        ("nrmse",),
        min_length=1,
        description="nrmse (against the target, on validation samples), residual (no data), none (pass or fail), and "
        "any measure that `sharp metrics` lists for the problem (B.2.6); nrmse ranks programs if it is among them, "
        "else the first",
    )
    weights: Mapping[str, float] = Field(
        default_factory=dict,
        description="per kind: its weight in a combined score, which then ranks programs (B.2.6)",
    )
    run_times: Literal["classes", "measured"] = Field(
        "classes",
        description="how judges are told times and memory: by coarse classes, so that what they are told does not "
        "depend on how busy a machine is, or as measured; an objective with time in it has them measured",
    )
    reveal_data_error: bool = Field(
        False, description="with `target: data`: tell judges the data set's own distance from the reference"
    )

    @model_validator(mode="after")
    def _none_stands_alone(self) -> FeedbackOptions:
        if "none" in self.metrics and len(self.metrics) > 1:
            raise ValueError("feedback kind 'none' cannot be combined with others")
        return self

    @model_validator(mode="after")
    def _kinds_are_distinct_and_weights_theirs(self) -> FeedbackOptions:
        twice = [kind for index, kind in enumerate(self.metrics) if kind in self.metrics[:index]]
        if twice:
            raise ValueError(f"feedback kind '{twice[0]}' is given twice")
        for kind, weight in self.weights.items():
            if kind not in self.metrics or kind == "none":
                raise ValueError(f"weight of '{kind}': expected one of the kinds {', '.join(self.metrics)}")
            if not 0 < weight < inf:
                raise ValueError(f"weight of '{kind}': expected a positive number, found {weight:g}")
        return self


class EvaluationOptions(_Section):
    """Data and limits of evaluations (paper section 4.1)."""

    data: Path | None = Field(
        None,
        description="data file (PDEBench layout); by default one is generated once and kept in the data folder",
    )
    data_kind: Literal["pdebench", "reference", "none"] | None = Field(
        None,
        description="kind of generated data: the published generator's scheme, or self-converged; by default the first "
        "for the families that have such a generator, the second for all other problems; with none inputs are drawn "
        "and no solutions: programs are ranked by residual, agreement and self-convergence "
        "(docs/reference/problems.md)",
    )
    coarsen: int = Field(
        1,
        ge=1,
        description="divide the points of the problem's output grid along each axis by this, for quick trials on "
        "generated data (PDEBench's reduced resolution)",
    )
    data_seed: int = Field(2022, ge=0, description="seed of generated initial conditions")
    validation: int = Field(100, ge=1, description="samples that feedback comes from: the last of the file")
    test: int = Field(100, ge=1, description="samples scored once at the end: the first of the file")
    smoke: int = Field(2, ge=1, description="validation samples of the short run that comes first")
    wall_s: float | None = Field(
        None, gt=0, description="seconds for one run; by default the problem's limit"
    )
    memory_mb: int | None = Field(
        None, gt=0, description="megabytes for one run; by default the problem's limit"
    )
    threads: int = Field(1, ge=1, description="threads for a candidate's linear algebra")
    workers: int = Field(2, ge=1, description="evaluations at a time on this machine")
    shards: int = Field(1, ge=1, description="processes that share the samples of one validation or test run")
    mpi: str | None = Field(
        None,
        description="launcher for shards over MPI ranks, such as `mpiexec -n {shards}` or `srun -K -n {shards}`; by "
        "default processes of this machine",
    )
    timing_repeats: int = Field(
        3,
        ge=1,
        description="solver calls in the winner's test run, and in validation runs where the objective has time in it: "
        "the first may compile, the others give the steady run time",
    )
    early_stop_factor: float | None = Field(
        None,
        ge=1,
        description="stop a validation run, unrepaired, once its samples prove an nRMSE above this factor times the "
        "best before the round; by default every run goes to its end",
    )
    cache: Literal["use", "refresh", "off"] = Field(
        "use",
        description="results of earlier runs, by content: use them, measure anew and replace them, or leave them alone",
    )
    sandbox: Literal["auto", "bubblewrap", "landlock", "apptainer", "rlimits"] = Field(
        "auto", description="how programs are confined; by default as tightly as the machine allows"
    )
    require_sandbox: bool = Field(
        False, description="refuse to run programs where they cannot be kept from other files and the network"
    )
    sandbox_image: Path | None = Field(None, description="image that the apptainer sandbox runs programs in")
    x64: bool | None = Field(None, description="JAX 64-bit mode: on, off, or as written in the program")
    x64_check: bool = Field(
        True,
        description="score the finalists (the winner and each judge's best, four at most) once more in 64-bit mode on "
        "validation data",
    )
    convergence_check: bool = Field(
        True, description="measure the winner's order of accuracy on smooth solutions"
    )

    @model_validator(mode="after")
    def _has_data_or_none(self) -> EvaluationOptions:
        if self.data is not None and self.data_kind == "none":
            raise ValueError("`data_kind: none` draws inputs of its own; found `data` as well")
        return self

    @model_validator(mode="after")
    def _makes_coarse_data(self) -> EvaluationOptions:
        if self.data is not None and self.coarsen > 1:
            raise ValueError(
                "`coarsen` is for generated data: a file has the grid that it has; found `data` as well"
            )
        return self

    @field_validator("mpi")
    @classmethod
    def _launches(cls, command: str | None) -> str | None:
        return command if command is None else checked_launcher(command)


class ContextOptions(_Section):
    """What happens where a model's context does not hold what it is to read."""

    policy: Literal["error", "drop-code", "summaries", "sittings"] = Field(
        "drop-code",
        description="for candidates that a judge's context does not hold: stop with an error; leave out different ones "
        "for each judge, so that together all are read; show a summary in their place (one call of models.analyst a "
        "candidate); or let each judge read all in several conversations, and decide among those that it short-listed. "
        "Whatever outgrows a context later (code that no judge short-listed, quoted answers) makes way with a notice, "
        "but under `error`",
    )


class RefineOptions(_Section):
    """CodePDE-R: the best of CodePDE's programs refined (paper section 4.1; arXiv 2505.08783)."""

    parents: tuple[int, ...] = Field(
        (3, 4, 5),
        min_length=1,
        description="numbers of best programs shown together, one batch of calls for each",
    )
    generations: int = Field(4, ge=1, description="programs written for each of these numbers")


class CotReflectionOptions(_Section):
    """OptiLLM's chain of thought with reflection, in place of the call that writes a program."""

    temperature: float = Field(0.6, ge=0, le=2, description="sampling temperature")
    max_tokens: int = Field(4096, ge=16, description="tokens of one answer at most")


class MoaOptions(_Section):
    """OptiLLM's mixture of agents, in place of the call that writes a program."""

    proposals: int = Field(3, ge=2, le=16, description="answers that are compared")
    temperature: float = Field(1.0, ge=0, le=2, description="sampling temperature of the proposals")
    max_tokens: int = Field(4096, ge=16, description="tokens of a proposal at most")
    critique_temperature: float = Field(0.1, ge=0, le=2, description="sampling temperature of the critique")
    critique_tokens: int = Field(512, ge=16, description="tokens of the critique at most")
    synthesis_temperature: float = Field(0.1, ge=0, le=2, description="sampling temperature of the synthesis")
    synthesis_tokens: int = Field(8192, ge=16, description="tokens of the synthesis at most")


class CepoOptions(_Section):
    """OptiLLM's CePO as of 2025, in place of the call that writes a program."""

    best_of: int = Field(3, ge=1, le=16, description="answers of which the best-rated is taken")
    plans: int = Field(3, ge=1, le=16, description="carried-out plans that an answer rests on")
    attempts: int = Field(6, ge=1, le=32, description="attempts at those plans, at most")
    plan_temperature: float = Field(0.55, ge=0, le=2, description="sampling temperature of plans")
    execute_temperature: float = Field(
        0.25, ge=0, le=2, description="sampling temperature of carrying one out"
    )
    refine_temperature: float = Field(0.1, ge=0, le=2, description="sampling temperature of the comparison")
    final_temperature: float = Field(0.0, ge=0, le=2, description="sampling temperature of the answer")
    rating_temperature: float = Field(0.1, ge=0, le=2, description="sampling temperature of ratings")
    max_tokens: int = Field(4096, ge=16, description="tokens of one answer at most")
    rating: Literal["absolute", "pairwise"] = Field(
        "absolute",
        description="each answer is rated 0 or 1 and the first best is taken, or every ordered pair is compared",
    )
    rating_model: str | None = Field(None, description="model that rates; by default the generator")

    @model_validator(mode="after")
    def _attempts_suffice(self) -> CepoOptions:
        if self.attempts < self.plans:
            raise ValueError(f"attempts ({self.attempts}) must be at least plans ({self.plans})")
        return self


class FunSearchOptions(_Section):
    """FunSearch with CodePDE's scores (paper section 4.1; CodePDE's variant of DeepMind's programs database)."""

    iterations: int = Field(32, ge=1, description="programs written, one after the other")
    initial: int = Field(12, ge=1, le=999, description="CodePDE samples that the islands begin with")
    islands: int = Field(4, ge=1, description="populations that do not mix but at resets")
    programs_per_prompt: int = Field(2, ge=1, description="programs shown in a prompt, from bad to good")
    temperature: float = Field(0.7, ge=0, le=2, description="sampling temperature of programs")
    cluster_temperature: float = Field(
        0.1, gt=0, description="initial temperature of the choice of a cluster"
    )
    cluster_period: int = Field(
        5, ge=1, description="programs of an island after which that temperature starts again"
    )
    reset_every: int = Field(
        16, ge=1, description="iterations after which the worse half of the islands is founded anew"
    )
    reset_seconds: float | None = Field(
        None,
        gt=0,
        description="seconds after which that happens instead, such as the published 3600; counted from recorded run "
        "times, so that a resumed run decides alike",
    )


class AideOptions(_Section):
    """AIDE's tree search over programs (paper section 4.1; arXiv 2502.13138)."""

    steps: int = Field(96, ge=1, description="programs written, one after the other")
    drafts: int = Field(24, ge=1, description="programs written from nothing before any is improved")
    debug_probability: float = Field(
        0.9, ge=0, le=1, description="how often a failed leaf is debugged if there is one"
    )
    max_debug_depth: int = Field(5, ge=0, description="debugging steps one after the other, at most")
    temperature: float = Field(0.5, ge=0, le=2, description="sampling temperature of programs")


class RetryOptions(_Section):
    """Another try of an earlier run where programs failed in ways that a machine may be blamed for (`sharp retry`)."""

    of: Path | None = Field(
        None,
        description="the earlier run: its answers serve wherever the same is asked, except for these failures",
    )
    failed: tuple[RetryableFailure, ...] = Field(
        (), description="kinds of failure whose evaluations are made again"
    )

    @model_validator(mode="after")
    def _go_together(self) -> RetryOptions:
        if (self.of is None) != (not self.failed):
            raise ValueError("expected both `of`, a run, and `failed`, kinds of failure, or neither")
        return self


class BudgetOptions(_Section):
    """Limits that stop a run cleanly with a checkpoint; None sets no limit."""

    calls: int | None = Field(None, ge=0, description="language-model calls")
    tokens: int | None = Field(None, ge=0, description="prompt and completion tokens together")
    dollars: float | None = Field(None, ge=0, description="dollars by the model cards' prices")
    evaluations: int | None = Field(None, ge=0, description="validation runs")
    gpu_hours: float | None = Field(
        None, ge=0, description="GPU-hours of all jobs on the cluster, servers included; nothing elsewhere"
    )
    wall_time: Minutes | None = Field(
        None,
        description="time since the launch on a cluster, such as 12h or 2d; elsewhere time that the run was worked on",
    )
    jobs: int | None = Field(
        None, ge=0, description="jobs on the cluster, each element of an array counted; nothing elsewhere"
    )


class TeamOptions(_Section):
    """What a problem in words takes of a configuration where it is solved by a team (`sharp solve`)."""

    models: Connections = Connections()
    sampling: SamplingByAgent = SamplingByAgent()
    budget: BudgetOptions = BudgetOptions()


class RunConfig(_Section):
    """Everything that decides a run. Frozen into `run.yaml` with hashes of what it refers to."""

    problem: str = Field(description="id of a shipped problem or path of a specification")
    method: Annotated[
        Method | str,
        Field(
            description="PDE-SHARP, one of the methods that it is compared with (docs/explanations/methods.md), or "
            "one of a plug-in (docs/guides/extending.md)",
        ),
    ] = "pde-sharp"
    options: dict[str, str | float | bool] = Field({}, description="options of a method of a plug-in")
    seed: Annotated[int, Field(ge=0, description="seed of every random choice of the run")] = 0
    target: Annotated[
        Target,
        Field(
            description="what programs are ranked, stopped and chosen by: their error against the verified reference "
            "solution, or against the data set, as in the paper; where samples have no reference solution it is the "
            "data, and `run.yaml` says so"
        ),
    ] = "reference"
    objective: Annotated[
        Objective,
        Field(
            description="what the winner is: the program with the smallest error; the same, with the whole front of "
            "error against run time sought and exported; or the fastest with an error of at most `error_below`, the "
            "most accurate if none has"
        ),
    ] = "error"
    error_below: Annotated[
        float | None, Field(gt=0, description="the error that is enough, for `objective: time`")
    ] = None
    models: Models = Models()
    sampling: SamplingByRole = SamplingByRole()
    analysis: AnalysisOptions = AnalysisOptions()
    genesis: GenesisOptions = GenesisOptions()
    synthesis: SynthesisOptions = SynthesisOptions()
    feedback: FeedbackOptions = FeedbackOptions()
    evaluation: EvaluationOptions = EvaluationOptions()
    refine: RefineOptions = RefineOptions()
    cot_reflection: CotReflectionOptions = CotReflectionOptions()
    moa: MoaOptions = MoaOptions()
    cepo: CepoOptions = CepoOptions()
    funsearch: FunSearchOptions = FunSearchOptions()
    aide: AideOptions = AideOptions()
    context: ContextOptions = ContextOptions()
    budget: BudgetOptions = BudgetOptions()
    retry: RetryOptions = RetryOptions()

    @model_validator(mode="after")
    def _has_an_analysis_and_judges_where_they_are_needed(self) -> RunConfig:
        usual = GenesisOptions()
        for key in ("prior_run", "assignments", "smoke_run"):
            if self.method != "pde-sharp" and getattr(self.genesis, key) != getattr(usual, key):
                raise ValueError(f"genesis.{key} goes with method pde-sharp, not with {self.method}")
        return self

    @model_validator(mode="after")
    def _objective_is_whole(self) -> RunConfig:
        if (self.objective == "time") != (self.error_below is not None):
            raise ValueError("expected both `objective: time` and `error_below`, or neither")
        if self.objective != "error" and "none" in self.feedback.metrics:
            raise ValueError(f"objective '{self.objective}' needs errors, and feedback 'none' tells of none")
        return self

    @model_validator(mode="after")
    def _has_judges_to_choose_by_reading(self) -> RunConfig:
        if self.reads_only and (self.method, self.synthesis.mode) != ("pde-sharp", "tournament"):
            raise ValueError(
                "synthesis.execute 'never' goes with method pde-sharp and synthesis.mode 'tournament', whose judges "
                "choose"
            )
        if self.reads_only and self.genesis.smoke_run:
            raise ValueError("synthesis.execute 'never' runs nothing; found genesis.smoke_run as well")
        return self

    @model_validator(mode="after")
    def _knows_errors_to_aim_at(self) -> RunConfig:
        if self.objective == "time" and self.evaluation.data_kind == "none":
            raise ValueError(
                "objective 'time' needs errors, and with evaluation.data_kind 'none' none are known"
            )
        return self

    @property
    def reads_only(self) -> bool:
        """Whether programs are chosen by reading alone, and nothing is run."""
        return self.synthesis.execute == "never"

    @property
    def n_judges(self) -> int:
        """Number of judges."""
        return len(self.models.judges)

    @property
    def sampled(self) -> int:
        """Number of programs that are written independently of each other, before any is run."""
        return self.funsearch.initial if self.method == "funsearch" else self.genesis.candidates

    @property
    def method_options(self) -> BaseModel | None:
        """The section of the method alone; None for PDE-SHARP, CodePDE and plug-ins."""
        if self.method not in get_args(Method):
            return None
        section = "refine" if self.method == "codepde-refine" else self.method.replace("-", "_")
        options: BaseModel | None = getattr(self, section, None)
        return options

    def shortlist_length(self, pool: int) -> int:
        """Return the length of a short list for a pool of this size: half of it, at least 3."""
        return min(pool, self.synthesis.shortlist or max(3, ceil(pool / 2)))


def to_plain(config: RunConfig) -> dict[str, Any]:
    """Return the configuration as plain YAML-able values."""
    return config.model_dump(mode="json")
