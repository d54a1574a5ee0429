"""Neural references: published errors as a cited table, and one small operator that is trained and scored here.

published_rows("burgers"), load_published()      what others published (sharp/neural/published.py)
trained_rows(folder)                             what was trained here (sharp/neural/result.py)
train_baseline(problem, settings, folder)        trains and scores (sharp/neural/baseline.py; extra `neural`)
"""

import lazy_loader

# The face of this package is `__init__.pyi`; a module is loaded when one of its names is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
