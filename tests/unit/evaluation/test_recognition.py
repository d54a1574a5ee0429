import h5py
import numpy as np
import pytest

from sharp.errors import DataError
from sharp.evaluation.recognition import recognise
from tests.helpers import ROOT

SHARED = ROOT.parent / "shared" / "data" / "pdebench"


def write(path, arrays, **attrs):
    with h5py.File(path, "w") as file:
        file.update(arrays)
        file.attrs.update(attrs)
    return path


def tensor(frames=101):
    return {"tensor": np.zeros((2, frames, 64), dtype=np.float32)}


@pytest.mark.parametrize(
    ("attrs", "wanted"),
    [
        ({"beta": 0.1}, "advection"),
        ({"Nu": 0.01}, "burgers"),
        ({"Nu": 0.5, "rho": 1.0}, "reaction-diffusion"),
        ({"problem": "burgers@0123"}, "burgers"),
    ],
)
def test_stated_parameters_decide(tmp_path, attrs, wanted):
    assert recognise(write(tmp_path / "x.hdf5", tensor(), **attrs)).id == wanted


def test_a_file_that_states_nothing_is_asked_about(tmp_path):
    with pytest.raises(DataError, match=r"advection, burgers, reaction-diffusion; say which with --problem"):
        recognise(write(tmp_path / "x.hdf5", tensor()))


def test_a_foreign_file_is_refused_with_the_reasons(tmp_path):
    with pytest.raises(DataError, match=r"none of the known problems(.|\n)*darcy: expected a data set `sol`"):
        recognise(write(tmp_path / "x.hdf5", {"other": np.zeros(3)}))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared reference data are not beside this checkout")
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("advection", "advection"),
        ("burgers", "burgers"),
        ("cns1d", "navier-stokes"),
        ("darcy", "darcy"),
        ("reacdiff", "reaction-diffusion"),
        ("reacdiff_cpu", "reaction-diffusion"),
    ],
)
def test_files_of_an_independent_generator_are_recognised(name, wanted):
    assert recognise(SHARED / f"{name}.hdf5").id == wanted
