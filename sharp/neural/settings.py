"""What decides a training: in one process the same settings give the same weights, in another up to rounding."""

from __future__ import annotations

from dataclasses import dataclass

from sharp.errors import ConfigurationError
from sharp.problems import Problem
from sharp.reference.families import FAMILIES


@dataclass(frozen=True)
class TrainingConfig:
    """How an operator is trained.

    `samples` initial states are drawn from a seed of their own; every `stride`-th point of their solutions is learnt,
    at all output times. `seed` decides them, the first weights and the order of samples. The rate of learning falls
    from `learning_rate` to zero along half a cosine. `modes`, `width`, `layers`, `hidden` are those of the operator.
    """

    samples: int = 500
    epochs: int = 150
    seed: int = 0
    batch: int = 20
    learning_rate: float = 2e-3
    stride: int = 4
    modes: int = 24
    width: int = 32
    layers: int = 4
    hidden: int = 96

    @property
    def data_seed(self) -> int:
        """The seed of the initial states that are trained on, far from those that data sets are usually made with."""
        return 1_000_000 + self.seed


def check_settings(problem: Problem, settings: TrainingConfig) -> None:
    """Raise `ConfigurationError` where the operator cannot be trained for a problem in this way."""
    if len(problem.space) != 1 or problem.time is None or problem.family not in FAMILIES:
        raise ConfigurationError(
            f"{problem.id}: the neural baseline is for equations in one space dimension and time whose data can be "
            "generated, as those of advection, burgers, navier-stokes and reaction-diffusion"
        )
    points = problem.grid.points[problem.space[0]]
    if points % settings.stride or points // settings.stride < 2 * settings.modes:
        raise ConfigurationError(
            f"{problem.id}: every {settings.stride}th of {points} points is no grid with at least {2 * settings.modes} "
            f"points, which {settings.modes} waves need"
        )
    if settings.batch > settings.samples:
        raise ConfigurationError(
            f"{problem.id}: expected at least {settings.batch} samples, as many as are learnt from at a time, found "
            f"{settings.samples}"
        )
