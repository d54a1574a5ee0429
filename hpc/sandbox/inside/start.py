"""Started by path inside the sandbox, where no package is installed: makes one of this folder and goes on."""

import importlib
import sys
import types

package = types.ModuleType("inside")
package.__path__ = [__file__.rpartition("/")[0]]
sys.modules["inside"] = package
importlib.import_module("inside.launcher").main(sys.argv[1:])
