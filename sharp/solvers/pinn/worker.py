"""The training of a network by DeepXDE, in a process of its own: `python -P -m sharp.solvers.pinn.worker FOLDER`.

DeepXDE has its backend, its precision and its seed for the whole process, and prints what it does. The folder holds
`problem.yaml` and `settings.json`; `result.npz` is left there, and holds the best network so far if the process is
ended. Whatever goes wrong ends it with an error.

A field of second order in time is one output of the network, differentiated twice, and not two outputs with an equation
between them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any

import deepxde
import numpy as np
import torch

from hpc.processes import die_with_parent
from sharp.problems import compile_expressions, parse_problem
from sharp.solvers.grid import Array
from sharp.solvers.pinn.ansatz import PROBLEM, Ansatz, Network, PinnConfig, TrainedNetwork, ansatz_of
from sharp.solvers.pinn.scales import (
    at_start,
    condition_scale,
    derivative_of,
    equation_rows,
    equation_scales,
    field_of,
    half_extents,
    order_in_time,
    pinn_boundary_points,
    values,
)
from sharp.solvers.sample_points import space_time_points
from sharp.solvers.system import BoundaryCondition, FirstOrderSystem, StateComponent, system_of

Derive = Callable[[int, tuple[int, ...]], torch.Tensor]

# The loss is looked at every so many steps; training ends where it has not fallen by a share in so many looks.
EVERY = 50
PATIENCE = 20
FALLEN = 0.01
LATE = "the limit of time was reached"
STUCK = "the loss had stopped falling"


class Derivatives:
    """The fields and their derivatives at the points of one pass, each computed once."""

    def __init__(self) -> None:
        self._outputs: torch.Tensor | None = None
        self._known: dict[tuple[int, tuple[int, ...]], torch.Tensor] = {}

    def of(self, inputs: torch.Tensor, outputs: torch.Tensor) -> Derive:
        """Return the derivative of field i, `by[j]` times along coordinate j, as a function of i and by: [n, 1]."""
        if outputs is not self._outputs:
            self._outputs, self._known = outputs, {}

        def derivative(field: int, by: tuple[int, ...]) -> torch.Tensor:
            if (field, by) not in self._known:
                self._known[field, by] = computed(field, by)
            return self._known[field, by]

        def computed(field: int, by: tuple[int, ...]) -> torch.Tensor:
            if not any(by):
                return outputs[:, field : field + 1]
            axis = next(index for index, count in enumerate(by) if count)
            lower = derivative(field, (*by[:axis], by[axis] - 1, *by[axis + 1 :]))
            return deepxde.grad.jacobian(lower, inputs, i=0, j=axis)

        return derivative


class PointCondition:
    """Some derivatives with factors, at points of their own, equal values: a condition as DeepXDE calls it.

    `terms` are pairs of factors [m, 1] and the derivative that they belong to.
    """

    def __init__(
        self,
        derivatives: Derivatives,
        field: int,
        points: Array,
        terms: Sequence[tuple[Array, tuple[int, ...]]],
        wanted: Array,
        scale: float,
    ) -> None:
        self._derivatives, self._field, self._points = derivatives, field, points
        self._terms = [(torch.as_tensor(factor[:, None] / scale), by) for factor, by in terms]
        self._wanted = torch.as_tensor(wanted[:, None] / scale)

    def collocation_points(self, points: Array) -> Array:
        """Return the points of this condition, whatever the others are."""
        del points
        return self._points

    def error(
        self,
        points: Array,
        inputs: torch.Tensor,
        outputs: torch.Tensor,
        first: int,
        last: int,
        auxiliary: None = None,
    ) -> torch.Tensor:
        """Return the mismatch [m, 1] at the rows of all points that are this condition's."""
        del points, auxiliary
        derivative = self._derivatives.of(inputs, outputs)
        found = [factor * derivative(self._field, by)[first:last] for factor, by in self._terms]
        return torch.stack(found).sum(dim=0) - self._wanted


def boundary_condition(
    ansatz: Ansatz, condition: BoundaryCondition, derivatives: Derivatives, count: int
) -> PointCondition:
    """Return a condition on a part of the boundary; the normal derivative of order k is (n . grad)**k."""
    system = ansatz.system
    field = field_of(system, condition.component)
    points, normals = pinn_boundary_points(system.problem, condition.part, count, count)
    wanted, *factors = values(system, [condition.value, *condition.factors.values()], points)
    terms = [
        (
            factor * np.prod(normals[:, axes], axis=1),
            tuple(axes.count(axis) for axis in range(points.shape[1])),
        )
        for order, factor in zip(condition.factors, factors, strict=True)
        for axes in product(range(len(system.space)), repeat=order)
    ]
    scale = condition_scale(system, condition, ansatz.forms[field].scale)
    kept = [(factor, by) for factor, by in terms if np.any(factor)]
    return PointCondition(derivatives, field, points, kept, wanted, scale)


def initial_condition(
    ansatz: Ansatz, component: StateComponent, derivatives: Derivatives, count: int
) -> PointCondition:
    """Return the condition that a field, or one of its time derivatives, has its initial state."""
    system = ansatz.system
    index = system.components.index(component)
    points = at_start(system.problem, count)
    (wanted,) = values(system, [system.initial[index]], points)
    scale = ansatz.form(component).scale.size / half_extents(system)[-1] ** component.order
    by = (*(0 for _ in system.space), component.order)
    return PointCondition(derivatives, field_of(system, index), points, [(np.ones(count), by)], wanted, scale)


def equations(
    ansatz: Ansatz, derivatives: Derivatives
) -> Callable[[torch.Tensor, torch.Tensor], list[torch.Tensor]]:
    """Return the residuals [n, 1] of all equations as a function of inputs [n, coordinates] and outputs [n, fields]."""
    system = ansatz.system
    orders = [order_in_time(system, field) for field in system.problem.fields]
    program = compile_expressions([system.rhs[row] for row in equation_rows(system)], system.names)
    sizes = equation_scales(system, [form.scale for form in ansatz.forms])
    still = (0,) * len(system.space)

    def residuals(inputs: torch.Tensor, outputs: torch.Tensor) -> list[torch.Tensor]:
        derivative = derivatives.of(inputs, outputs)
        late = [0.0] if system.steady else []
        jets = [
            derivative(field_of(system, jet.component), derivative_of(system, jet)) for jet in system.jets
        ]
        rates = program(*inputs.split(1, dim=1), *late, *jets, library="torch")
        return [
            ((derivative(field, (*still, order)) if order else 0.0) - rate) / size
            for field, (order, rate, size) in enumerate(zip(orders, rates, sizes, strict=True))
        ]

    return residuals


def network_of(ansatz: Ansatz, settings: PinnConfig) -> Any:
    """Return an untrained network of DeepXDE that computes the fields."""
    system = ansatz.system
    inputs, outputs = len(ansatz.features.outputs), len(system.problem.fields)
    hidden = [settings.width] * settings.depth
    network = deepxde.nn.FNN([inputs, *hidden, outputs], "tanh", "Glorot normal")

    def features(points: torch.Tensor) -> torch.Tensor:
        return _joined(ansatz.features(*points.split(1, dim=1), library="torch"), points)

    def fields(points: torch.Tensor, raw: torch.Tensor) -> torch.Tensor:
        found = ansatz.fields(*points.split(1, dim=1), *raw.split(1, dim=1), library="torch")
        return _joined(found, points)

    network.apply_feature_transform(features)
    network.apply_output_transform(fields)
    return network


def _joined(columns: Sequence[torch.Tensor], points: torch.Tensor) -> torch.Tensor:
    return torch.cat([column.expand(len(points), 1) for column in columns], dim=1)


class EarlyStopping(deepxde.callbacks.Callback):  # type: ignore[misc]
    """Keeps the best weights, and ends the training on time, when it is good enough, or when nothing is gained.

    `keep` is called whenever the network is better than ever before.
    """

    def __init__(self, settings: PinnConfig, keep: Callable[[], None]) -> None:
        super().__init__()
        self.best = float("inf")
        self.steps: dict[str, int] = {}
        self.reason = ""
        self._until, self._enough, self._keep = settings.until, (0.1 * settings.accuracy) ** 2, keep
        self._seen: Any = None
        self._before, self._looks, self._last_gain = 0, 0, (0, float("inf"))

    def on_train_begin(self) -> None:
        """Forget why another optimiser ended, and how long it had gained nothing."""
        self.reason, self._last_gain = "", (self._looks, self._last_gain[1])
        self._before = self.model.train_state.step

    def on_epoch_end(self) -> None:
        """Look at the loss, where it has been computed anew."""
        state = self.model.train_state
        if state.loss_train is self._seen and not self._late:
            return
        self._seen, loss = state.loss_train, float(np.sum(state.loss_train))
        self._looks += 1
        self.steps[self.model.opt_name] = state.step - self._before
        if isfinite(loss) and loss < self.best:
            self.best = loss
            self._keep()
        self.reason = self._ends(loss)
        self.model.stop_training = bool(self.reason)

    @property
    def _late(self) -> bool:
        return time.monotonic() > self._until

    def _ends(self, loss: float) -> str:
        if self._late:
            return LATE
        if not isfinite(loss):
            return "the loss was not finite"
        if loss < self._enough:
            return "the loss was small enough"
        gained, least = self._last_gain
        if loss < (1 - FALLEN) * least:
            self._last_gain = (self._looks, loss)
        elif self._looks - gained > PATIENCE:
            return STUCK
        return ""


def train(system: FirstOrderSystem, settings: PinnConfig, folder: Path) -> None:
    """Train a network, Adam first, then L-BFGS from the best that Adam has found, and leave the best in the folder.

    Raises `ArithmeticError` where the loss was never finite.
    """
    deepxde.config.set_default_float("float64")
    deepxde.config.set_random_seed(settings.seed)
    ansatz, derivatives = ansatz_of(system), Derivatives()
    network = network_of(ansatz, settings)
    conditions = _conditions(ansatz, derivatives, settings)
    inside = space_time_points(system.problem, settings.points)
    # The points are ours: the geometry is only asked how many coordinates there are.
    data = deepxde.data.PDE(
        deepxde.geometry.PointCloud(inside), equations(ansatz, derivatives), conditions, anchors=inside
    )
    model = deepxde.Model(data, network)
    weights = [1.0] * len(system.problem.fields) + [settings.weight] * len(conditions)
    best: dict[str, torch.Tensor] = {}

    def keep() -> None:
        best.update({name: value.detach().clone() for name, value in network.state_dict().items()})
        # Who reads this, and no later result, has ended the training.
        _result(network, watch, settings, LATE).write(folder)

    watch = EarlyStopping(settings, keep)
    for name, count in (("adam", settings.adam), ("L-BFGS", settings.lbfgs)):
        _run(model, name, count, settings, weights, watch)
        if not best:
            raise ArithmeticError("the loss was never finite")
        network.load_state_dict(best)
        if watch.reason not in ("", STUCK):
            break
    complete = watch.steps.get("L-BFGS", 0) >= settings.lbfgs
    reason = watch.reason or ("all steps were made" if complete else "no step lowered the loss")
    _result(network, watch, settings, reason).write(folder)


def _conditions(ansatz: Ansatz, derivatives: Derivatives, settings: PinnConfig) -> list[PointCondition]:
    count = settings.width
    return [
        *(boundary_condition(ansatz, each, derivatives, count) for each in ansatz.conditions),
        *(initial_condition(ansatz, each, derivatives, 4 * count) for each in ansatz.starts),
    ]


def _run(
    model: Any, name: str, count: int, settings: PinnConfig, weights: Sequence[float], watch: EarlyStopping
) -> None:
    if name == "adam":
        decay = ("exponential", 0.1 ** (1 / count))
        model.compile(name, lr=settings.learning_rate, decay=decay, loss_weights=weights, verbose=0)
        model.train(iterations=count, display_every=EVERY, callbacks=[watch], verbose=0)
        return
    deepxde.optimizers.set_LBFGS_options(maxcor=100, ftol=0, gtol=1e-12, maxiter=count)
    # DeepXDE looks at the time between such stretches only.
    deepxde.optimizers.config.LBFGS_options |= {"iter_per_step": EVERY, "fun_per_step": 2 * EVERY}
    model.compile(name, loss_weights=weights, verbose=0)
    model.train(display_every=EVERY, callbacks=[watch], verbose=0)


def _result(network: Any, watch: EarlyStopping, settings: PinnConfig, reason: str) -> TrainedNetwork:
    facts = {
        **{f"steps of {name}": count for name, count in watch.steps.items()},
        "loss": watch.best,
        "ended as": reason,
        "seed": settings.seed,
        "width": settings.width,
        "depth": settings.depth,
        "points": settings.points,
        "deepxde": version("deepxde"),
        "torch": torch.__version__,
    }
    return TrainedNetwork(layers_of(network), facts)


def layers_of(network: Any) -> Network:
    """Return the layers of a network of DeepXDE, for numpy."""
    return Network(
        tuple((layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in network.linears)
    )


def main(folder: Path) -> None:
    """Train what the folder describes, and leave the result there."""
    problem = parse_problem((folder / PROBLEM).read_text(encoding="utf-8"), PROBLEM)
    train(system_of(problem), PinnConfig.read(folder), folder)


if __name__ == "__main__":
    die_with_parent()
    main(Path(sys.argv[1]))
