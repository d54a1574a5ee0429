"""What has to be known about a cluster to submit jobs to it: one profile a cluster, one section for each role."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from hpc.slurm.client import StatusSource
from hpc.slurm.parsing import parse_duration

RoleName = Literal["controller", "server", "evaluate"]
Option = str | int | bool

# What a job is, its time and its place come from the program; the rest of sbatch's options may be given freely.
RESERVED = frozenset(
    {
        *("array", "chdir", "comment", "dependency", "error", "job-name", "open-mode", "output", "parsable"),
        *("signal", "wait", "wrap"),
        *("account", "constraint", "cpus-per-task", "exclude", "exclusive", "mem", "partition", "qos"),
        *("reservation", "time"),
    }
)

NAME = r"[a-z0-9][a-z0-9._-]*"

_UNITS = {"min": 1, "h": 60, "d": 24 * 60}
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_SIZES = {"MB": 1, "GB": 1024, "TB": 1024 * 1024}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_OPTION = re.compile(r"[a-z][a-z-]*")
_INTERFACE = re.compile(r"interface:[A-Za-z0-9_.-]{1,15}")
_GPU_REQUEST = re.compile(r"[a-z-]+=[A-Za-z0-9:_.,-]*\{gpus\}[A-Za-z0-9:_.,-]*")


def parse_minutes(value: Any) -> int:
    """Return the minutes, rounded up, of a time such as 30min, 24h, 2d or 1-12:00:00; raises ValueError."""
    seconds = parse_duration(str(value))
    minutes = _quantity(str(value), _UNITS) if seconds is None else seconds / 60
    if not minutes:
        raise ValueError(f"expected a time such as 30min, 24h, 2d or 1-12:00:00, found {value!r}")
    return math.ceil(minutes)


def _seconds(value: Any) -> Any:
    seconds = _quantity(str(value), _SECONDS)
    if not seconds:
        raise ValueError(f"expected a time such as 30s, 10min or 2h, found {value!r}")
    return math.ceil(seconds)


def _seconds_or_none(value: Any) -> Any:
    return 0 if str(value) in ("0", "0s") else _seconds(value)


def _megabytes(value: Any) -> Any:
    size = _quantity(str(value), _SIZES)
    if not size:
        raise ValueError(f"expected a size such as 500MB or 16GB, found {value!r}")
    return math.ceil(size)


def _quantity(text: str, units: Mapping[str, int]) -> float | None:
    found = _QUANTITY.fullmatch(text.strip())
    return float(found[1]) * units[found[2]] if found and found[2] in units else None


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"expected one line of printable text, found {text!r}")
    return text


def _option(name: str) -> str:
    if not _OPTION.fullmatch(name):
        raise ValueError(f"expected an option of sbatch without its hyphens, such as nice, found {name!r}")
    return name


def _free_option(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{name} is set by the program, by a key of its own or by nothing")
    return _option(name)


def _address(text: str) -> str:
    if text not in ("hostname", "fqdn", "loopback") and not _INTERFACE.fullmatch(text):
        raise ValueError(
            f"expected hostname, fqdn, loopback or interface:NAME (interface:ib0), found {text!r}"
        )
    return text


def _command_line(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"expected a command line such as /shared/vllm/bin/vllm serve: {error}") from None
    if not words:
        raise ValueError("expected a command line such as /shared/vllm/bin/vllm serve, found none")
    return _one_line(text)


def _gpu_request(text: str) -> str:
    if not _GPU_REQUEST.fullmatch(text):
        raise ValueError(f"expected an option with {{gpus}} in it, such as gres=gpu:{{gpus}}, found {text!r}")
    return text


Line = Annotated[str, AfterValidator(_one_line)]
Minutes = Annotated[int, BeforeValidator(parse_minutes), PlainSerializer("{}min".format, when_used="json")]
Seconds = Annotated[int, BeforeValidator(_seconds), PlainSerializer("{}s".format, when_used="json")]
Wait = Annotated[int, BeforeValidator(_seconds_or_none), PlainSerializer("{}s".format, when_used="json")]
Megabytes = Annotated[int, BeforeValidator(_megabytes), PlainSerializer("{}MB".format, when_used="json")]
OptionName = Annotated[str, AfterValidator(_option)]
FreeOption = Annotated[str, AfterValidator(_free_option)]
GpuRequest = Annotated[str, AfterValidator(_gpu_request)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Role(_Section):
    """Where jobs of one kind run and what each asks for; `time` in minutes, `memory` in MB, GPUs of one job."""

    partition: Line | None = None
    account: Line | None = None
    qos: Line | None = None
    constraint: Line | None = None
    reservation: Line | None = None
    exclude: Line | None = None
    time: Minutes
    cpus: int = Field(1, ge=1)
    memory: Megabytes | None = None
    gpus: int = Field(0, ge=0)
    exclusive: bool = False
    directives: dict[FreeOption, Option] = Field(default_factory=dict)
    setup: tuple[Line, ...] = ()
    environment: dict[Variable, Line] = Field(default_factory=dict)


class Roles(_Section):
    """What jobs do: steer a run, serve a model, evaluate solvers."""

    controller: Role
    server: Role
    evaluate: Role


class Limits(_Section):
    """The cluster's limits; None: `max_array_size` is asked from the cluster, `max_jobs` is not watched."""

    max_array_size: int | None = Field(None, ge=2)
    max_jobs: int | None = Field(None, ge=1)


class SandboxChoice(_Section):
    """How programs of models are confined on the compute nodes; `image` is for Apptainer."""

    tier: Literal["auto", "bubblewrap", "landlock", "apptainer", "rlimits"] = "auto"
    require: bool = False
    image: Line | None = None


class Dispatch(_Section):
    """How evaluations are given to jobs of the role `evaluate`, which take them from a queue one after another.

    For every `pack` evaluations that wait a job is asked for, up to `parallel` at once. A job that finds nothing to do
    stays for `linger` seconds: 0 gives plain arrays, minutes give workers that wait for the next round.
    """

    pack: int = Field(1, ge=1)
    parallel: int = Field(8, ge=1)
    linger: Wait = 0


class Chain(_Section):
    """How controller jobs follow one another; times in seconds.

    Each leaves `margin` before the end of its time (None: five minutes, or a quarter of a shorter time). After
    `fruitless` in a row that recorded nothing new the campaign ends.
    """

    margin: Seconds | None = None
    fruitless: int = Field(5, ge=1)


class Serving(_Section):
    """How models are served by jobs of the role `server`; times in seconds.

    `command` is vLLM's, up to the weights, in its own environment. `replicas` of a model are jobs of their own.
    `address` says how clients reach a node. `lead` before the end of a job's time its successor is asked for;
    for the last `drain` it takes no more requests.
    """

    command: Annotated[str, AfterValidator(_command_line)] = "vllm serve"
    replicas: int = Field(1, ge=1)
    address: Annotated[str, AfterValidator(_address)] = "hostname"
    ready_limit: Seconds = 3600
    watch: Seconds = 30
    idle_shutdown: Seconds = 1800
    lead: Seconds = 1800
    drain: Seconds = 600


class Cluster(_Section):
    """One cluster. `scratch` may name variables of the compute node (`$TMPDIR`), nothing else is expanded.

    `setup` and `environment` hold for every role, before its own. `python` None stands for the interpreter that
    submits. `weights` maps model cards to folders on this cluster.
    """

    name: str = Field(pattern=f"^{NAME}$")
    description: Line = ""
    account: Line | None = None
    gpu_request: GpuRequest = "gres=gpu:{gpus}"
    skip_directives: tuple[OptionName, ...] = ()
    submit_from_compute: bool = True
    status: StatusSource = "auto"
    limits: Limits = Limits()
    python: Line | None = None
    scratch: Line | None = None
    setup: tuple[Line, ...] = ()
    environment: dict[Variable, Line] = Field(default_factory=dict)
    sandbox: SandboxChoice = SandboxChoice()
    weights: dict[str, Line] = Field(default_factory=dict)
    chain: Chain = Chain()
    dispatch: Dispatch = Dispatch()
    serving: Serving = Serving()
    roles: Roles

    @model_validator(mode="after")
    def _controllers_have_time(self) -> Self:
        if self.margin_s >= 60 * self.roles.controller.time:
            raise ValueError("chain.margin must be shorter than the time of the role controller")
        return self

    @property
    def margin_s(self) -> float:
        """Seconds before the end of its time at which a controller leaves."""
        longest = 15.0 * self.roles.controller.time
        return min(300.0, longest) if self.chain.margin is None else self.chain.margin

    def role(self, name: RoleName) -> Role:
        """Return a role with what holds for every role filled in."""
        role: Role = getattr(self.roles, name)
        common = {
            "account": role.account or self.account,
            "setup": (*self.setup, *role.setup),
            "environment": {**self.environment, **role.environment},
        }
        return role.model_copy(update=common)

    def options(self, name: RoleName) -> dict[str, Option]:
        """Return sbatch's long options for a role, without those that this cluster does not take."""
        role = self.role(name)
        request, _, value = self.gpu_request.partition("=")
        options: dict[str, Option | None] = {
            "partition": role.partition,
            "account": role.account,
            "qos": role.qos,
            "constraint": role.constraint,
            "reservation": role.reservation,
            "exclude": role.exclude,
            "time": role.time,
            "ntasks": 1,
            "cpus-per-task": role.cpus,
            "mem": None if role.memory is None else f"{role.memory}M",
            request: value.format(gpus=role.gpus) if role.gpus else None,
            "exclusive": role.exclusive,
            **role.directives,
        }
        return self.accepted({option: value for option, value in options.items() if value is not None})

    def accepted(self, options: Mapping[str, Option]) -> dict[str, Option]:
        """Return the options that are not among `skip_directives`."""
        return {name: value for name, value in options.items() if name not in self.skip_directives}
