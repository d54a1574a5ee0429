from tests.helpers import ROOT

STAND_IN = ROOT / "tests" / "helpers" / "cluster" / "stand_in_server.py"  # runs where only Python itself is
CARD = """\
name: stand-in
served_name: Org/Stand-In
description: stands in for a model
context: 1000000
sampling: {temperature: 0.7, max_tokens: 16384}
vllm: {weights: /models/none, gpus: 1}
"""
