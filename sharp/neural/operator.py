"""A Fourier neural operator on a period, after Li et al. 2021 (arXiv 2010.08895, sections 4 and 5).

It maps an initial state to the solution at all later output times, which are channels of the last layer. Weights
belong to waves, not to grid points, so that an operator trained on a coarse grid can be applied on a fine one. No
coordinate is given to it: the equations it is for do not change when they are shifted along their period.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Parameters = dict[str, Any]
"""Arrays by layer, in single precision; a spectral layer keeps real and imaginary parts, for optimisers know reals."""


@dataclass(frozen=True)
class Architecture:
    """Channels in and out, waves kept by a spectral layer, channels and number of these, channels before the last."""

    channels_in: int
    channels_out: int
    modes: int = 24
    width: int = 48
    layers: int = 4
    hidden: int = 96


def initial_parameters(architecture: Architecture, seed: int) -> Parameters:
    """Draw the weights that training begins with."""
    import jax
    import jax.numpy as jnp

    draw, a = np.random.default_rng(seed), architecture

    def dense(rows: int, columns: int) -> dict[str, Any]:
        bound = 1 / np.sqrt(columns)
        values = draw.uniform(-bound, bound, (rows, columns + 1))
        return {"weight": values[:, 1:], "bias": values[:, :1]}

    def spectral() -> dict[str, Any]:
        parts = draw.uniform(0, 1 / a.width, (2, a.width, a.width, a.modes))
        return {"real": parts[0], "imaginary": parts[1], "local": dense(a.width, a.width)}

    drawn = {
        "lift": dense(a.width, a.channels_in),
        "layers": [spectral() for _ in range(a.layers)],
        "hidden": dense(a.hidden, a.width),
        "last": dense(a.channels_out, a.hidden),
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
