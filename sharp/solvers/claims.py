"""Claimed solutions as people write them down: files of arrays, an expression for each field, eigenvalues."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sharp.error_messages import valid_values
from sharp.errors import InputError
from sharp.problems import Problem, compile_expressions, to_sympy
from sharp.solvers.user_solution import Candidate


def read_claim(path: Path) -> dict[str, Any]:
    """Return the arrays of an .npz or .nc file by their names; raises `InputError`."""
    if path.suffix not in (".npz", ".nc"):
        raise InputError(f"{path}: expected a file of arrays, as solution.npz; valid endings: .nc, .npz")
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
        return _read_netcdf(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: expected arrays: {error}") from None


def _read_netcdf(path: Path) -> dict[str, Any]:
    try:
        import xarray
    except ModuleNotFoundError:
        raise InputError(
            f"{path}: NetCDF needs the package xarray; install it with: pip install 'pde-sharp[xarray]'"
        ) from None
    with xarray.open_dataset(path) as dataset:
        return {str(name): values.to_numpy() for name, values in dataset.variables.items()}


def claim_of(problem: Problem, texts: Mapping[str, str]) -> Candidate:
    """Return what texts claim: an expression for each field, or eigenvalues, separated by commas, under their name.

    Expressions are in the coordinates and parameters. Raises `InputError`, and `SpecificationError` for expressions
    outside the grammar.
    """
    eigenvalue = problem.specification.eigenvalue
    if eigenvalue is not None and set(texts) == {eigenvalue.name}:
        try:
            return {eigenvalue.name: [float(each) for each in texts[eigenvalue.name].split(",")]}
        except ValueError:
            raise InputError(
                f"{eigenvalue.name}: expected numbers with commas between them, found {texts[eigenvalue.name]!r}"
            ) from None
    for name in sorted({*texts} - {*problem.fields}):
        raise InputError(f"claim: there is no field {name!r}; {valid_values('fields', name, problem.fields)}")
    for name in sorted({*problem.fields} - {*texts}):
        raise InputError(f"claim: expected an expression for each field; {name!r} is missing")
    names = [*problem.space, *([problem.time_name] if problem.time_name else []), *problem.parameters]
    program = compile_expressions([to_sympy(problem.tree(texts[name])) for name in problem.fields], names)

    def values(*coordinates: Any) -> list[Any]:
        shape = np.broadcast_shapes(*map(np.shape, coordinates))
        found = program(*coordinates, *problem.parameters.values())
        return [np.broadcast_to(np.asarray(each, dtype=float), shape) for each in found]

    return values
