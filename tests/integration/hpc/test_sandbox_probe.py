"""Choosing a tier, the refusal where there is none, and the Apptainer tier with a stand-in for its program."""

from __future__ import annotations

import logging
import os
import platform
import sys
from pathlib import Path

import pytest

from hpc.errors import InfrastructureError
from hpc.sandbox import (
    ApptainerSandbox,
    BubblewrapSandbox,
    ForkServerInterpreter,
    FreshInterpreter,
    LandlockSandbox,
    RlimitsSandbox,
    SandboxPolicy,
    open_interpreter,
    probe_tiers,
)
from hpc.sandbox import (
    tier_selection as choice,
)
from hpc.sandbox.inside import landlock
from hpc.sandbox.inside import seccomp as calls
from hpc.sandbox.view import AccessPaths
from tests.helpers import ROOT
from tests.helpers.sandbox.sandbox_tiers import TIERS, nothing_left, run_script


@pytest.fixture
def afresh(monkeypatch):
    """Forget what probing has found, before and after."""
    choice._try.cache_clear()
    choice._warn.cache_clear()
    yield monkeypatch
    choice._try.cache_clear()


@pytest.fixture
def no_bubblewrap(afresh):
    afresh.setattr("hpc.sandbox.tiers._bubblewrap", lambda: "/no/such/bwrap")


@pytest.fixture
def no_landlock(afresh):
    afresh.setattr(landlock, "abi", lambda: 0)


def test_every_tier_is_probed_in_order():
    found = probe_tiers()
    assert [item.tier for item in found] == ["bubblewrap", "landlock", "apptainer", "rlimits"]
    assert found[-1].usable
    assert all(item.reason.endswith(".") for item in found)


def test_auto_takes_the_first_that_is_usable():
    first = next(item for item in probe_tiers() if item.usable)
    with open_interpreter(SandboxPolicy()) as chosen:
        assert chosen.tier == first.tier
        assert chosen.note.startswith("Programs can ")


@pytest.mark.parametrize("name", TIERS)
@pytest.mark.parametrize("warm", [True, False])
def test_a_named_tier_is_taken(name, warm, tmp_path):
    (probed,) = (item for item in probe_tiers() if item.tier == name)
    if not probed.usable:
        pytest.skip(f"{name}: {probed.reason}")
    with nothing_left(), open_interpreter(SandboxPolicy(name), warm=warm) as chosen:
        assert chosen.tier == name
        assert run_script(chosen, tmp_path / "one", "print('ran')").stdout == "ran\n"


@pytest.mark.usefixtures("no_bubblewrap")
def test_the_next_tier_is_taken_and_the_note_says_why():
    if not landlock.abi():
        pytest.skip("this kernel does not offer Landlock")
    with open_interpreter(SandboxPolicy()) as chosen:
        assert chosen.tier == "landlock"
        assert "Not bubblewrap: /no/such/bwrap could not be started" in chosen.note


@pytest.mark.usefixtures("no_bubblewrap", "no_landlock")
def test_without_any_sandbox_there_is_one_warning(caplog):
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            open_interpreter(SandboxPolicy()).close()
    (record,) = caplog.records
    assert f"No OS sandbox on {platform.node()} (bubblewrap: " in record.getMessage()
    assert "docs/explanations/sandbox.md" in record.getMessage()


@pytest.mark.usefixtures("no_bubblewrap", "no_landlock")
def test_required_sandbox_that_is_missing_is_refused():
    with pytest.raises(InfrastructureError) as caught:
        open_interpreter(SandboxPolicy(require=True))
    message = str(caught.value)
    for part in (
        "bubblewrap: /no/such/bwrap",
        "landlock: This kernel",
        "user.max_user_namespaces",
        "docs/explanations/sandbox.md",
    ):
        assert part in message


def test_mere_limits_are_not_what_was_required():
    with pytest.raises(InfrastructureError, match="only limits"):
        open_interpreter(SandboxPolicy("rlimits", require=True))


def test_apptainer_without_an_image_is_refused():
    with pytest.raises(InfrastructureError, match="No image is configured"):
        open_interpreter(SandboxPolicy("apptainer"))


def test_a_tier_that_lets_a_program_read_files_is_not_usable(afresh):
    afresh.setattr(LandlockSandbox, "files_bound", False)
    (found,) = (item for item in probe_tiers() if item.tier == "landlock")
    assert not found.usable
    assert "read files outside" in found.reason


@pytest.mark.usefixtures("no_landlock")
def test_bubblewrap_without_landlock_still_protects_but_is_never_warm():
    if not next(item for item in probe_tiers() if item.tier == "bubblewrap").usable:
        pytest.skip("bubblewrap is not usable here")
    with open_interpreter(SandboxPolicy("bubblewrap"), warm=True) as chosen:
        assert not chosen.warm
        assert "cannot keep forks" in chosen.note


def test_bubblewrap_without_the_filter_of_calls_still_refuses_the_network(afresh):
    if not next(item for item in probe_tiers() if item.tier == "bubblewrap").usable:
        pytest.skip("bubblewrap is not usable here")
    choice._try.cache_clear()
    afresh.setattr(calls, "available", lambda: False)
    assert next(item for item in probe_tiers() if item.tier == "bubblewrap").usable


def test_the_file_system_of_bubblewrap_holds_no_home_and_no_project():
    command = BubblewrapSandbox().wrap(AccessPaths.of([Path("/data/given")], [Path("/data/runs/one")]))
    bound = {
        Path(b)
        for a, b, c in zip(command, command[1:], command[2:], strict=False)
        if a.endswith("bind") and b == c
    }
    home, project = Path.home(), ROOT
    assert not {home, project, *home.parents, *project.parents} & bound
    assert command.index("/data/given") < command.index("--remount-ro")
    assert command[command.index("/data/runs/one") - 1] == "--bind"
    assert command[-1] == "--"


def test_the_command_line_of_apptainer(afresh, tmp_path):
    stand_in(afresh, tmp_path)
    command = ApptainerSandbox(Path("solvers.sif")).wrap(
        AccessPaths.of([Path("/data/given")], [Path("/data/runs/one")])
    )
    assert command[0] == str(tmp_path / "bin" / "apptainer")
    assert {"exec", "--containall", "--no-home", "--cleanenv"} <= set(command)
    assert "/data/given:/data/given:ro" in command
    assert "/data/runs/one:/data/runs/one:rw" in command
    assert command[-1] == str(Path("solvers.sif").absolute())


def test_apptainer_that_is_not_installed_is_said_to_be_missing(afresh, tmp_path):
    afresh.setenv("PATH", str(tmp_path))
    with pytest.raises(InfrastructureError, match="no program apptainer"):
        ApptainerSandbox(tmp_path).wrap(AccessPaths((), ()))


@pytest.mark.parametrize("warm", [True, False])
def test_plumbing_of_the_apptainer_tier_with_a_stand_in_that_isolates_nothing(afresh, tmp_path, warm):
    stand_in(afresh, tmp_path)
    sandbox = ApptainerSandbox(tmp_path / "image")
    sandbox.python = sys.executable
    if not sandbox.isolates_forks() or not landlock.abi():
        pytest.skip("this kernel does not offer Landlock with scopes")
    afresh.setattr(sandbox, "readable", RlimitsSandbox().readable)
    kind = ForkServerInterpreter if warm else FreshInterpreter
    with nothing_left(), kind(sandbox) as opened:
        done = run_script(
            opened, tmp_path / "runs" / "one", "import os; print(os.listdir('.')); os.listdir('/home')"
        )
    assert "script.py" in done.stdout
    assert "PermissionError" in done.stderr


def stand_in(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Put a program `apptainer` on the PATH that drops its options and the image, and runs the command."""
    program = folder / "bin" / "apptainer"
    program.parent.mkdir()
    drop = 'case "$1" in --bind) shift 2;; --*) shift;; *) break;; esac'
    program.write_text(f'#!/bin/sh\nshift\nwhile :; do {drop}; done\nshift\nexec "$@"\n')
    program.chmod(0o755)
    patch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
