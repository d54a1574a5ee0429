"""The bounds of every tier, each broken on purpose by a small program."""

from __future__ import annotations

import os
import platform
import signal
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest

from hpc.errors import InfrastructureError
from hpc.sandbox import (
    ANSWERS_FD,
    EVENTS_FD,
    AccessPaths,
    PipeResponder,
    RunTerms,
    SandboxLimits,
    SandboxResult,
    Tier,
    clean_environment,
    gpu_devices,
    no_answer,
)
from tests.helpers.sandbox.sandbox_tiers import BOUNDS, TIERS, nothing_left, tier


@pytest.fixture(params=TIERS)
def sandbox(request):
    """Each tier that this machine has."""
    return tier(request.param)


@pytest.fixture
def run(sandbox, tmp_path: Path):
    """Run a Python program in each tier, and check that nothing of it is left afterwards."""
    with nothing_left():
        yield partial(run_program, sandbox, tmp_path)


@pytest.fixture
def run_once(tmp_path: Path):
    """The same in one tier, for what all have in common."""
    with nothing_left():
        yield partial(run_program, tier("rlimits"), tmp_path)


def run_program(
    sandbox: Tier,
    scratch: Path,
    program: str,
    bounds: SandboxLimits = BOUNDS,
    answer: PipeResponder = no_answer,
    **environment: str,
) -> SandboxResult:
    command = [sys.executable, "-I", "-S", "-u", "-c", program]
    return sandbox.run(command, RunTerms(AccessPaths.of((), [scratch]), bounds, environment, answer))


def test_reports_exit_output_and_use(run):
    done = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (done.exit_code, done.signal) == (3, None)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert (done.timed_out, done.memory_exceeded, done.processes_exceeded) == (False, False, False)
    assert 0 < done.cpu_s <= done.wall_s + 1
    assert done.peak_rss_mb > 3
    killed = run("import os; os.kill(os.getpid(), 9)")
    assert (killed.exit_code, killed.signal, killed.timed_out) == (None, signal.SIGKILL, False)


def test_environment_holds_no_secrets_and_a_private_home(run, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("https_proxy", "http://proxy")
    done = run("import os; print(sorted(os.environ.items())); print(os.getcwd())", EXTRA="yes")
    listing, folder = done.stdout.splitlines()
    variables = dict(eval(listing))
    assert set(variables) - {EVENTS_FD, ANSWERS_FD, "EXTRA", "LC_CTYPE"} == set(
        clean_environment(tmp_path, 1)
    )
    assert "secret" not in listing
    assert "proxy" not in listing
    assert variables["HOME"] == folder == str(tmp_path)
    assert variables["TMPDIR"] in (
        folder,
        "/tmp",
        "/dev/shm/tmp",
    )  # a folder of its own where the kernel lets it
    assert variables["OMP_NUM_THREADS"] == variables["NPROC"] == "1"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only that C library is told so")
def test_memory_that_was_freed_is_used_again(run):
    program = (
        "import resource\n"
        "def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "def work(): [bytes(400_000) for _ in range(9)]\n"
        "work(); before = faults()\n"
        "for _ in range(20): work()\n"
        "print(faults() - before)"
    )
    assert int(run(program).stdout) < 1000  # 9 arrays of 98 pages, 20 times, where each is got anew


def test_session_descriptors_and_files_are_its_own(run, tmp_path):
    done = run(
        "import os, sys; open('made', 'w').close()\n"
        "print((sys.stdin.read(), len(os.listdir('/proc/self/fd')), os.getsid(0) == os.getpid()))"
    )
    # Descriptors: three standard ones, two private pipes, the listing itself.
    assert eval(done.stdout) == ("", 6, True)
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o600


def test_limits_of_the_kernel_are_set_before_the_first_line(run):
    names = "[r.RLIMIT_CORE, r.RLIMIT_FSIZE, r.RLIMIT_NOFILE, r.RLIMIT_CPU, r.RLIMIT_DATA]"
    program = f"import resource as r; print([r.getrlimit(n)[0] for n in {names}])"
    *limits, data = eval(run(program, replace(BOUNDS, file_mb=3, wall_s=7, threads=2)).stdout)
    assert limits == [1, 3 << 20, 1024, 29]
    assert data == -1 if gpu_devices() else data > BOUNDS.memory_mb << 20


def test_program_cannot_gain_privileges(run):
    status = run("print(open('/proc/self/status').read())").stdout
    assert "NoNewPrivs:\t1\n" in status
    assert "CapEff:\t0000000000000000\n" in status
    assert "CapBnd:\t0000000000000000\n" in status or os.getuid() != 0


def test_file_beyond_its_limit_cannot_be_written(run, tmp_path):
    done = run("open('big', 'wb').write(bytes(2 << 20))", replace(BOUNDS, file_mb=1))
    assert done.exit_code == 1
    assert "File too large" in done.stderr
    assert (tmp_path / "big").stat().st_size <= 1 << 20


def test_endless_loop_is_stopped_at_the_wall_limit(run):
    started = time.monotonic()
    done = run("print('begun')\nwhile True: pass", replace(BOUNDS, wall_s=2))
    assert time.monotonic() - started < 60
    assert done.timed_out
    assert done.signal == signal.SIGTERM
    assert 2 <= done.wall_s < 30
    assert done.stdout == "begun\n"


def test_program_that_ignores_sigterm_is_killed(run_once):
    started = time.monotonic()
    done = run_once(
        "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)", replace(BOUNDS, wall_s=2)
    )
    assert time.monotonic() - started < 60
    assert (done.timed_out, done.signal) == (True, signal.SIGKILL)


def test_processor_time_beyond_its_limit_counts_as_time_out(run_once):
    lower = "import resource as r, time; time.sleep(.2); r.setrlimit(r.RLIMIT_CPU, (1, 2))"
    done = run_once(f"{lower}\nwhile True: pass")
    assert (done.timed_out, done.signal) == (True, signal.SIGXCPU)


def test_processor_time_of_all_processes_counts(run_once, monkeypatch):
    # No process takes much itself, most are gone at every look, and all end in good order if nobody adds them up.
    program = """
        import os, time
        for _ in range(20):
            if not (child := os.fork()):
                if not os.fork():
                    while time.process_time() < 0.2: pass
                os._exit(0)
            os.waitpid(child, 0)
            time.sleep(0.25)
        print("not counted")
    """
    monkeypatch.setattr("hpc.sandbox.supervise.processor_s", lambda _: 1)
    done = run_once(dedent(program), replace(BOUNDS, wall_s=60))
    assert (done.timed_out, done.stdout) == (True, "")


def test_memory_is_bounded(run):
    bomb = "import time; kept = []\nwhile True: kept.append(bytearray(b'x') * (8 << 20)); time.sleep(.002)"
    done = run(bomb, replace(BOUNDS, memory_mb=200))
    assert done.memory_exceeded
    assert 200 < done.peak_rss_mb < 8000  # how far it overshoots is up to the machine's scheduler


@pytest.mark.skipif(bool(gpu_devices()), reason="a GPU's driver reserves more memory than could be bounded")
def test_memory_at_one_stroke_is_refused_by_the_kernel(run):
    done = run("try: bytearray(8 << 30)\nexcept MemoryError: print('refused')")
    assert (done.stdout, done.memory_exceeded) == ("refused\n", False)


def test_memory_of_children_counts(run_once):
    program = (
        "import os, time\n"
        "for _ in range(4):\n"
        "    if not os.fork(): kept = bytearray(b'x') * (60 << 20); time.sleep(60)\n"
        "time.sleep(60)"
    )
    assert run_once(program, replace(BOUNDS, memory_mb=200)).memory_exceeded


def test_number_of_processes_is_bounded(run):
    program = "import os, time\nfor _ in range(40):\n    if not os.fork(): time.sleep(600)\ntime.sleep(600)"
    done = run(program, replace(BOUNDS, processes=20))
    assert (done.processes_exceeded, done.timed_out) == (True, False)


def test_doubling_processes_are_ended(run):
    program = "import os, time\nfor _ in range(9): os.fork()\ntime.sleep(60)"
    assert run(program, replace(BOUNDS, processes=20)).processes_exceeded


DAEMON = """
import os, time
if not os.fork():
    os.setsid()
    if os.fork(): os._exit(0)
    os.setsid()
    open('daemon', 'w').close()
    time.sleep(60)
while not os.path.exists('daemon'): time.sleep(.01)
"""


@pytest.mark.parametrize(
    ("ending", "timed_out"), [("", False), ("while True: pass", True), ("os._exit(0)", False)]
)
def test_daemon_in_another_session_is_ended(run, ending, timed_out):
    bounds = replace(BOUNDS, wall_s=2 if timed_out else BOUNDS.wall_s)
    assert run(DAEMON + ending, bounds).timed_out is timed_out  # the fixture looks for it


def test_program_that_kills_all_it_can_ends_alone(run):
    done = run("import os\ntry: os.kill(-1, 9)\nexcept PermissionError: print('refused')")
    assert (done.stdout, done.exit_code) == ("refused\n", 0)


def test_scratch_space_is_bounded(run):
    program = (
        "import time; n = 0\nwhile True: n += 1; open(f'f{n}', 'wb').write(bytes(1 << 20)); time.sleep(.005)"
    )
    assert run(program, replace(BOUNDS, scratch_mb=8, file_mb=4)).disk_exceeded


@pytest.mark.parametrize(
    "program",
    [
        "n = 0\nwhile True: n += 1; open(f'f{n}', 'wb').close()",
        "import os\nwhile True: os.mkdir('d'); os.chdir('d'); open('f', 'wb').write(bytes(1 << 20)); time.sleep(.005)",
        "import os\nkept = []\nwhile True:\n    kept.append(open('f', 'wb')); os.unlink('f'); "
        "kept[-1].write(bytes(1 << 20)); kept[-1].flush(); time.sleep(.005)",
    ],
    ids=["empty files", "folders", "deleted files"],
)
def test_scratch_space_cannot_be_filled_otherwise(run_once, program):
    done = run_once(f"import time\n{program}", replace(BOUNDS, scratch_mb=8, file_mb=4))
    assert done.disk_exceeded


def test_entries_of_the_folder_are_bounded(run_once):
    program = "import os\nfor n in range(3000): os.mkdir(str(n))"
    assert run_once(program, replace(BOUNDS, entries=2000)).disk_exceeded
    assert not run_once(program, replace(BOUNDS, entries=4000)).disk_exceeded


def test_a_bound_that_is_broken_at_the_last_moment_is_broken(run_once):
    done = run_once("x = bytearray(450 << 20)\nimport os\nos._exit(0)", replace(BOUNDS, memory_mb=300))
    assert done.memory_exceeded


def test_scratch_space_counts_at_the_end(run_once):
    assert run_once("open('f', 'wb').write(bytes(3 << 20))", replace(BOUNDS, scratch_mb=2)).disk_exceeded


def test_folder_that_cannot_be_looked_into_counts_as_full(run, tmp_path):
    done = run("import os; os.mkdir('d', 0)")
    (tmp_path / "d").chmod(0o700)
    assert done.disk_exceeded is (os.getuid() != 0)  # root may look into every folder


def test_long_output_is_capped_and_keeps_head_and_tail(run_once):
    done = run_once(
        "print('first'); print('x' * 10_000_000); print('last')", replace(BOUNDS, output_bytes=1000)
    )
    assert done.exit_code == 0
    assert done.stdout.startswith("first\nxxx")
    assert done.stdout.endswith("xxx\nlast\n")
    assert "[... 9999012 bytes left out ...]" in done.stdout
    assert len(done.stdout) < 1100


@pytest.mark.parametrize("descriptor", [1, 2, 3])
def test_flood_of_output_is_stopped(run_once, descriptor):
    flood = f"import os\nwhile True: os.write({descriptor}, bytes(1 << 16))"
    done = run_once(flood, replace(BOUNDS, output_mb=20))
    assert done.output_exceeded
    assert len(done.stdout) < 20_000


def test_undecodable_output_is_replaced(run_once):
    assert run_once("import os; os.write(1, b'ok \\xff\\xfe')").stdout == "ok ��"


ANNOUNCE = f"import os, time\nfd = int(os.environ['{EVENTS_FD}'])\n"


def test_events_carry_the_time_of_their_arrival(run):
    program = "for word in (b'call', b'done'): os.write(fd, word + b'\\n'); time.sleep(2)"
    (call, first), (done, second) = run(ANNOUNCE + program).events
    assert (first, second) == ("call", "done")
    assert 0.5 < done - call < 60


ASK = (
    ANNOUNCE
    + f"""
answers = os.fdopen(int(os.environ['{ANSWERS_FD}']))
os.write(fd, b'how many?\\nwhat for?\\nwhich?\\n')
print(answers.readline(), answers.readline(), end='', flush=True)
"""
)


def test_lines_are_answered_in_turn_and_answers_are_kept_among_them(run):
    answers = {"how many?": "two", "which?": "both"}
    done = run(ASK, answer=answers.get)
    assert done.stdout == "two\n both\n"
    assert [line for _, line in done.events] == ["how many?", "two", "what for?", "which?", "both"]
    moments = {line: moment for moment, line in done.events}
    assert moments["how many?"] <= moments["two"] <= moments["both"]


def test_answers_may_be_missed(run_once):
    tell = "for _ in range(300): os.write(fd, b'more\\n')\nos._exit(0)"
    done = run_once(
        f"{ANNOUNCE}os.close(int(os.environ['{ANSWERS_FD}']))\n{tell}", answer=lambda _: "y" * 5000
    )
    assert done.exit_code == 0


def test_what_an_answer_raises_ends_the_program(run_once):
    def refuse(line: str) -> None:
        raise InfrastructureError(f"Nothing is known of {line}.")

    with pytest.raises(InfrastructureError, match=r"Nothing is known of how many\?"):
        run_once(f"{ASK}time.sleep(600)", answer=refuse)


def test_flood_of_events_is_cut_off(run_once):
    events = run_once(ANNOUNCE + "for _ in range(300): os.write(fd, b'y' * 3000 + b'\\n')").events
    assert len(events) == 100
    assert {len(line) for _, line in events} == {200}


def test_program_that_closes_its_streams_is_still_watched(run_once):
    done = run_once(
        "import os, time; [os.close(n) for n in (1, 2)]; time.sleep(60)", replace(BOUNDS, wall_s=0.5)
    )
    assert done.timed_out


def test_missing_program_is_the_machines_fault(sandbox, tmp_path):
    with pytest.raises(InfrastructureError, match=r"no-such-program could not be started"):
        sandbox.run(["/no-such-program"], RunTerms(AccessPaths.of((), [tmp_path]), BOUNDS))


def test_interruption_ends_the_program(run, monkeypatch):
    def _interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("hpc.sandbox.supervise.ProcessTree.look", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(DAEMON + "time.sleep(60)")
