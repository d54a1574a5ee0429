"""Candidates whose return value is not what was agreed, or not what it seems."""

from __future__ import annotations

from tests.helpers.conformance.hostile import HONEST, NARROW, WORSE, Candidate, outcomes, within

_LAZY = """
class Lazy:
    def __init__(self, u): self.u = u
    def __array__(self, dtype=None, copy=None):
        time.sleep(1.5)
        return self.u
"""
_POINTER = """
class Pointer:
    def __init__(self, shape):
        form = {"shape": shape, "typestr": "<f8", "version": 3}
        self.__array_interface__ = {**form, "data": (8, False)}
"""
_LIAR = """
class Liar(np.ndarray):
    shape = property(lambda self: (1, 2, 3))
    dtype = property(lambda self: np.dtype("c16"))
    def __array_finalize__(self, _): pass
    def astype(self, *_, **__): raise RuntimeError("no")
"""
_RAISES = """
class Raises:
    def __array__(self, dtype=None, copy=None): raise SystemExit(0)
"""


def _returns(value: str, setup: str = "") -> str:
    """Return a program that returns the value of an expression in its exact solution `u`."""
    return within(f"return {value}", setup)


RETURNS = (
    Candidate("exact solution", "is honest and correct", within(""), outcomes(HONEST)),
    Candidate("objects", "returns an array of objects", _returns("u.astype(object)"), outcomes("shape")),
    Candidate(
        "complex numbers", "returns an array of complex numbers", _returns("u + 0j"), outcomes("shape")
    ),
    Candidate(
        "integers",
        "returns the solution rounded to integers",
        _returns("u.round().astype(int)"),
        outcomes(WORSE),
    ),
    Candidate("truth values", "returns an array of truth values", _returns("u > 1"), outcomes("shape")),
    Candidate("strings", "returns an array of numbers as text", _returns("u.astype(str)"), outcomes("shape")),
    Candidate("dates", "returns an array of dates", _returns("u.astype('datetime64[s]')"), outcomes("shape")),
    Candidate(
        "records", "returns an array of records", _returns("u.view([('value', 'f8')])"), outcomes("shape")
    ),
    Candidate(
        "masked array",
        "returns a masked array with wrong values under the mask",
        _returns("np.ma.array(u + (u > 1), mask=u > 1)"),
        outcomes("non_finite"),
    ),
    Candidate(
        "matrix of another class",
        "returns a subclass of the array class that lies about shape and type",
        _returns("u.view(Liar)", _LIAR),
        outcomes(HONEST),
    ),
    Candidate(
        "half precision",
        "returns the solution in half precision",
        _returns("u.astype(np.float16)"),
        outcomes(WORSE),
    ),
    Candidate(
        "long double precision",
        "returns the solution in extended precision",
        _returns("u.astype(np.longdouble)"),
        outcomes(HONEST),
    ),
    Candidate(
        "foreign byte order",
        "returns the solution with its bytes reversed, in column order",
        _returns("np.asfortranarray(u.astype('>f8'))"),
        outcomes(HONEST),
    ),
    Candidate(
        "transposed",
        "returns the solution with time and space exchanged",
        _returns("u.swapaxes(1, 2)"),
        outcomes("shape"),
    ),
    Candidate("one sample", "returns the first sample alone", _returns("u[0]"), outcomes("shape")),
    Candidate(
        "extra axis", "returns the solution with one axis more", _returns("u[..., None]"), outcomes("shape")
    ),
    Candidate("scalar", "returns a number", _returns("1.5"), outcomes("shape")),
    Candidate("empty", "returns an empty array", _returns("u[:, :0]"), outcomes("shape")),
    Candidate("no initial time", "returns all times but the first", _returns("u[:, 1:]"), outcomes("shape")),
    Candidate(
        "terabytes of nothing",
        "returns one number broadcast to a shape of terabytes",
        _returns("np.broadcast_to(u[0, 0, 0], (1 << 40,))"),
        outcomes("shape"),
    ),
    Candidate("nothing", "returns None", _returns("None"), outcomes("signature")),
    Candidate(
        "tuple", "returns the solution and the times", _returns("u, t_coordinate"), outcomes("signature")
    ),
    Candidate(
        "list of arrays", "returns a list of one array a sample", _returns("list(u)"), outcomes(HONEST)
    ),
    Candidate(
        "ragged list",
        "returns a list of arrays of different shapes",
        _returns("[u[0], u[1, :3]]"),
        outcomes("shape"),
    ),
    Candidate("dictionary", "returns a dictionary", _returns("{'u': u}"), outcomes("shape")),
    Candidate(
        "generator", "returns a generator of samples", _returns("(sample for sample in u)"), outcomes(HONEST)
    ),
    Candidate(
        "endless generator",
        "returns a generator that never ends",
        _returns("itertools.count()", "import itertools"),
        outcomes("memory"),
        NARROW,
    ),
    Candidate(
        "coroutine",
        "is an asynchronous function",
        within("").replace("def solver", "async def solver"),
        outcomes("shape"),
    ),
    Candidate(
        "list that contains itself",
        "returns a list that is its own element",
        within("u = []\nu.append(u)"),
        outcomes("shape"),
    ),
    Candidate(
        "NaN in one cell",
        "returns one NaN in the last cell",
        within("u[-1, -1, -1] = np.nan"),
        outcomes("non_finite"),
    ),
    Candidate(
        "Inf in one cell",
        "returns one infinite value",
        within("u[0, 1, 2] = -np.inf"),
        outcomes("non_finite"),
    ),
    Candidate(
        "overflowing norm",
        "returns finite values whose squares overflow",
        within("u[:] = 1e300"),
        outcomes("non_finite"),
    ),
    Candidate("constant", "returns a constant", _returns("np.ones_like(u)"), outcomes("sandbox_violation")),
    Candidate(
        "independent of the input",
        "returns the first sample's solution for every sample",
        _returns("np.repeat(u[:1], len(u), axis=0)"),
        outcomes("sandbox_violation"),
    ),
    Candidate(
        "changed inputs",
        "overwrites its inputs in place after it has used them",
        within("u0_batch[:] = 0\nt_coordinate[:] = 0"),
        outcomes(HONEST),
    ),
    Candidate(
        "inputs as output",
        "returns a view of its inputs, stretched over time by zero strides",
        _returns("np.broadcast_to(u0_batch[:, None], u.shape)"),
        outcomes(WORSE),
    ),
    Candidate(
        "array that changes",
        "returns an array that a thread goes on changing",
        within("""
def spoil():
    while True: u[:] = np.nan; time.sleep(.01)
threading.Thread(target=spoil, daemon=True).start()
"""),
        outcomes(HONEST, "non_finite"),
    ),
    Candidate(
        "lazy array",
        "returns an object that computes when it is looked at; that time counts",
        _returns("Lazy(u)", _LAZY),
        outcomes(HONEST),
        seconds=0.5,
    ),
    Candidate(
        "array that raises",
        "returns an object that exits when it is looked at",
        _returns("Raises()", _RAISES),
        outcomes("exception"),
    ),
    Candidate(
        "array at a false address",
        "returns an object that claims to be an array at address 8",
        _returns("Pointer(u.shape)", _POINTER),
        outcomes("exception"),
    ),
    Candidate(
        "array in a file",
        "returns an array that is mapped from a file of its own",
        within("""
stored = np.memmap('stored', float, 'w+', shape=u.shape)
stored[:] = u
u = stored
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "array in a shortened file",
        "returns an array that is mapped from a file which it has cut off since",
        within("""
stored = np.memmap('stored', float, 'w+', shape=u.shape)
open('stored', 'r+b').truncate(0)
u = stored
"""),
        outcomes("exception"),
    ),
)
