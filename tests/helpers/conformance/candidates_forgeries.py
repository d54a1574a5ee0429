"""Candidates that leave results which are not what they seem."""

from __future__ import annotations

from tests.helpers.conformance.hostile import (
    CHANGE_FILES,
    HONEST,
    WORSE,
    Candidate,
    on_import,
    outcomes,
    within,
)

_FORGE = """
import json
CALL = json.load(open("calls.json"))["calls"][0]["name"]
OUTPUT, LEFT = f"output-{CALL}-u.npy", f"report-{CALL}.json"

def forge(u):
    returned = {"u": {"dtype": "float64", "shape": u.shape}}
    about = {"python": "3", "numpy": "2", "device": "cpu"}
    json.dump({"failure": None, "returned": returned, "environment": about}, open(LEFT, "w"))
    os._exit(0)
"""


def _leaving(body: str) -> str:
    """Return a program that leaves files in the place of the harness' own before it returns."""
    return within(body, _FORGE)


def _forged(make: str) -> str:
    """Return a program that makes an output file, forges a good outcome and leaves before the harness."""
    return _leaving(f"{make}\nforge(u)")


FORGERIES = (
    Candidate(
        "link to the answer",
        "leaves a symbolic link to an array outside as its output",
        _forged("os.symlink('@ANSWER@', OUTPUT)"),
        outcomes("sandbox_violation"),
    ),
    Candidate(
        "link to the answer before the call",
        "makes its output's name a symbolic link to a file outside, for the harness to write through",
        on_import(f"{_FORGE}\nos.symlink('@OUTSIDE@/@MARK@.npy', OUTPUT)"),
        outcomes("sandbox_violation"),
        do=CHANGE_FILES,
    ),
    Candidate(
        "hard link to the answer",
        "leaves a hard link to an array outside as its output",
        _forged("os.link('@ANSWER@', OUTPUT)"),
        outcomes("exception"),
        do=CHANGE_FILES,
    ),
    Candidate(
        "pipe as output",
        "leaves a named pipe as its output, on which a reader would wait for ever",
        _forged("os.mkfifo(OUTPUT)"),
        outcomes("sandbox_violation"),
    ),
    Candidate(
        "folder as output",
        "leaves a folder as its output",
        _forged("os.mkdir(OUTPUT)"),
        outcomes("sandbox_violation"),
    ),
    Candidate(
        "socket as output",
        "leaves a socket as its output",
        _forged("socket.socket(socket.AF_UNIX).bind(OUTPUT)"),
        outcomes("sandbox_violation", "exception"),
    ),
    Candidate(
        "device as output",
        "leaves a link to an endless device as its output",
        _forged("os.symlink('/dev/zero', OUTPUT)"),
        outcomes("sandbox_violation"),
    ),
    Candidate(
        "pickle as output",
        "leaves a pickle with a command in it as its output",
        _forged("""
import pickle
class Run:
    def __reduce__(self): return os.system, ('touch @OUTSIDE@/@MARK@',)
pickle.dump(Run(), open(OUTPUT, 'wb'))
"""),
        outcomes("sandbox_violation"),
    ),
    Candidate(
        "objects as output",
        "leaves an array of pickled objects as its output",
        _forged("""
class Run:
    def __reduce__(self): return os.system, ('touch @OUTSIDE@/@MARK@',)
np.save(OUTPUT, np.array([Run()], dtype=object), allow_pickle=True)
"""),
        outcomes("sandbox_violation"),
    ),
    Candidate(
        "lying header",
        "leaves an output whose header promises more than the file holds",
        _forged("np.save(OUTPUT, u)\nopen(OUTPUT, 'r+b').truncate(200)"),
        outcomes("sandbox_violation"),
    ),
    Candidate(
        "monstrous header",
        "leaves an output whose header has a length of 4 GB",
        _forged("open(OUTPUT, 'wb').write(b'\\x93NUMPY\\x02\\x00\\xff\\xff\\xff\\xff{')"),
        outcomes("sandbox_violation"),
    ),
    Candidate(
        "no output", "forges a good outcome and leaves no output", _forged(""), outcomes("sandbox_violation")
    ),
    Candidate(
        "forged output",
        "writes outcome and output by itself; what it wrote is what is scored",
        _forged("np.save(OUTPUT, 1.01 * u)"),
        outcomes(WORSE),
    ),
    Candidate(
        "forged failure",
        "claims that the machine failed",
        _leaving("""
open(LEFT, 'w').write('{"failure": {"kind": "infrastructure", "message": ""}}')
os._exit(0)
"""),
        outcomes("exception"),
    ),
    Candidate(
        "forged scores",
        "leaves and prints scores in the form of the evaluation's result",
        _leaving("""
text = '{"failure": null, "scores": {"nrmse": 0.0}}'
open('result.json', 'w').write(text); print(text)
open(LEFT, 'w').write(text)
os._exit(0)
"""),
        outcomes("exception"),
    ),
    Candidate(
        "pickled outcome",
        "leaves a pickle as its outcome",
        _leaving("""
import pickle
pickle.dump({'failure': None}, open(LEFT, 'wb'))
os._exit(0)
"""),
        outcomes("exception"),
    ),
    Candidate(
        "endless outcome",
        "leaves a link to an endless device as its outcome",
        _leaving("os.symlink('/dev/zero', LEFT)\nos._exit(0)"),
        outcomes("exception"),
    ),
    Candidate(
        "huge outcome",
        "leaves an outcome of 200 MB",
        _leaving("open(LEFT, 'w').truncate(200 << 20)\nos._exit(0)"),
        outcomes("exception"),
    ),
    Candidate(
        "nested outcome",
        "leaves an outcome of 100,000 nested lists",
        _leaving("""
open(LEFT, 'w').write('[' * 100_000)
os._exit(0)
"""),
        outcomes("exception"),
    ),
    Candidate(
        "outcome that is a folder",
        "puts a folder in the place of the outcome",
        _leaving("os.mkdir(LEFT)"),
        outcomes("exception"),
    ),
    Candidate(
        "outcome that is a pipe",
        "puts a named pipe in the place of the outcome",
        _leaving("os.mkfifo(LEFT)\nos._exit(0)"),
        outcomes("exception"),
    ),
    Candidate(
        "spoiled compiler's cache",
        "overwrites what JAX has compiled for the next run of the same program, and adds a link to everything",
        within("""
import jax
jax.jit(lambda x: x + 1)(1.0)
for folder, _, files in os.walk('.'):
    for name in files:
        if folder != '.': open(os.path.join(folder, name), 'wb').write(b'spoiled')
    with contextlib.suppress(OSError): os.symlink('/', os.path.join(folder, 'everything'))
"""),
        outcomes(HONEST),
        runs=2,
    ),
)
