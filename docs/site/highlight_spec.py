"""Highlights specs in the pages of the site: a Pygments lexer with the words of the language, as a hook of mkdocs."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

from pygments import lexers
from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

GRAMMAR = resources.files("modgraph_grammar").joinpath("modgraph.lark").read_text(encoding="utf-8")
WORDS = re.findall(r'^[A-Z]+: "([a-z]+)"$', GRAMMAR, re.MULTILINE)


class SpecLexer(RegexLexer):
    """The language of specs."""

    name = "modgraph"
    aliases = ["mod"]
    filenames = ["*.mod"]
    tokens = {
        "root": [
            (r"#[^\n]*", Comment),
            (r'"([^"\\\n]|\\.)*"', String),
            (r"->|\.\.|==|!=|<=|>=|\*\*|//|[-+*/%<>=]", Operator),
            (words(WORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            (r"(float|token|class|edge)(?=[\[ ])", Keyword.Type),
            (r"[A-Za-z_]\w*(?=\()", Name.Function),
            (r"[A-Za-z_]\w*", Name),
            (r"\d+(\.\d+)?([eE][-+]?\d+)?", Number),
            (r"[()\[\]{},:.]", Punctuation),
            (r"\s+", Whitespace),
        ]
    }


def on_startup(**_: Any) -> None:
    """Register the lexer, under the name of code blocks in Markdown."""
    lexers.LEXERS["SpecLexer"] = (__name__, "modgraph", ("mod",), ("*.mod",), ())
    lexers._lexer_cache["modgraph"] = SpecLexer
