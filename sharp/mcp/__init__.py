"""A server of the Model Context Protocol: the public functions as tools for assistants (docs/guides/mcp.md)."""

import lazy_loader

# The face of this package is `__init__.pyi`; a module is loaded when one of its names is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
