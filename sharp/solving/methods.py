"""The methods of solution by name, loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sharp.solving.method import Method


def _chebyshev() -> Method:
    from sharp.solving.tensor_methods import Chebyshev

    return Chebyshev()


def _fourier() -> Method:
    from sharp.solving.tensor_methods import Fourier

    return Fourier()


def _differences() -> Method:
    from sharp.solving.tensor_methods import Differences

    return Differences()


def _polar() -> Method:
    from sharp.solving.polar import Polar

    return Polar()


def _elements() -> Method:
    from sharp.solving.fem import FiniteElements

    return FiniteElements()


def _volumes() -> Method:
    from sharp.solving.finite_volume import FiniteVolumes

    return FiniteVolumes()


def _pinn() -> Method:
    from sharp.solving.pinn import Pinn

    return Pinn()


METHODS: Mapping[str, Callable[[], Method]] = {
    "chebyshev": _chebyshev,
    "fourier": _fourier,
    "fd": _differences,
    "polar": _polar,
    "fem": _elements,
    "fv": _volumes,
    "pinn": _pinn,
}


def all_methods() -> list[Method]:
    """Return every method, in the order of `METHODS`."""
    return [make() for make in METHODS.values()]
