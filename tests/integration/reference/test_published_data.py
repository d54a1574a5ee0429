"""The published files: made again by the schemes here, and how far they are from the solution of their equations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sharp.problems import Problem, load_problem
from sharp.reference import darcy
from sharp.reference.audit import Audit, audit_dataset
from sharp.reference.datasets import Inputs, open_dataset, read_inputs, read_reference
from sharp.reference.families import family_of, residual
from sharp.reference.spectral import relative_l2
from tests.helpers.problems.small_problems import gas_problem, published_file, together

Array = np.ndarray


def published(
    name: str, file: str, samples: Sequence[int], frames: int | None = None
) -> tuple[Problem, Inputs, dict[str, Array]]:
    """Return a problem, and inputs and solutions of some samples at the first output times."""
    problem = load_problem(name)
    dataset = open_dataset(published_file(file), problem)
    inputs, data = read_inputs(dataset, problem, samples), read_reference(dataset, problem, samples)
    if inputs.t is None:
        return problem, inputs, data
    first = {port: values[:, :frames] for port, values in data.items()}
    return problem, Inputs(inputs.arrays, inputs.t[:frames], inputs.x), first


@pytest.mark.parametrize(
    ("name", "file", "samples", "frames", "off"),
    [
        ("advection", "advection.hdf5", range(32), None, 1e-5),
        ("burgers", "burgers.hdf5", range(2), 61, 1e-5),
        ("reaction-diffusion", "reacdiff.hdf5", [0, 1, 5, 13, 23], None, 1e-6),
        ("navier-stokes", "cns1d.hdf5", range(2), 11, 1e-5),
        ("darcy", "darcy.hdf5", range(1), None, 1e-7),
    ],
)
def test_published_data_are_reproduced(
    name: str, file: str, samples: Sequence[int], frames: int | None, off: float
) -> None:
    problem, inputs, data = published(name, file, samples, frames)
    found = family_of(problem).solve_pdebench(problem, inputs.arrays, inputs.t)
    assert {values.dtype for values in found.values()} == {np.dtype(np.float32)}
    assert relative_l2(together(found), together(data)).max() < off
    if name == "reaction-diffusion":
        assert (found["u"] == data["u"]).mean() > 0.99


def audited(problem: str, file: str, samples: int) -> Audit:
    return audit_dataset(load_problem(problem), published_file(file), samples=samples)


def test_the_error_of_published_advection() -> None:
    audit = audited("advection", "advection.hdf5", 32)
    assert 0.8e-3 < np.mean(audit.error) < 1.6e-3
    assert np.mean(audit.data_error) == pytest.approx(np.mean(audit.error), rel=0.01)
    assert np.mean(audit.reference_error) < 0.2 * np.mean(audit.data_error)


def test_the_error_of_published_burgers() -> None:
    audit = audited("burgers", "burgers.hdf5", 2)
    assert all(1e-4 < error < 1e-3 for error in audit.data_error)
    assert max(audit.reference_error) < min(1e-4, 0.5 * min(audit.data_error))


def test_the_error_of_published_reaction_diffusion() -> None:
    audit = audited("reaction-diffusion", "reacdiff.hdf5", 8)
    assert 0.13 < np.mean(audit.error) < 0.16
    assert np.mean(audit.data_error) > np.mean(audit.error)
    assert max(audit.reference_error) < 1e-5
    assert np.mean(audit.residual) > 3 * np.mean(audit.reference_residual)
    on_cpu = audited("reaction-diffusion", "reacdiff_cpu.hdf5", 8)
    assert 0.13 < np.mean(on_cpu.error) < np.mean(audit.error)


def test_the_error_of_published_darcy_flow() -> None:
    _, inputs, data = published("darcy", "darcy.hdf5", range(1))
    coarse = darcy.finite_elements(inputs.arrays["a"][0].astype(float), 1.0, 2)
    assert relative_l2(coarse[None], data["u"].astype(float))[0] == pytest.approx(5.2e-3, rel=0.05)


def test_published_reaction_diffusion_data_do_not_satisfy_their_equation() -> None:
    problem, inputs, data = published("reaction-diffusion", "reacdiff.hdf5", range(4))
    assert residual(problem, inputs, data).value > 0.3


def test_published_gas_data_have_kinematic_viscosity() -> None:
    _, inputs, data = published("navier-stokes", "cns1d.hdf5", range(1), 16)
    solve = family_of(gas_problem()).solve_reference
    kinematic, dynamic = (
        relative_l2(
            together(data), together(solve(gas_problem(law), inputs.arrays, inputs.t, tolerance=1e-4).arrays)
        )[0]
        for law in (True, False)
    )
    assert kinematic < 4e-3
    assert dynamic > 10 * kinematic


def test_published_gas_data_satisfy_the_equations_with_kinematic_viscosity() -> None:
    _, inputs, data = published("navier-stokes", "cns1d.hdf5", range(4))
    kinematic, dynamic = (
        residual(gas_problem(law, points=1024, times=101, end=1.0), inputs, data) for law in (True, False)
    )
    assert kinematic.per_equation["momentum"] < 2e-3
    assert dynamic.per_equation["momentum"] > 0.05
