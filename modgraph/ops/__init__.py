"""The ops of the language: one declaration each, without torch. Every file here declares some."""

from importlib import import_module
from pkgutil import iter_modules

from modgraph.ops.op import Op

for each in iter_modules(__path__):
    import_module(f"{__name__}.{each.name}")
