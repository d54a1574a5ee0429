from tests.helpers import ROOT

STAND_IN = ROOT / "tests" / "helpers" / "cluster" / "stand_in_server.py"  # runs where only Python itself is
