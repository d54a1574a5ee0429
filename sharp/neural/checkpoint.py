"""Trees of arrays on disk: complete or not there, and read without running any code."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hpc.files import write_atomic
from sharp.errors import DataError

Tree = TypeVar("Tree")
_FACTS = "facts"


def save_tree(path: Path, tree: Any, facts: dict[str, Any]) -> None:
    """Write all arrays of a tree and some facts, as plain JSON, in place of what the file held before."""
    import jax

    arrays: dict[str, Any] = {_FACTS: np.array(json.dumps(facts))}
    arrays |= {f"leaf-{number:04}": np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(tree))}
    data = io.BytesIO()
    np.savez(data, **arrays)
    write_atomic(path, data.getvalue())


def load_tree(path: Path, like: Tree) -> tuple[Tree, dict[str, Any]]:
    """Read what `save_tree` wrote into the form of a tree; raises `DataError` for a file that is not of this form."""
    import jax
    import jax.numpy as jnp

    wanted, form = jax.tree.flatten(like)
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            facts = json.loads(str(file[_FACTS]))
            leaves = [file[name] for name in sorted(file.files) if name != _FACTS]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path}: expected a checkpoint, found a file that cannot be read ({error})"
        ) from None
    shapes = [np.shape(leaf) for leaf in leaves]
    if shapes != [np.shape(leaf) for leaf in wanted]:
        raise DataError(f"{path}: expected the arrays of this training, found others: {shapes[:4]}")
    return jax.tree.unflatten(form, map(jnp.asarray, leaves)), dict(facts)
