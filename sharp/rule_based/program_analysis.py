"""Reading a program by its structure: which methods it uses, how it is tuned, and what cannot work."""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import combinations

from sharp.rule_based.assembly import render, rendered
from sharp.rule_based.estimates import contributions, merit, seconds, steps
from sharp.rule_based.library import CodeBlock, EquationFamily, family_of

_ARRAY_MODULES = {"np": "xp", "jnp": "xp", "numpy": "xp"}
_CONTINUES = (" ", "\t", "\n", ")", "]", "}")


@dataclass(frozen=True)
class ProgramAnalysis:
    """What is seen in a program.

    `blocks` are the methods recognised, by slot; `unknown` the sources of the functions whose structure is in no
    catalogue, by name; `undefined` the names that are used and never defined; `constants` the source texts of the
    values set at the top; `error` a syntax error, with which the parts that can be parsed are read all the same.
    """

    family: str
    blocks: Mapping[str, CodeBlock]
    unknown: Mapping[str, str] = field(default_factory=dict)
    undefined: tuple[str, ...] = ()
    constants: Mapping[str, str] = field(default_factory=dict)
    uses_jax: bool = False
    uses_scipy_fft: bool = False
    single: bool = False
    error: str = ""

    @cached_property
    def numbers(self) -> dict[str, float]:
        """The constants that are plain numbers."""
        return {name: float(text) for name, text in self.constants.items() if is_number(text)}

    @cached_property
    def errors(self) -> dict[str, float]:
        """The estimated error of every recognised part of the scheme."""
        return contributions(self.family, self.blocks, self.numbers, single=self.single)

    @property
    def merit(self) -> float:
        """How many digits the scheme promises; 0 where nothing is recognised."""
        return merit(self.errors)

    @property
    def steps(self) -> float:
        """About how many time steps it takes; 0 where that cannot be told."""
        return steps(self.family, self.blocks, self.numbers)

    @property
    def seconds(self) -> float:
        """About how long it runs; 0 where that cannot be told."""
        return seconds(self.family, self.blocks, self.numbers, compiled=self.uses_jax)


def is_number(text: str) -> bool:
    """Tell whether a source text is a plain number."""
    return re.fullmatch(r"\d+\.?\d*(?:e[-+]?\d+)?", text) is not None


@lru_cache(maxsize=1024)
def read(code: str, family: str) -> ProgramAnalysis:
    """Read a program for an equation of a family."""
    tree, error = parsed(code)
    catalogue = _catalogue(family)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    known = {node.name: catalogue.get(_structure(node)) for node in functions}
    modules = _modules(tree)
    return ProgramAnalysis(
        family=family,
        blocks=_blocks(known),
        unknown=(_broken(code) if error else {})
        | {node.name: ast.unparse(node) for node in functions if known[node.name] is None},
        undefined=() if error else undefined_names(tree),
        constants=_constants(tree, code),
        uses_jax=any(name.split(".")[0] == "jax" for name in modules),
        uses_scipy_fft="scipy.fft" in modules or "scipy.fftpack" in modules,
        single=_is_single(tree, code, modules),
        error=error,
    )


def parsed(code: str) -> tuple[ast.Module, str]:
    """Return a program's syntax tree and an empty string; of a broken one the parts that parse, and the error."""
    try:
        return ast.parse(code), ""
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        parts = [part for chunk in _chunks(code) if (part := _parsed_or_none(chunk)) is not None]
        return ast.Module([node for part in parts for node in part.body], []), str(
            error
        ) or "it does not parse"


def _broken(code: str) -> dict[str, str]:
    """Return the functions of a program that do not parse, by name, as they stand."""
    chunks = [chunk for chunk in _chunks(code) if _parsed_or_none(chunk) is None]
    named = [(re.search(r"^def (\w+)", chunk, re.MULTILINE), chunk) for chunk in chunks]
    return {found[1]: chunk for found, chunk in named if found}


def _parsed_or_none(chunk: str) -> ast.Module | None:
    try:
        return ast.parse(chunk)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _chunks(code: str) -> Iterator[str]:
    """Split a program before every line at the left margin that begins a statement; decorators stay with theirs."""
    chunk: list[str] = []
    for line in code.splitlines(keepends=True):
        begins = not line.startswith(_CONTINUES)
        if begins and chunk and not chunk[-1].startswith("@"):
            yield "".join(chunk)
            chunk = []
        chunk.append(line)
    yield "".join(chunk)


def undefined_names(tree: ast.Module) -> tuple[str, ...]:
    """Return the names that a module reads and neither defines nor imports anywhere, in order of appearance."""
    nodes = list(ast.walk(tree))
    bound = {n.arg for n in nodes if isinstance(n, ast.arg)} | set(_imported(tree)) | set(dir(builtins))
    bound |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    bound |= {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    bound |= {
        n.name for n in nodes if isinstance(n, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and n.name
    }
    if "*" in bound:  # a star import may define anything
        return ()
    loads = [n for n in nodes if isinstance(n, ast.Name) and n.id not in bound | {"__name__", "__file__"}]
    return tuple(dict.fromkeys(n.id for n in sorted(loads, key=lambda n: (n.lineno, n.col_offset))))


def _imported(tree: ast.Module) -> list[str]:
    return [
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]


def _modules(tree: ast.Module) -> set[str]:
    """Return the dotted names of everything imported."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _constants(tree: ast.Module, code: str) -> dict[str, str]:
    """Return the source texts of the capitalised names that are set at the left margin."""
    assigned = [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper() and target.id != "DTYPE"
    ]
    texts = {name: re.search(rf"^{name} = (.+)$", code, re.MULTILINE) for name in assigned}
    return {name: found[1].split("  #")[0].strip() for name, found in texts.items() if found}


def _is_single(tree: ast.Module, code: str, modules: set[str]) -> bool:
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    uses_jax = any(name.split(".")[0] == "jax" for name in modules)
    return "float32" in attributes or (uses_jax and "jax_enable_x64" not in code)


def _blocks(known: Mapping[str, tuple[CodeBlock, ...] | None]) -> dict[str, CodeBlock]:
    """Return the block of each slot; a function that several blocks share decides nothing."""
    return {found[0].slot: found[0] for found in known.values() if found and len(found) == 1}


@cache
def _catalogue(family: str) -> dict[str, tuple[CodeBlock, ...]]:
    """Return the blocks in which a function's structure occurs, in any form in which a family's library writes it.

    Helper functions are known, and belong to no block.
    """
    known = family_of(family)
    entries: dict[str, tuple[CodeBlock, ...]] = {}
    if known is None:
        return entries
    for helper in known.helpers.values():
        entries |= dict.fromkeys(_structures(rendered(known, helper, "numpy")), ())
    for block in known.blocks:
        for structure in _forms(known, block):
            entries[structure] = tuple(dict.fromkeys((*entries.get(structure, ()), block)))
    return entries


def _forms(family: EquationFamily, block: CodeBlock) -> set[str]:
    moved = [transfer.slot for name, transfer in family.transfers.items() if name in block.source]
    slots = [chosen for count in range(len(moved) + 1) for chosen in combinations(moved, count)]
    texts = {render(family, block, library, chosen) for library in block.libraries for chosen in slots}
    return {structure for text in texts for structure in _structures(text)}


def _structures(text: str) -> set[str]:
    return {_structure(node) for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def _structure(node: ast.FunctionDef) -> str:
    """Return a function's structure without its docstring, the same for NumPy, SciPy's fft and JAX."""
    node = copy.deepcopy(node)
    if node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
        node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(_Neutral().visit(node))


class _Neutral(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == "fft":
            return ast.Attribute(ast.Name("xp", ast.Load()), "fft", ast.Load())
        node.id = _ARRAY_MODULES.get(node.id, node.id)
        return node
