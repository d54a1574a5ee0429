"""`sharp sandbox` tells what each tier came to, and which one a run would take."""

from __future__ import annotations

from dataclasses import asdict

from hpc.sandbox import SandboxPolicy, limit_keepers, open_interpreter, probe_tiers
from tests.helpers.cli.sharp_command import Sharp


def test_every_tier_is_told(sharp: Sharp) -> None:
    lines = sharp("sandbox").stdout.splitlines()[1:]
    for tier, line in zip(probe_tiers(), lines, strict=False):
        assert line.split()[:2] == [tier.tier, "works" if tier.usable else "-"]
        assert line.endswith(tier.reason)
    with open_interpreter(SandboxPolicy()) as chosen:
        assert any(line.startswith(f"auto takes {chosen.tier} here") for line in lines)


def test_all_is_told_as_json(sharp: Sharp) -> None:
    told = sharp.json("sandbox")
    assert told["tiers"] == [asdict(tier) for tier in probe_tiers()]
    assert told["limits"] == limit_keepers()
    with open_interpreter(SandboxPolicy()) as chosen:
        assert told["auto"] == {"tier": chosen.tier, "warm": chosen.warm, "note": chosen.note}


def test_an_image_that_is_not_there_is_an_error(sharp: Sharp) -> None:
    assert "does not exist" in sharp.fails(2, "sandbox", "--image", "no.sif")
