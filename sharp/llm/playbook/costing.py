"""A rough estimate of run time: how many steps a scheme takes on the usual grids, and what each of them costs.

Seconds are those of eight samples on one core of a common machine; only their ratios and their order of magnitude are
used. Schemes without time steps have no estimate.
"""

from __future__ import annotations

from collections.abc import Mapping

from sharp.llm.playbook.library import Block

# Steps on the data's grid with the usual constants, by the rule for the step: number, constant, its usual value, and
# the power of the grid's refinement that the number grows with.
_STEPS: Mapping[str, tuple[float, str, float, int]] = {
    "accuracy": (1000, "MAX_STEP", 1e-3, 0),
    "output-interval": (200, "", 1.0, 0),
    "cfl": (500, "CFL", 0.4, 1),
    "convective": (5600, "CFL", 0.4, 1),
    "acoustic": (7000, "CFL", 0.4, 1),
    "stabilized": (7000, "CFL", 0.4, 1),
    "explicit": (34e3, "", 1.0, 2),
    "explicit-minimum": (33e3, "CFL", 0.4, 2),
    "diffusive": (1.8e6, "DIFFUSION_NUMBER", 0.25, 2),
}
_VISCOUS_GAS = "navier-stokes-1d"
# How many more steps than the table says the gas takes, and how much more each of them costs.
_GAS_STEPS, _GAS_WORK = 7.0, 4.0
_STAGES: Mapping[str, float] = {
    "euler": 1,
    "ssp-rk3": 3,
    "rk4": 4,
    "integrating-factor-rk4": 4,
    "filtered-rk4": 5,
}
_RECONSTRUCTIONS: Mapping[str, float] = {"constant": 0.7, "third-order": 1.4, "weno5": 4.0}
# Parts that cost more than a stage, in microseconds a step.
_EXTRA: Mapping[tuple[str, str], float] = {
    ("advance", "etd-rk4"): 1300,
    ("heat", "legendre"): 1500,
    ("viscous", "legendre"): 1500,
    ("viscous", "implicit"): 700,
}
_STAGE_US, _COMPILED, _SAMPLES = 50.0, 0.2, 2.0


def steps(family: str, blocks: Mapping[str, Block], constants: Mapping[str, float]) -> float:
    """Return about how many time steps a scheme takes, 0 where it has no rule for them."""
    rule = blocks["step"].name if "step" in blocks else ""
    if rule not in _STEPS:
        return 0.0
    number, name, usual, power = _STEPS[rule]
    gas = _GAS_STEPS if family == _VISCOUS_GAS and rule.startswith("explicit") else 1.0
    return gas * number * usual / constants.get(name, usual) * constants.get("GRID_FACTOR", 1.0) ** power


def seconds(
    family: str, blocks: Mapping[str, Block], constants: Mapping[str, float], *, compiled: bool
) -> float:
    """Return about how long a scheme runs, 0 where that cannot be told."""
    stages = max(
        (_STAGES.get(blocks[slot].name, 2.0) for slot in ("advance", "transport") if slot in blocks),
        default=2.0,
    )
    reconstruction = _RECONSTRUCTIONS.get(blocks["reconstruct"].name, 1.0) if "reconstruct" in blocks else 1.0
    work = _STAGE_US * stages * reconstruction * (_GAS_WORK if family == _VISCOUS_GAS else 1.0)
    work += sum(_EXTRA.get((slot, block.name), 0.0) for slot, block in blocks.items())
    size = _SAMPLES * max(constants.get("GRID_FACTOR", 1.0), 0.5) * (_COMPILED if compiled else 1.0)
    return 1e-6 * work * size * steps(family, blocks, constants)
