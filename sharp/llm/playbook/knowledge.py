"""What the playbook knows of each family of equations: the verdicts of its analysis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Verdict = Mapping[str, Any]


@dataclass(frozen=True)
class Analysis:
    """The verdicts on one family, each with the sentences that lead to it."""

    classification: tuple[str, Verdict]
    analytical: tuple[str, Verdict]
    transformation: tuple[str, Verdict]
    hybrid: tuple[str, Verdict]
    stability: tuple[str, Verdict]


def no(reason: str, key: str) -> Verdict:
    """Return the verdict of a check that found nothing under the key it asks for."""
    return {"verdict": "no", key: "", "reason": reason}


_ADVECTION = Analysis(
    classification=(
        "One time and one first-order space derivative with a constant coefficient: characteristics are straight.",
        {
            "order": 1,
            "linearity": "linear",
            "type": "hyperbolic",
            "boundary": "periodic",
            "properties": ["mass", "L2 norm", "maximum principle", "shape of the profile"],
        },
    ),
    analytical=(
        "Along the characteristics the solution is constant, so it is the initial profile shifted by beta t. On the "
        "grid the shift of a band-limited profile is a phase factor of each Fourier mode.",
        {
            "verdict": "yes",
            "solution": "u(x, t) = u0(x - beta*t), periodic",
            "reason": "constant speed on a periodic interval",
        },
    ),
    transformation=(
        "A moving frame makes the equation trivial, but that is the closed form itself.",
        no("the moving frame is the analytical solution", "transformation"),
    ),
    hybrid=("There is only one term.", {"verdict": "no", "parts": [], "reason": "one term in space"}),
    stability=(
        "Upwind differences with Euler steps are stable up to a Courant number of one; SSP Runge-Kutta with limited "
        "slopes needs about a half.",
        {
            "bounds": [
                {"scheme": "first-order upwind, explicit Euler", "bound": "dx/abs(beta)"},
                {"scheme": "MUSCL with SSP-RK2", "bound": "dx/(2*abs(beta))"},
                {"scheme": "Fourier collocation with RK4", "bound": "2.8*dx/(pi*abs(beta))"},
            ],
            "recommended": ["exact Fourier shift", "MUSCL with SSP-RK2"],
            "stiff": False,
            "reason": "one constant speed",
        },
    ),
)

_BURGERS = Analysis(
    classification=(
        "A conservation law with the convex flux u^2/2 and a small second-order term: smooth in the end, but with "
        "fronts of thickness viscosity over jump.",
        {
            "order": 2,
            "linearity": "quasilinear",
            "type": "parabolic",
            "boundary": "periodic",
            "properties": ["mass", "maximum principle", "decay of the total variation"],
        },
    ),
    analytical=(
        "No closed form covers arbitrary data; the Cole-Hopf formula still leaves a convolution to be computed.",
        no("the convolution for arbitrary data has no closed form", "solution"),
    ),
    transformation=(
        "The Cole-Hopf substitution makes the equation linear, but its exponent is the potential over twice the "
        "viscosity: at this viscosity it spans many orders of magnitude and amplifies rounding.",
        no("Cole-Hopf is ill conditioned at this small viscosity", "transformation"),
    ),
    hybrid=(
        "The diffusion has constant coefficients and is exact in Fourier space; the convection is left to a "
        "conservative scheme.",
        {
            "verdict": "yes",
            "parts": [
                {"term": "diffusion", "treatment": "exact", "how": "decay factor of each Fourier mode"},
                {"term": "convection", "treatment": "numerical", "how": "conservative finite volumes"},
            ],
            "reason": "the stiff term is linear with constant coefficients",
        },
    ),
    stability=(
        "Explicit steps obey the convective and the diffusive bound together; with exact diffusion only the first "
        "is left.",
        {
            "bounds": [
                {"scheme": "explicit convection, MUSCL with SSP-RK2", "bound": "0.5*dx/u_max"},
                {"scheme": "explicit central diffusion", "bound": "pi*dx**2/(2*nu)"},
                {"scheme": "both explicit", "bound": "1/(u_max/(0.5*dx) + 2*nu/(pi*dx**2))"},
            ],
            "recommended": [
                "Strang splitting with exact diffusion",
                "integrating-factor RK4",
                "MUSCL with SSP-RK2",
            ],
            "stiff": False,
            "reason": "fronts ask for conservation and resolution rather than small steps",
        },
    ),
)

_REACTION_DIFFUSION = Analysis(
    classification=(
        "A heat equation with a pointwise logistic source.",
        {
            "order": 2,
            "linearity": "semilinear",
            "type": "parabolic",
            "boundary": "periodic",
            "properties": ["values stay between 0 and 1", "monotone growth of the mean"],
        },
    ),
    analytical=(
        "Diffusion alone and reaction alone have closed forms; together, for arbitrary data, they have none.",
        no("no closed form for the coupled equation", "solution"),
    ),
    transformation=(
        "The log odds linearise the reaction, but turn the diffusion into a quasilinear term.",
        no("what makes the reaction linear makes the diffusion nonlinear", "transformation"),
    ),
    hybrid=(
        "The operator is the sum of two parts that are each solved exactly: heat flow in Fourier space, logistic "
        "growth at each point. Strang splitting joins them with second order.",
        {
            "verdict": "yes",
            "parts": [
                {"term": "diffusion", "treatment": "exact", "how": "decay factor of each Fourier mode"},
                {"term": "reaction", "treatment": "exact", "how": "logistic formula at each point"},
            ],
            "reason": "both parts have exact flows",
        },
    ),
    stability=(
        "Explicit diffusion is bounded by dx^2, which means millions of steps here, each so small that single "
        "precision loses the reaction's increment. Exact or implicit diffusion leaves accuracy as the only limit.",
        {
            "bounds": [
                {"scheme": "explicit Euler, central differences", "bound": "dx**2/(2*nu)"},
                {"scheme": "explicit reaction", "bound": "2/rho"},
            ],
            "recommended": ["Strang splitting of exact flows in double precision", "ETD-RK2"],
            "stiff": True,
            "reason": "diffusion at the grid scale is far faster than the reaction",
        },
    ),
)

_NAVIER_STOKES = Analysis(
    classification=(
        "Conservation laws of mass, momentum and energy, with a viscous stress in the last two.",
        {
            "order": 2,
            "linearity": "quasilinear",
            "type": "mixed",
            "boundary": "periodic",
            "properties": ["mass", "momentum", "total energy", "positive density and pressure"],
        },
    ),
    analytical=("No closed form exists for arbitrary data.", no("nonlinear system", "solution")),
    transformation=(
        "Characteristic variables help a Riemann solver, but do not solve the system.",
        no("no substitution reduces the system", "transformation"),
    ),
    hybrid=(
        "The viscous part is stiff and linear in the velocity once the density is frozen; splitting it off lets the "
        "inviscid part run at the acoustic step.",
        {
            "verdict": "yes",
            "parts": [
                {
                    "term": "viscous stress",
                    "treatment": "numerical",
                    "how": "implicit or stabilised explicit steps",
                },
                {
                    "term": "inviscid fluxes",
                    "treatment": "numerical",
                    "how": "finite volumes with a Riemann solver",
                },
            ],
            "reason": "the viscous bound is far below the acoustic one",
        },
    ),
    stability=(
        "The acoustic bound uses the fastest wave |v| + c, the viscous one the smallest density.",
        {
            "bounds": [
                {"scheme": "explicit inviscid fluxes", "bound": "0.5*dx/u_max"},
                {"scheme": "explicit viscous stress, unit density", "bound": "dx**2/(2*(zeta + 4/3*eta))"},
            ],
            "recommended": [
                "Strang splitting with implicit or stabilised viscosity",
                "MUSCL with HLLC and SSP-RK2",
            ],
            "stiff": True,
            "reason": "viscosity on a fine grid",
        },
    ),
)

_DARCY = Analysis(
    classification=(
        "A steady diffusion equation in divergence form with a discontinuous coefficient.",
        {
            "order": 2,
            "linearity": "linear",
            "type": "elliptic",
            "boundary": "dirichlet",
            "properties": [
                "maximum principle",
                "continuity of the normal flux",
                "symmetric positive definite",
            ],
        },
    ),
    analytical=(
        "No closed form exists for an arbitrary coefficient field.",
        no("arbitrary piecewise constant coefficient", "solution"),
    ),
    transformation=(
        "Scaling by the coefficient does not remove its jumps.",
        no("the jumps stay", "transformation"),
    ),
    hybrid=(
        "The constant-coefficient part has a fast exact inverse (sine transforms), which makes a preconditioner rather "
        "than a splitting.",
        {"verdict": "no", "parts": [], "reason": "one operator; its constant part serves as preconditioner"},
    ),
    stability=(
        "There is no time step. The condition number grows as the coefficient contrast over dx^2; preconditioned by "
        "the constant-coefficient inverse it is the contrast alone.",
        {
            "bounds": [{"scheme": "condition number of the five-point matrix", "bound": "4/dx**2"}],
            "recommended": ["sparse direct solve", "conjugate gradients with a fast sine preconditioner"],
            "stiff": True,
            "reason": "elliptic problem with jumps",
        },
    ),
)

KNOWLEDGE: Mapping[str, Analysis] = {
    "advection": _ADVECTION,
    "burgers": _BURGERS,
    "reaction-diffusion": _REACTION_DIFFUSION,
    "navier-stokes-1d": _NAVIER_STOKES,
    "darcy-2d": _DARCY,
}

_UNKNOWN = "This equation is not in the playbook's library; the answer is the cautious one."

# For an equation that the library does not know: nothing is claimed beyond what keeps the analysis going.
CAUTIOUS = Analysis(
    classification=(
        _UNKNOWN,
        {"order": 2, "linearity": "nonlinear", "type": "mixed", "boundary": "mixed", "properties": []},
    ),
    analytical=(_UNKNOWN, no("not in the library", "solution")),
    transformation=(_UNKNOWN, no("not in the library", "transformation")),
    hybrid=(_UNKNOWN, {"verdict": "no", "parts": [], "reason": "not in the library"}),
    stability=(_UNKNOWN, {"bounds": [], "recommended": [], "stiff": True, "reason": "not in the library"}),
)
