"""A Fourier neural operator on a period, after Li et al. 2021 (arXiv 2010.08895, sections 4 and 5).

It maps an initial state to the solution at all later output times, which are channels of the last layer. Weights
belong to waves, not to grid points, so that an operator trained on a coarse grid can be applied on a fine one. No
coordinate is given to it: the equations it is for do not change when they are shifted along their period.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sharp.errors import ConfigurationError
from sharp.problems import Problem
from sharp.reference import FAMILIES

Parameters = dict[str, Any]
"""Arrays by layer, in single precision; a spectral layer keeps real and imaginary parts, for optimisers know reals."""


@dataclass(frozen=True)
class TrainingConfig:
    """How an operator is trained.

    `samples` initial states are drawn from a seed of their own; every `stride`-th point of their solutions is learnt,
    at all output times. `seed` decides them, the first weights and the order of samples. The rate of learning falls
    from `learning_rate` to zero along half a cosine. Of the operator, `modes` are the waves kept by a spectral
    layer, `width` and `layers` the channels and number of these, `hidden` the channels before the last layer.
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


def initial_parameters(settings: TrainingConfig, channels_in: int, channels_out: int) -> Parameters:
    """Draw the weights that training begins with."""
    import jax
    import jax.numpy as jnp

    draw, a = np.random.default_rng(settings.seed), settings

    def dense(rows: int, columns: int) -> dict[str, Any]:
        bound = 1 / np.sqrt(columns)
        values = draw.uniform(-bound, bound, (rows, columns + 1))
        return {"weight": values[:, 1:], "bias": values[:, :1]}

    def spectral() -> dict[str, Any]:
        parts = draw.uniform(0, 1 / a.width, (2, a.width, a.width, a.modes))
        return {"real": parts[0], "imaginary": parts[1], "local": dense(a.width, a.width)}

    drawn = {
        "lift": dense(a.width, channels_in),
        "layers": [spectral() for _ in range(a.layers)],
        "hidden": dense(a.hidden, a.width),
        "last": dense(channels_out, a.hidden),
    }
    return dict(jax.tree.map(lambda values: jnp.asarray(values, jnp.float32), drawn))


def apply(parameters: Parameters, v: Any) -> Any:
    """Apply the operator: [n, channels_in, N] -> [n, channels_out, N], on any grid of at least twice `modes` points."""
    import jax

    v = _dense(parameters["lift"], v)
    *inner, final = parameters["layers"]
    for layer in inner:
        v = jax.nn.gelu(_layer(layer, v))
    v = _layer(final, v)
    return _dense(parameters["last"], jax.nn.gelu(_dense(parameters["hidden"], v)))


def spectral_convolution(real: Any, imaginary: Any, v: Any) -> Any:
    """Multiply the lowest waves of `v` [n, c, N] by complex weights [d, c, modes], and drop all others: [n, d, N]."""
    import jax.numpy as jnp
    from jax import lax

    points, modes = v.shape[-1], real.shape[-1]
    waves = jnp.fft.rfft(v, axis=-1)[..., :modes]
    mixed = jnp.einsum("dcm,ncm->ndm", lax.complex(real, imaginary), waves)
    return jnp.fft.irfft(mixed, n=points, axis=-1)


def count_parameters(parameters: Parameters) -> int:
    """Count the trained numbers."""
    import jax

    return sum(leaf.size for leaf in jax.tree.leaves(parameters))


def _layer(layer: dict[str, Any], v: Any) -> Any:
    return spectral_convolution(layer["real"], layer["imaginary"], v) + _dense(layer["local"], v)


def _dense(layer: dict[str, Any], v: Any) -> Any:
    """Mix channels point by point: [n, c, N] -> [n, d, N]."""
    import jax.numpy as jnp

    return jnp.einsum("dc,ncx->ndx", layer["weight"], v) + layer["bias"]


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
