"""A-priori estimates of a scheme: its error, by the part that limits it, and its run time.

Every part contributes an error C h^p, with its order p and a typical size known by its rank, and an iteration that
ends early what it leaves; contributions add up, so the largest decides. The estimate ranks schemes and says where a
change pays; it is no prediction of a measured error. `benchmarks/bench_rule_based.py` compares it with measurements.

Run time is how many steps a scheme takes on the usual grids, and what each of them costs. Seconds are those of eight
samples on one core of a common machine; only their ratios and their order of magnitude are used. Schemes without time
steps have no estimate of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log10

from sharp.rule_based.library import CodeBlock

# Typical error of a part by its rank, on the grids and steps that are usual for the shipped problems.
ERROR_OF_RANK = (1e-1, 5e-3, 5e-4, 3e-5, 1e-6)
# Parts that join or name others, or decide how fast rather than how accurately; by slot or by slot and name.
NEUTRAL = frozenset(
    {
        *("solver", "groups", "step", "state", "inviscid", "reaction"),
        *("matrix", "operator", "precondition"),
        *(("space", "method-of-lines"), ("viscosity", "face-stress")),
    }
)
# Ranks compare the blocks of one slot; beside those of other slots these parts do better than their rank says.
BETTER_THAN_RANKED: Mapping[tuple[str, str], int] = {
    ("nonlinear", "aliased"): 3,
    ("convection", "pseudo-spectral"): 4,
    ("advance", "filtered-rk4"): 3,
    ("reconstruct", "third-order"): 3,
    ("faces", "geometric"): 3,
    ("faces", "one-sided"): 2,
}
IN_SPACE = frozenset({"space", "convection", "nonlinear"})
IN_TIME = frozenset({"advance", "transport", "viscous", "react", "heat"})
UNREFINED = frozenset({"closure", "grid", "faces"})
# Step rules that diffusion bounds: their steps are far shorter than accuracy asks for.
BOUNDED_BY_DIFFUSION = frozenset({"explicit", "explicit-minimum", "diffusive", "stabilized"})
SHORT_STEPS = 0.05
# Diffusion smooths these solutions at once, so that no resolution in space limits them.
SMOOTH = frozenset({"reaction-diffusion"})
USUAL_STEP, USUAL_COURANT = 1e-3, 0.4
ROUNDING, ROUNDING_OF_MANY_STEPS = 1e-5, 3e-3
TOLERANCE_TO_ERROR = 3.0


def contributions(
    family: str, blocks: Mapping[str, CodeBlock], constants: Mapping[str, float], *, single: bool
) -> dict[str, float]:
    """Return the estimated relative error of every part that has one, by slot (`precision` and `RTOL` as well)."""
    errors = {
        slot: _error(block, blocks, constants)
        for slot, block in blocks.items()
        if _counts(family, slot, block, blocks)
    }
    if single:
        many = "step" in blocks and blocks["step"].name == "diffusive"
        errors["precision"] = ROUNDING_OF_MANY_STEPS if many else ROUNDING
    if "RTOL" in constants and not IN_TIME & blocks.keys():
        errors["RTOL"] = TOLERANCE_TO_ERROR * constants["RTOL"]
    return errors


def merit(errors: Mapping[str, float]) -> float:
    """Return the number of correct digits that contributions add up to; 0 where nothing is known."""
    return -log10(sum(errors.values())) if errors else 0.0


def _counts(family: str, slot: str, block: CodeBlock, blocks: Mapping[str, CodeBlock]) -> bool:
    if slot in NEUTRAL or (slot, block.name) in NEUTRAL:
        return False
    if (
        slot == "flux"
    ):  # behind a good reconstruction the states at a face differ too little for the flux to matter
        return "reconstruct" not in blocks or blocks["reconstruct"].rank < 2
    return slot in IN_TIME or family not in SMOOTH


def _error(block: CodeBlock, blocks: Mapping[str, CodeBlock], constants: Mapping[str, float]) -> float:
    rank = BETTER_THAN_RANKED.get((block.slot, block.name), block.rank)
    error = ERROR_OF_RANK[rank] * _refinement(block.slot, blocks, constants) ** rank
    return float(min(max(error, ERROR_OF_RANK[-1]), 1.0))


def _refinement(slot: str, blocks: Mapping[str, CodeBlock], constants: Mapping[str, float]) -> float:
    """Return the step or cell width in units of the usual one."""
    step = blocks["step"].name if "step" in blocks else ""
    if slot in UNREFINED:
        return 1.0
    if slot not in IN_TIME:
        return 1.0 / constants.get("GRID_FACTOR", 1.0)
    if step in BOUNDED_BY_DIFFUSION:
        return SHORT_STEPS
    if step == "accuracy":
        return constants.get("MAX_STEP", USUAL_STEP) / USUAL_STEP
    # The errors of one-step schemes in space and time together do not fall with the Courant number.
    return constants.get("CFL", USUAL_COURANT) / USUAL_COURANT if IN_SPACE & blocks.keys() else 1.0


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


def steps(family: str, blocks: Mapping[str, CodeBlock], constants: Mapping[str, float]) -> float:
    """Return about how many time steps a scheme takes, 0 where it has no rule for them."""
    rule = blocks["step"].name if "step" in blocks else ""
    if rule not in _STEPS:
        return 0.0
    number, name, usual, power = _STEPS[rule]
    gas = _GAS_STEPS if family == _VISCOUS_GAS and rule.startswith("explicit") else 1.0
    return gas * number * usual / constants.get(name, usual) * constants.get("GRID_FACTOR", 1.0) ** power


def seconds(
    family: str, blocks: Mapping[str, CodeBlock], constants: Mapping[str, float], *, compiled: bool
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
