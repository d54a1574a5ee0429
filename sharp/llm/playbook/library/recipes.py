"""The ways to solve an equation that was read in a prompt, by what it is: diffusion, waves, transport, dispersion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sharp.llm.playbook.library.blocks import HOST, Recipe
from sharp.llm.playbook.library.semidiscrete import Semidiscrete
from sharp.llm.playbook.library.stepping import STEPPING

_EXPLICIT_METHODS = ('"RK45"', '"DOP853"')
_EXPLICIT = {"step": ("spectral-radius",), "solver": STEPPING}
_IMPLICIT = {"step": ("accuracy",), "solver": STEPPING}
_DOUBLE = ("float64",)
_EULER = Recipe(
    "first-order",
    "numerical",
    "Forward Euler with central differences is simple to verify; the step follows from the spectral radius.",
    {},
    HOST,
    level="simple",
    weight=0.8,
)
_IMPLICIT_EULER = Recipe(
    "first-order-implicit",
    "numerical",
    "The linearly implicit Euler method is stable for any step and simple.",
    {},
    HOST,
    _DOUBLE,
    level="simple",
    weight=0.8,
)
_EXPLICIT_LINES = Recipe(
    "explicit-lines",
    "numerical",
    "The method of lines with Runge-Kutta steps needs no Jacobian; the spectral radius bounds the step.",
    {},
    HOST,
    weight=2.0,
)
_IMPLICIT_LINES = Recipe(
    "implicit-lines",
    "numerical",
    "The method of lines with an L-stable Rosenbrock method: accuracy alone decides the step.",
    {},
    HOST,
    _DOUBLE,
    weight=2.0,
)
_ADAPTIVE = Recipe(
    "adaptive",
    "numerical",
    "The method of lines hands time stepping and its error control to SciPy.",
    {},
    HOST,
    _DOUBLE,
    weight=1.5,
)
_FINE = Recipe(
    "fine-adaptive",
    "numerical",
    "Where the error in space decides, the equation is solved on a finer grid and the result is read off at the points "
    "of the data.",
    {},
    HOST,
    _DOUBLE,
    weight=0.8,
)
_COLLOCATION = Recipe(
    "collocation",
    "numerical",
    "The solution is smooth, so that collocation at few Chebyshev nodes is more accurate than differences on many.",
    {},
    HOST,
    _DOUBLE,
    weight=1.2,
)


@dataclass(frozen=True)
class Recipes:
    """The recipes for equations discretised in space; where data are at `cells`, a mesh has nodes of its own."""

    scheme: Semidiscrete
    cells: bool

    def all(self) -> Iterator[Recipe]:
        """Yield the recipes."""
        if self.scheme.diffuses:
            yield self._recipe(_EULER, {**self._rough, **_EXPLICIT, "advance": ("euler",)})
        runge_kutta = ("ssp-rk2", "ssp-rk3", "rk4") if self.scheme.diffuses else ("ssp-rk3", "rk4")
        yield self._recipe(_EXPLICIT_LINES, {**self._lines, **_EXPLICIT, "advance": runge_kutta})
        if self.scheme.dimension == 1 or len(self.scheme.components) == 1:
            implicit = {**_IMPLICIT, **self._few}
            yield self._recipe(_IMPLICIT_EULER, {**self._rough, **implicit, "advance": ("implicit-euler",)})
            yield self._recipe(_IMPLICIT_LINES, {**self._lines, **implicit, "advance": ("rosenbrock-2",)})
        yield from self._handed_over()

    def _handed_over(self) -> Iterator[Recipe]:
        """Yield the recipes that leave the steps to SciPy."""
        solver = {"solver": ("solve-ivp",) if self.scheme.stiff else ("solve-ivp-together",)}
        few = self._few if self.scheme.stiff else {}
        yield self._recipe(_ADAPTIVE, {**self._lines, **solver, **few})
        if not few:
            finer = {"grid": ("own",), **self._interpolated("spline", "cubic")}
            yield self._recipe(_FINE, {**self._lines, **solver, **finer})
        if self.scheme.bounded:
            nodes = {"space": ("spectral",), "grid": ("nodes",), **self._interpolated("spline")}
            yield self._recipe(_COLLOCATION, {**self._lines, **solver, **nodes})

    @property
    def _few(self) -> dict[str, tuple[str, ...]]:
        """What keeps dense systems small: in a plane nodes of their own, fewer than the data have."""
        return {"grid": ("nodes",), **self._interpolated("spline")} if self.scheme.dimension > 1 else {}

    def _recipe(self, like: Recipe, slots: Mapping[str, tuple[str, ...]]) -> Recipe:
        methods = {} if self.scheme.stiff or "step" in slots else {"METHOD": _EXPLICIT_METHODS}
        same_grid = {"GRID_FACTOR": ("1",)} if self.cells and like is not _FINE else {}
        return replace(like, slots=slots, constants={**same_grid, **methods})

    @property
    def _lines(self) -> dict[str, tuple[str, ...]]:
        """What schemes on the grid of the data have in common.

        Wide one-sided differences at the ends of an axis may let waves grow, so most of these have narrow ones.
        """
        wide: tuple[str, ...] = ("central-4", "central-6", "spectral")
        if self.scheme.bounded:
            wide = wide[: 2 if self.scheme.stiff else self.scheme.plain]
        return {
            "operator": ("as-written",),
            "matrix": ("mesh",),
            "grid": ("own",) if self.cells else ("given",),
            "space": ("central-2", *wide),
            **self._closures("as-inside"),
            **(self._interpolated("spline") if self.cells else {}),
        }

    @property
    def _rough(self) -> dict[str, tuple[str, ...]]:
        return {**self._lines, "space": ("central-2",), **self._closures("two-point", "as-inside")}

    def _closures(self, *names: str) -> dict[str, tuple[str, ...]]:
        return {"closure": names} if self.scheme.sloped else {}

    def _interpolated(self, *names: str) -> dict[str, tuple[str, ...]]:
        return {"interpolate": names} if self.scheme.bounded else {}
