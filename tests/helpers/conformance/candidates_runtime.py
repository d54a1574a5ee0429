"""Candidates that turn the interpreter against the harness."""

from __future__ import annotations

from tests.helpers.conformance.hostile import HONEST, Candidate, on_import, outcomes, within

_MAIN = "main = sys.modules['__main__']\n"

RUNTIME = (
    Candidate(
        "patched numpy.save",
        "replaces `numpy.save` by a function that pickles",
        within("""
def save(file, array, **_): file.write(b'pickle')
np.save = save
"""),
        outcomes("sandbox_violation"),
    ),
    Candidate(
        "patched numpy.asarray",
        "replaces `numpy.asarray` and `numpy.load` by functions that raise",
        within("""
def no(*_, **__): raise RuntimeError('patched')
np.asarray = np.load = no
"""),
        outcomes("exception"),
    ),
    Candidate(
        "patched norm",
        "replaces norms, means and comparisons of NumPy by functions that return zero",
        within("""
np.linalg.norm = np.mean = np.sqrt = np.sum = lambda *_, **__: 0.0
np.isfinite = np.isnan = np.allclose = lambda *_, **__: True
return 0 * u + np.nan
"""),
        outcomes("non_finite"),
    ),
    Candidate(
        "patched clocks",
        "stops all clocks of the interpreter and sleeps",
        within("""
sleep = time.sleep
for name in ('time', 'monotonic', 'perf_counter', 'process_time', 'time_ns', 'perf_counter_ns'):
    setattr(time, name, lambda: 0)
sleep(1.5)
"""),
        outcomes(HONEST),
        seconds=0.5,
    ),
    Candidate(
        "patched json",
        "replaces `json.dumps` by a function that claims another shape",
        within("""
import json
dumps = json.dumps
returned, about = {"u": {"dtype": "float64", "shape": [1]}}, {"python": "3", "numpy": "2", "device": "cpu"}
json.dumps = lambda *_, **__: dumps({"failure": None, "returned": returned, "environment": about})
"""),
        outcomes("shape"),
    ),
    Candidate(
        "patched builtins",
        "replaces `print`, `len`, `open`, `isinstance` and `list`",
        within("""
import builtins
def no(*_, **__): raise RuntimeError('patched')
for name in ('print', 'len', 'open', 'isinstance', 'list', 'dict', 'getattr'): setattr(builtins, name, no)
"""),
        outcomes("exception"),
    ),
    Candidate(
        "patched harness",
        "replaces every function of the harness by one that returns nothing",
        within(
            _MAIN
            + """
for name, item in list(vars(main).items()):
    if callable(item): setattr(main, name, lambda *_, **__: None)
"""
        ),
        outcomes("exception"),
    ),
    Candidate(
        "patched environment",
        "lets the harness report versions of 1 MB",
        within(
            _MAIN + "main.environment = lambda *_: {'python': 'x' * 1_000_000, 'numpy': '', 'device': ''}"
        ),
        outcomes("exception"),
    ),
    Candidate(
        "forged candidate error",
        "raises the harness' own error with a kind that does not exist",
        within(_MAIN + "raise main.CandidateError('infrastructure', 'the machine is broken')"),
        outcomes("exception"),
    ),
    Candidate(
        "no modules", "empties `sys.modules`", within("sys.modules.clear()"), outcomes(HONEST, "exception")
    ),
    Candidate(
        "no standard streams",
        "replaces stdout and stderr by objects that raise",
        within("""
class Broken:
    def __getattr__(self, name): raise RuntimeError(name)
sys.stdout = sys.stderr = Broken()
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "forged events",
        "announces the end of the call before it has slept",
        within("""
pipe = int(os.environ['SANDBOX_EVENTS_FD'])
for _ in range(20): os.write(pipe, b'done\\ncall\\n')
os.write(pipe, b'\\xff\\x00\\n')
time.sleep(1.5)
"""),
        outcomes(HONEST),
        seconds=0.5,
    ),
    Candidate(
        "changed environment",
        "empties its environment and sets variables that loaders heed",
        within("""
os.environ.clear()
os.environ.update(LD_PRELOAD='/no/such', PYTHONPATH='/', PYTHONHOME='/no', PATH='', HOME='/')
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "no recursion",
        "sets the recursion limit so low that the harness cannot work",
        within("sys.setrecursionlimit(len(__import__('inspect').stack()) + 6)"),
        outcomes("exception"),
    ),
    Candidate(
        "no memory left to the harness",
        "sets a limit on its address space that leaves nothing for the harness",
        within("""
import resource
used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used, used))
"""),
        outcomes(HONEST, "memory"),
    ),
    Candidate(
        "tracing function",
        "installs a tracing function that raises in all frames that follow",
        within("""
def trace(*_): raise RuntimeError('traced')
sys.settrace(trace)
sys.setprofile(trace)
"""),
        outcomes("exception"),
    ),
    Candidate(
        "exit handlers",
        "registers exit handlers that forge an outcome",
        within("""
import atexit
atexit.register(lambda: open('outcome.json', 'w').write('forged'))
atexit.register(time.sleep, 600)
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "import hooks",
        "installs hooks that refuse all further imports, and audit hooks that refuse to open files",
        within("""
class Refuse:
    def find_spec(self, *_): raise ImportError('refused')
sys.meta_path.insert(0, Refuse())
def audit(event, _):
    if event == 'open': raise RuntimeError('refused')
sys.addaudithook(audit)
"""),
        outcomes("exception"),
    ),
    Candidate(
        "side effects on import",
        "prints, starts threads, changes folder and leaves files while it is imported",
        on_import("""
print('hello')
threading.Thread(target=time.sleep, args=(600,)).start()
os.mkdir('left')
np.seterr(all='raise')
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "work before the call",
        "looks for its inputs while it is imported, and sleeps",
        on_import("""
for folder, _, names in os.walk('.'):
    for name in names:
        if name.startswith('input'): breach('found', os.path.join(folder, name))
time.sleep(.3)
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "inputs ahead of the call",
        "asks for its inputs in the harness' name while it is imported, and works on them",
        on_import("""
os.write(int(os.environ['SANDBOX_EVENTS_FD']), b'ready scored\\n')
os.read(int(os.environ['SANDBOX_ANSWERS_FD']), 100)
np.load('input-scored-u0_batch.npy')
time.sleep(1.5)
"""),
        outcomes(HONEST),
        seconds=0.5,
    ),
    Candidate(
        "solver that lies about itself",
        "is a callable object with a false signature that raises when it is looked at",
        within("")
        + """
class Solver:
    __signature__ = property(lambda self: breach_no)
    def __call__(self, *arguments): return inner(*arguments)
inner, solver = solver, Solver()
""",
        outcomes("exception"),
    ),
    Candidate(
        "misleading report",
        "prints time steps of a million digits",
        within("print('dt=' + '9' * 1_000_000, 'steps=' + '9' * 1_000_000)"),
        outcomes(HONEST),
    ),
)
