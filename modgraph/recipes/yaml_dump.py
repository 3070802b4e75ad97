"""Writes a mapping as YAML that reads back as the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from modgraph.recipes.yaml_tree import EXPONENT


def dump_yaml(record: Mapping[str, Any]) -> str:
    """The text that `read_tree` reads as this mapping."""
    return yaml.dump(record, Dumper=_Dumper, sort_keys=False)


class _Dumper(yaml.SafeDumper):
    """Quotes strings that `read_tree` reads as numbers, though YAML 1.1 does not."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = "'" if EXPONENT.fullmatch(text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)
