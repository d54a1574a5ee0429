"""The benchmark families: data, reference solutions, residuals and feedback metrics, one file a family.

Reference solutions of the families have methods of their own (Fourier series with ETDRK4, Lagrangian differences,
finite elements on dual cells) and none of `sharp.solvers`: an error that both shared would not show. Shared is what
computes no solution, such as the weights of finite differences. Published schemes have limiters and fluxes of their own
as well: each rounds in its own order, which is part of the data. Only problems of no family are solved by
`sharp.solvers` (`sample_generation`), with the residual and the conditions checked.
"""

import lazy_loader

# The face of this package is `__init__.pyi`; a module is loaded when one of its names is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
