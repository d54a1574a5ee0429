"""An a-priori estimate of a scheme's error: which of its parts limits it.

Every part contributes an error C h^p, with its order p and a typical size known by its rank, and an iteration that
ends early what it leaves; contributions add up, so the largest decides. The estimate ranks schemes and says where a
change pays; it is no prediction of a measured error. `benchmarks/bench_playbook.py` compares it with measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log10

from sharp.llm.playbook.library import Block

# Typical error of a part by its rank, on the grids and steps that are usual for the shipped problems.
ERROR_OF_RANK = (1e-1, 5e-3, 5e-4, 3e-5, 1e-6)
# Parts that join or name others, or decide how fast rather than how accurately; by slot or by slot and name.
NEUTRAL = frozenset(
    {
        *("solver", "step", "state", "inviscid", "reaction"),
        *("matrix", "operator", "diagonal", "smoother", "precondition"),
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
UNREFINED = frozenset({"closure", "grid", "faces", "solve"})
# Step rules that diffusion bounds: their steps are far shorter than accuracy asks for.
BOUNDED_BY_DIFFUSION = frozenset({"explicit", "explicit-minimum", "diffusive", "stabilized"})
SHORT_STEPS = 0.05
# Diffusion smooths these solutions at once, so that no resolution in space limits them.
SMOOTH = frozenset({"reaction-diffusion"})
USUAL_STEP, USUAL_COURANT = 1e-3, 0.4
ROUNDING, ROUNDING_OF_MANY_STEPS = 1e-5, 3e-3
TOLERANCE_TO_ERROR = 3.0
# Iterations that reduce the error by a factor of e, on some 400 x 400 nodes.
ITERATIONS: Mapping[str, float] = {
    "jacobi": 5e4,
    "red-black-sor": 120.0,
    "compiled-sor": 120.0,
    "chebyshev": 200.0,
    "defect-correction": 6e3,
}
ITERATIONS_OF_CG: Mapping[str, float] = {"jacobi": 100.0, "none": 130.0}


def contributions(
    family: str, blocks: Mapping[str, Block], constants: Mapping[str, float], *, single: bool
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


def _counts(family: str, slot: str, block: Block, blocks: Mapping[str, Block]) -> bool:
    if slot in NEUTRAL or (slot, block.name) in NEUTRAL:
        return False
    if (
        slot == "flux"
    ):  # behind a good reconstruction the states at a face differ too little for the flux to matter
        return "reconstruct" not in blocks or blocks["reconstruct"].rank < 2
    return slot in IN_TIME or family not in SMOOTH


def _error(block: Block, blocks: Mapping[str, Block], constants: Mapping[str, float]) -> float:
    if (per_factor := _iterations(block, blocks)) is not None:
        return exp(-constants.get("MAX_ITERATIONS", 0.0) / per_factor)
    rank = BETTER_THAN_RANKED.get((block.slot, block.name), block.rank)
    error = ERROR_OF_RANK[rank] * _refinement(block.slot, blocks, constants) ** rank
    return float(min(max(error, ERROR_OF_RANK[-1]), 1.0))


def _iterations(block: Block, blocks: Mapping[str, Block]) -> float | None:
    """Return the iterations that reduce the error by a factor of e, None for what has no need of many."""
    if block.slot != "solve":
        return None
    if block.name.endswith("-cg") and "precondition" in blocks:
        return ITERATIONS_OF_CG.get(blocks["precondition"].name)
    return ITERATIONS.get(block.name)


def _refinement(slot: str, blocks: Mapping[str, Block], constants: Mapping[str, float]) -> float:
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
