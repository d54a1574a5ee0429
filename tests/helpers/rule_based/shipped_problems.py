"""Small instances of the five problems: initial values on 64 cells, times that are not equidistant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

BATCH, CELLS, NODES = 3, 64, 33

_x = (np.arange(CELLS) + 0.5) / CELLS
_waves = np.stack([np.sin(2.0 * np.pi * _x), np.cos(4.0 * np.pi * _x + 0.3), np.sin(4.0 * np.pi * _x)])
_u = 0.4 + 0.3 * _waves
TIMES = np.array([0.0, 0.004, 0.02, 0.03, 0.05])

_node = np.linspace(0.0, 1.0, NODES)
_X, _Y = np.meshgrid(_node, _node, indexing="ij")
_a = np.stack([1.0 + _X, np.exp(np.sin(3.0 * _X + _Y)), np.where(_X + 0.3 * _Y > 0.5, 1.0, 0.1)])

ARGUMENTS: Mapping[str, tuple[Any, ...]] = {
    "advection": (_u, TIMES, 0.4),
    "burgers": (_u, TIMES, 0.01),
    "reaction-diffusion": (_u, TIMES, 0.5, 1.0),
    "navier-stokes-1d": (0.03 * _waves, 1.0 + 0.5 * _u, 1.0 + _u, TIMES, 0.05, 0.05),
    "darcy-2d": (_a,),
}
