"""The way out of a syntax mistake: what was most likely meant, as text that can be written; and what could stand."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import chain

from modgraph.diagnostics import closest
from modgraph.syntax.tables import literals
from modgraph.syntax.tokens import PlacedToken

ATOM_START = frozenset("NAME INTEGER DECIMAL STRING LPAR LSQB TRUE FALSE".split())
OPERATORS = frozenset("PLUS MINUS STAR SLASH FLOOR PERCENT POWER".split())
GOES_ON = OPERATORS | frozenset(  # what an expression goes on with
    "ARROW BY OVER DOT DOTDOT LPAR LSQB EQUALS UNEQUAL LESS GREATER AT_MOST AT_LEAST AND OR IN NOT".split()
)
BINDING_GOES_ON = frozenset(("COMMA", "EQUAL", "LSQB"))  # after the name that a statement begins with
WORDS = {"NAME": "a name", "INTEGER": "a number", "DECIMAL": "a number", "STRING": "a string", "$END": "the end"}
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
STATEMENT_KEYWORDS = frozenset(FORMS) - {"NAME"}
DEFINITION_KEYWORDS = frozenset(DEFINITIONS)
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
    def kind(self) -> str:
        return self.token.type

    @property
    def last(self) -> str:
        return self.before[-1].type if self.before else ""

    @property
    def following(self) -> str:
        return self.after.type if self.after is not None else ""

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
    otherwise = DEFINITIONS["MODEL"] if form is None else f"write, for example: {form}"
    meant = chain(*(of_kind(mistake) for of_kind in (_of_structure, _of_words, _of_signs, _of_values)))
    return next(meant, otherwise)


def _of_structure(mistake: Mistake) -> Iterator[str]:
    """Braces and brackets, and names where there are none."""
    kind = mistake.kind
    if mistake.as_name:
        yield f'"{mistake.token}" is a reserved word: choose another name'
    if kind == "RBRACE" and "$END" in mistake.accepted:
        yield "one closing brace too many"
    if kind in DEFINITION_KEYWORDS and "RBRACE" in mistake.accepted:
        yield f"{mistake.token}s stand at the top of the file, outside of the braces"
    if mistake.bracket and (kind in STATEMENT_KEYWORDS or kind in ("$END", "RBRACE", "RPAR", "RSQB")):
        not_closed = f"a bracket is not closed: {CLOSING[mistake.bracket]}"
        yield "leave out the comma, or write one more" if mistake.last == "COMMA" else not_closed
    if kind == "$END":
        yield "a brace is not closed: }"
    if kind in ("RPAR", "RSQB") and not mistake.bracket:
        yield "no bracket is open here: leave it out"
    if mistake.statement == "MOVED":
        yield f"write, for example: {FORMS['MOVED']}"


def _of_words(mistake: Mistake) -> Iterator[str]:
    """A word of another language, or a misspelt keyword, where a statement or a definition begins."""
    top = mistake.statement == "" and mistake.kind in ("NAME", "FROM")
    if not top and not mistake.after_first_name:
        return
    word = str(mistake.token if top else mistake.before[-1])
    if word in OF_OTHER_LANGUAGES:
        yield f'"{word}" is no word of the language: {OF_OTHER_LANGUAGES[word]}'
    keyword = closest(word, [each.lower() for each in (DEFINITION_KEYWORDS if top else STATEMENT_KEYWORDS)])
    if keyword is not None and (top or mistake.kind in ("NAME", "INTEGER", "LBRACE")):
        yield f'did you mean "{keyword}"? {(DEFINITIONS | FORMS)[keyword.upper()]}'


def _of_signs(mistake: Mistake) -> Iterator[str]:
    """A sign that other languages write, or that has another meaning here."""
    kind, following, last = mistake.kind, mistake.following, mistake.last
    between_statements = "INPUT" in mistake.accepted
    if (kind, following) == ("EQUAL", "GREATER"):
        yield f"an arrow is written ->: {FORMS['NAME']}"
    if between_statements and (kind == "FLOOR" or (kind, following) == ("SLASH", "STAR")):
        yield "a comment begins with #"
    if (kind, following) == ("DOT", "INTEGER"):
        yield f"write 0.{mistake.after}"
    if mistake.after_first_name:
        name = mistake.before[-1]
        if kind == "EQUALS" or (kind, following) == ("COLON", "EQUAL"):
            yield f"a value is bound with one sign: {name} = x -> relu"
        if kind in OPERATORS and following == "EQUAL":
            yield f"write it out: {name} = {name} {mistake.token} 1"
        if kind == "ARROW":
            yield f"give the result a name: y = {name} -> relu"
        if kind == "LPAR":
            yield f"give the result a name: y = {name}(x)"
    elif (kind, following) == ("COLON", "EQUAL"):
        yield f"a value is bound with one sign: {FORMS['NAME']}"
    if kind == "COMMA" and mistake.statement == "OUTPUT":
        yield "each output is a statement: output x output y"
    if kind == "COMMA" and between_statements:
        yield "statements need no sign between them"
    if kind == "COMMA" and last in ("LPAR", "LSQB", "COMMA"):
        yield "leave out the comma"
    if kind == "COLON" and mistake.after is not None:
        if mistake.bracket == "LPAR" and last == "NAME":
            yield f"an argument is given with =: {mistake.before[-1]}={mistake.after}"
        if mistake.bracket == "LSQB" and last == "INTEGER":
            yield f"a range is written with two dots: {mistake.before[-1]}..{mistake.after}"


def _of_values(mistake: Mistake) -> Iterator[str]:
    """Something that is no value, or no op, where one must stand."""
    kind, last = mistake.kind, mistake.last
    before = [each.type for each in mistake.before]
    if kind in ("INTEGER", "DECIMAL", "STRING", "TRUE", "FALSE") and before[-2:] == ["ARROW", "NAME"]:
        yield f"arguments stand in parentheses: {mistake.before[-1]}({mistake.token})"
    if kind in OPERATORS and "ARROW" in mistake.accepted:
        begins = next((each for each in reversed(before) if each in ("BY", "ARROW")), "")
        either = f", or the weights: x -> p by (w {mistake.token} y)" if begins == "BY" else ""
        yield f"put the pipeline in parentheses: (x -> op) {mistake.token} y{either}"
    if kind == "OVER":
        yield "what is summed with comes first: y = x -> p by w over time"
    if last == "OVER":
        yield "an axis is named, or counted from the last: by w over time, by w over -2"
    if last == "ARROW" and kind == "REPEAT":
        yield "repeat is a statement; twice along an axis is: y = x -> new_axis(2) -> merge(-3, -2)"
    if last == "ARROW":
        yield "an arrow leads to an op, a module or a pool: y = x -> relu"
    if last == "BY":
        yield "a pool is routed by a router: y = x -> p by r"
    if last == "EQUAL" and kind == "IF":
        yield "if is a statement: if n > 1 { y = x } else { y = x -> relu }"


def expected(accepted: Set[str]) -> str:
    """The tokens that a parser accepts, in words, shortest useful form."""
    rest = frozenset(accepted)
    if rest == BINDING_GOES_ON:
        return '"="'
    groups = [  # tokens that are one thing to a reader, and what it is called
        (STATEMENT_KEYWORDS | {"NAME"}, "a statement"),
        (DEFINITION_KEYWORDS | {"$END"}, "a model, a block or an import"),
    ]
    if rest >= ATOM_START:
        phrase = "an expression" if "MINUS" in rest else "an op, a module or a pool"
        groups = [(ATOM_START | rest & {"MINUS", "NOT"}, phrase)]
    elif rest & {"PLUS", "ARROW"}:
        groups.append((rest & GOES_ON, "an operator" if "PLUS" in rest else "an arrow"))
    phrases: list[str] = []
    for group, phrase in groups:
        if rest >= group:
            rest -= group
            phrases.append(phrase)
    phrases += sorted({WORDS.get(name) or f'"{literals().get(name, name.lower())}"' for name in rest})
    return phrases[0] if len(phrases) == 1 else ", ".join(phrases[:-1]) + " or " + phrases[-1]
