"""Documents of plain values, and what writes them: HTML, Markdown and text for terminals.

A document is composed of blocks, its figures of charts; the writers alone know how these look. Nothing here knows of
PDEs, runs or models, and jinja2, matplotlib and rich are imported where they are used. Texts for numbers, counts and
time spans are in `sharp.document.text`.
"""

import lazy_loader

# The face of this package is `__init__.pyi`; a module is loaded when one of its names is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
