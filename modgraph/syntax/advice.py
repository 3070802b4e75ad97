"""The way out of a syntax mistake: what was most likely meant, as text that can be written."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

from modgraph.diagnostics import closest
from modgraph.syntax.expected import BINDING_GOES_ON, DEFINITION_KEYWORDS, OPERATORS, STATEMENT_KEYWORDS
from modgraph.syntax.tokens import PlacedToken

FORMS = {
    "INPUT": "input x: float[4]",
    "TARGET": "target label: class[10]",
    "MODULE": "module encoder = linear(8) -> relu",
    "TOKENIZER": "tokenizer patches = patch_embed(4, 8)",
    "POOL": "pool p[4] = linear(8)",
    "ROUTER": "router r = noisy_top_k(k=1)",
    "OUTPUT": "output y = x -> relu",
    "LOSS": "loss mse(y, x)",
    "REPEAT": "repeat layer[i] in 0..4 { x = x -> relu }",
    "FOR": "for k in 0..4 { x = x -> relu }",
    "IF": "if n > 1 { x = x -> relu } else { x = x -> tanh }",
    "SCAN": "scan x as v with h: float[8] { h = (h, v) -> concat -> linear(8) yield h } as y",
    "GROW": "grow p[2]",
    "FROZEN": "frozen { module encoder = linear(8) }",
    "YIELD": "yield h",
    "WEIGHT": "weight queries: float[4, 8] = normal(0.02)",
    "CONSTANT": "constant c: float[2, 2] = [[1, 0], [0, 1]]",
    "STATE": "state bias: float[4] = zeros",
    "NEXT": "next bias = 0.9 * bias",
    "RECORD": "record gates, choice = chosen",
    "REQUIRE": "require k >= 1",
    "MOVED": "moved blocks.0.old -> blocks.0.new",
    "NAME": "y = x -> relu",
}
DEFINITIONS = {
    "MODEL": "model m(width=8) { input x: float[4] output x }",
    "BLOCK": "block b(width=8) { input x: float[4] output x }",
    "ROUTER": "router r() for p { input x: float[n, 8] g = x -> linear(p) -> softmax y = x -> p by g output y }",
    "IMPORT": 'import ffn from "blocks.mod"',
}
OF_OTHER_LANGUAGES = {
    **dict.fromkeys(("let", "var", "val", "const", "auto"), FORMS["NAME"]),
    **dict.fromkeys(("return", "print"), FORMS["OUTPUT"]),
    **dict.fromkeys(("def", "fn", "func", "function", "class", "lambda"), DEFINITIONS["BLOCK"]),
    **dict.fromkeys(("while", "loop", "foreach"), FORMS["REPEAT"]),
    **dict.fromkeys(("elif", "elseif", "elsif"), "if n > 1 { x = x -> relu } else if n > 0 { x = x -> tanh }"),
    **dict.fromkeys(("from", "include", "use", "using"), DEFINITIONS["IMPORT"]),
}
PARTS = {
    **dict.fromkeys(("true", "false"), "y = x -> linear(8, bias=false)"),
    **dict.fromkeys(("and", "or", "not"), "if n > 1 and not wide { x = x -> relu }"),
    "else": FORMS["IF"],
    "in": FORMS["REPEAT"],
    "by": "y = x -> expert by agree",
    "over": "y = values by gates over time",
    **dict.fromkeys(("as", "with"), FORMS["SCAN"]),
    "from": DEFINITIONS["IMPORT"],
}
CLOSING = {"LPAR": ")", "LSQB": "]"}


@dataclass(frozen=True)
class Mistake:
    """A token that cannot stand where it stands.

    `before` are tokens before it, the nearest last, and `after` is the next; `statement` is the keyword of the
    statement it stands in, "NAME" in a body outside of any such, "" at the top; `bracket` is the one that is open
    there. `as_name` says that it is a reserved word where a name must stand.
    """

    token: PlacedToken
    before: tuple[PlacedToken, ...]
    after: PlacedToken | None
    accepted: Set[str]
    statement: str
    bracket: str
    as_name: bool

    @property
    def last(self) -> str:
        return self.before[-1].type if self.before else ""

    @property
    def between_statements(self) -> bool:
        return "INPUT" in self.accepted

    @property
    def after_first_name(self) -> bool:
        """Whether it follows a name that a statement begins with."""
        return self.statement == "NAME" and self.last == "NAME" and self.accepted >= BINDING_GOES_ON


def forms_of(word: str) -> list[str]:
    """Examples of the statements and definitions that begin with a word of the language, or hold it."""
    forms = [each[word.upper()] for each in (FORMS, DEFINITIONS) if word.upper() in each]
    return forms or [PARTS[word]] if word in PARTS or forms else []


def advise(mistake: Mistake) -> str:
    """What to write instead: what is most likely meant, or the form of the statement."""
    form = FORMS.get(mistake.statement) or DEFINITIONS.get(mistake.statement)
    meant = next((advice for rule in RULES if (advice := rule(mistake)) is not None), None)
    return meant or (f"write, for example: {form}" if form is not None else DEFINITIONS["MODEL"])


def _reserved(mistake: Mistake) -> str | None:
    return f'"{mistake.token}" is a reserved word: choose another name' if mistake.as_name else None


def _braces(mistake: Mistake) -> str | None:
    kind = mistake.token.type
    if kind == "RBRACE" and "$END" in mistake.accepted:
        return "one closing brace too many"
    if kind in DEFINITION_KEYWORDS and "RBRACE" in mistake.accepted:
        return f"{mistake.token}s stand at the top of the file, outside of the braces"
    if mistake.bracket and (kind in STATEMENT_KEYWORDS or kind in ("$END", "RBRACE", "RPAR", "RSQB")):
        if mistake.last == "COMMA":
            return "leave out the comma, or write one more"
        return f"a bracket is not closed: {CLOSING[mistake.bracket]}"
    if kind == "$END":
        return "a brace is not closed: }"
    if kind in ("RPAR", "RSQB") and not mistake.bracket:
        return "no bracket is open here: leave it out"
    return None


def _move(mistake: Mistake) -> str | None:
    return f"write, for example: {FORMS['MOVED']}" if mistake.statement == "MOVED" else None


def _word(mistake: Mistake) -> str | None:
    """A word of another language, or a misspelt keyword, where a statement or a definition begins."""
    top = mistake.statement == "" and mistake.token.type in ("NAME", "FROM")
    if not top and not mistake.after_first_name:
        return None
    word = str(mistake.token if top else mistake.before[-1])
    if word in OF_OTHER_LANGUAGES:
        return f'"{word}" is no word of the language: {OF_OTHER_LANGUAGES[word]}'
    names = DEFINITION_KEYWORDS if top else STATEMENT_KEYWORDS
    keyword = closest(word, [each.lower() for each in names])
    if keyword is None or (not top and mistake.token.type not in ("NAME", "INTEGER", "LBRACE")):
        return None
    return f'did you mean "{keyword}"? {(DEFINITIONS | FORMS)[keyword.upper()]}'


def _sign(mistake: Mistake) -> str | None:
    """A sign that other languages write, or that has another meaning here."""
    token, after = mistake.token, mistake.after
    following = after.type if after is not None else ""
    if (token.type, following) == ("EQUAL", "GREATER"):
        return f"an arrow is written ->: {FORMS['NAME']}"
    if mistake.between_statements and (token.type == "FLOOR" or (token.type, following) == ("SLASH", "STAR")):
        return "a comment begins with #"
    if (token.type, following) == ("DOT", "INTEGER"):
        return f"write 0.{after}"
    if mistake.after_first_name:
        return _in_a_binding(mistake, following)
    if token.type == "COLON" and following == "EQUAL":
        return f"a value is bound with one sign: {FORMS['NAME']}"
    return None


def _in_a_binding(mistake: Mistake, following: str) -> str | None:
    name, token = mistake.before[-1], mistake.token
    if token.type == "EQUALS" or (token.type, following) == ("COLON", "EQUAL"):
        return f"a value is bound with one sign: {name} = x -> relu"
    if token.type in OPERATORS and following == "EQUAL":
        return f"write it out: {name} = {name} {token} 1"
    if token.type == "ARROW":
        return f"give the result a name: y = {name} -> relu"
    if token.type == "LPAR":
        return f"give the result a name: y = {name}(x)"
    return None


def _comma(mistake: Mistake) -> str | None:
    if mistake.token.type != "COMMA":
        return None
    if mistake.statement == "OUTPUT":
        return "each output is a statement: output x output y"
    if mistake.between_statements:
        return "statements need no sign between them"
    return "leave out the comma" if mistake.last in ("LPAR", "LSQB", "COMMA") else None


def _colon(mistake: Mistake) -> str | None:
    if mistake.token.type != "COLON" or mistake.after is None:
        return None
    if mistake.bracket == "LPAR" and mistake.last == "NAME":
        return f"an argument is given with =: {mistake.before[-1]}={mistake.after}"
    if mistake.bracket == "LSQB" and mistake.last == "INTEGER":
        return f"a range is written with two dots: {mistake.before[-1]}..{mistake.after}"
    return None


def _value(mistake: Mistake) -> str | None:
    """Something that is no value, or no op, where one must stand."""
    kind, last = mistake.token.type, mistake.last
    if kind in ("INTEGER", "DECIMAL", "STRING", "TRUE", "FALSE") and last == "NAME" and _follows_an_arrow(mistake):
        return f"arguments stand in parentheses: {mistake.before[-1]}({mistake.token})"
    if kind in OPERATORS and "ARROW" in mistake.accepted:
        begins = next((each for each in reversed(mistake.before) if each.type in ("BY", "ARROW")), None)
        either = f", or the weights: x -> p by (w {mistake.token} y)" if begins and begins.type == "BY" else ""
        return f"put the pipeline in parentheses: (x -> op) {mistake.token} y{either}"
    if kind == "OVER":
        return "what is summed with comes first: y = x -> p by w over time"
    if last == "OVER":
        return "an axis is named, or counted from the last: by w over time, by w over -2"
    if last == "ARROW" and kind == "REPEAT":
        return "repeat is a statement; twice along an axis is: y = x -> new_axis(2) -> merge(-3, -2)"
    if last == "ARROW":
        return "an arrow leads to an op, a module or a pool: y = x -> relu"
    if last == "BY":
        return "a pool is routed by a router: y = x -> p by r"
    if last == "EQUAL" and kind == "IF":
        return "if is a statement: if n > 1 { y = x } else { y = x -> relu }"
    return None


def _follows_an_arrow(mistake: Mistake) -> bool:
    return len(mistake.before) > 1 and mistake.before[-2].type == "ARROW"


RULES: tuple[Callable[[Mistake], str | None], ...] = (
    _reserved,
    _braces,
    _move,
    _word,
    _sign,
    _comma,
    _colon,
    _value,
)
