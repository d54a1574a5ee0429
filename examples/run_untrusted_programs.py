"""Run programs that nobody has read, within bounds: the sandbox alone, without equations or models.

python examples/run_untrusted_programs.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from hpc.sandbox import Interpreter, SandboxLimits, SandboxPolicy, SandboxResult, open_interpreter

PROGRAMS = {
    "honest": "import numpy; print('the sum is', numpy.arange(10).sum())",
    "endless": "while True: pass",
    "greedy": "held = [bytearray(1 << 24) for _ in range(1 << 10)]",
    "curious": f"print(open({str(Path(__file__).resolve())!r}).read())",
    "talkative": "import socket; socket.create_connection(('127.0.0.1', 9), 1)",
}
LIMITS = SandboxLimits(wall_s=2, memory_mb=512)


def run(interpreter: Interpreter, code: str) -> SandboxResult:
    """Run one program in an empty folder of its own, the only place that it may write to."""
    with TemporaryDirectory() as folder:
        script = Path(folder) / "program.py"
        script.write_text(code)
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        return interpreter.run(script, scratch=scratch, bounds=LIMITS, environment={}, preload=("numpy",))


def told(result: SandboxResult) -> str:
    """Return in words how a program ended."""
    if result.timed_out:
        return f"stopped after {LIMITS.wall_s:g} s"
    if result.memory_exceeded:
        return f"stopped at {LIMITS.memory_mb} MB"
    said = (result.stdout or result.stderr).strip().splitlines()
    return f"exit code {result.exit_code}: {said[-1] if said else 'nothing was printed'}"


if __name__ == "__main__":
    with open_interpreter(SandboxPolicy(require=True)) as interpreter:
        print(f"{interpreter.tier}: {interpreter.note}")
        for name, code in PROGRAMS.items():
            print(f"{name:10} {told(run(interpreter, code))}")
