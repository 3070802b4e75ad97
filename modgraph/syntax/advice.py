"""Suggests valid text for a syntax mistake, and lists the tokens that the parser expects."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import chain

from modgraph.diagnostics import closest
from modgraph.syntax.tables import literals
from modgraph.syntax.tokens import PlacedToken

ATOM_START = frozenset("NAME INTEGER DECIMAL STRING LPAR LSQB TRUE FALSE".split())
OPERATORS = frozenset("PLUS MINUS STAR SLASH FLOOR PERCENT POWER".split())
GOES_ON = OPERATORS | frozenset(  # tokens that continue an expression
    "ARROW BY OVER DOT DOTDOT LPAR LSQB EQUALS UNEQUAL LESS GREATER AT_MOST AT_LEAST AND OR IN NOT".split()
)
BINDING_GOES_ON = frozenset(("COMMA", "EQUAL", "LSQB"))  # after the first name of a statement
WORDS = {"NAME": "a name", "INTEGER": "a number", "DECIMAL": "a number", "STRING": "a string", "$END": "the end"}
EXAMPLES = {
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
LOOP = "scan 0..4 as n with h: float[8] = x { h = h -> linear(8) yield h } until (h -> max(axis=-1)) > 1 as y"
DEFINITIONS = {
    "MODEL": "model m(width=8) { input x: float[4] output x }",
    "BLOCK": "block b(width=8) { input x: float[4] output x }",
    "ROUTER": "router r() for p { input x: float[n, 8] g = x -> linear(p) -> softmax y = x -> p by g output y }",
    "IMPORT": 'import ffn from "blocks.mod"',
}
STATEMENT_KEYWORDS = frozenset(EXAMPLES) - {"NAME"}
DEFINITION_KEYWORDS = frozenset(DEFINITIONS)
FOREIGN_WORDS = {
    **dict.fromkeys(("let", "var", "val", "const", "auto"), EXAMPLES["NAME"]),
    **dict.fromkeys(("return", "print"), EXAMPLES["OUTPUT"]),
    **dict.fromkeys(("def", "fn", "func", "function", "class", "lambda"), DEFINITIONS["BLOCK"]),
    **dict.fromkeys(("loop", "foreach"), EXAMPLES["REPEAT"]),
    "while": LOOP,
    **dict.fromkeys(("elif", "elseif", "elsif"), "if n > 1 { x = x -> relu } else if n > 0 { x = x -> tanh }"),
    **dict.fromkeys(("from", "include", "use", "using"), DEFINITIONS["IMPORT"]),
}
PARTS = {
    **dict.fromkeys(("true", "false"), "y = x -> linear(8, bias=false)"),
    **dict.fromkeys(("and", "or", "not"), "if n > 1 and not wide { x = x -> relu }"),
    "else": EXAMPLES["IF"],
    "in": EXAMPLES["REPEAT"],
    "by": "y = x -> expert by agree",
    "over": "y = values by gates over time",
    **dict.fromkeys(("as", "with"), EXAMPLES["SCAN"]),
    "until": LOOP,
    "from": DEFINITIONS["IMPORT"],
}
CLOSING = {"LPAR": ")", "LSQB": "]"}


@dataclass(frozen=True)
class Mistake:
    """A token that the grammar does not allow at its place.

    `before` holds the preceding tokens, the nearest last, and `after` the next one. `statement` is the keyword of the
    enclosing statement, "NAME" in a body between statements, "" at the top. `bracket` is the innermost open bracket.
    `as_name` marks a reserved word in the place of a name.
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
        """Whether the token follows the first name of a statement."""
        return self.statement == "NAME" and self.last == "NAME" and self.accepted >= BINDING_GOES_ON

    @property
    def factor(self) -> PlacedToken | None:
        """The number, or the first name of a loss, in front of the last name on its line, with no sign between."""
        if len(self.before) < 3 or self.last != "NAME":
            return None
        introduced, factor, name = self.before[-3:]
        is_number = factor.type in ("INTEGER", "DECIMAL")
        is_name = factor.type == "NAME" and introduced.type == "LOSS" and self.kind == "LPAR"
        between = name.span.source.text[factor.span.end : name.span.start]
        return factor if (is_number or is_name) and "\n" not in between else None

    @property
    def arguments(self) -> str:
        """The text from an opening to its closing parenthesis, "" for another token."""
        text, depth = self.token.span.source.text, 0
        for at in range(self.token.span.start, len(text) if self.kind == "LPAR" else 0):
            depth += (text[at] == "(") - (text[at] == ")")
            if depth == 0:
                return " ".join(text[self.token.span.start : at + 1].split())
        return ""


def find_examples(word: str) -> list[str]:
    """Return examples of the statements and definitions that contain a word of the language."""
    examples = [each[word.upper()] for each in (EXAMPLES, DEFINITIONS) if word.upper() in each]
    return examples or [PARTS[word]] if word in PARTS or examples else []


def advise(mistake: Mistake) -> str:
    """Suggest the text that the author most likely meant, or an example of the statement."""
    example = EXAMPLES.get(mistake.statement) or DEFINITIONS.get(mistake.statement)
    otherwise = DEFINITIONS["MODEL"] if example is None else f"write, for example: {example}"
    rules = (_advise_on_structure, _advise_on_words, _advise_on_signs, _advise_on_values)
    return next(chain.from_iterable(rule(mistake) for rule in rules), otherwise)


def _advise_on_structure(mistake: Mistake) -> Iterator[str]:
    """Suggest fixes for braces, brackets and missing names."""
    kind = mistake.kind
    if (kind, mistake.bracket, mistake.following) == ("IN", "LPAR", "EQUAL"):
        yield f'leave out "{mistake.token}": sizes of inputs follow from the wiring'
    if mistake.as_name:
        yield f'choose another name: "{mistake.token}" is reserved'
    if kind == "RBRACE" and "$END" in mistake.accepted:
        yield "leave out this closing brace"
    if kind in DEFINITION_KEYWORDS and "RBRACE" in mistake.accepted:
        yield f"move the {mistake.token} to the top of the file, outside of the braces"
    if mistake.bracket and (kind in STATEMENT_KEYWORDS or kind in ("$END", "RBRACE", "RPAR", "RSQB")):
        not_closed = f"close the bracket: {CLOSING[mistake.bracket]}"
        yield "leave out the comma, or write one more" if mistake.last == "COMMA" else not_closed
    if kind == "$END":
        yield "close the brace: }"
    if kind in ("RPAR", "RSQB") and not mistake.bracket:
        yield "leave it out: no bracket is open"
    if mistake.statement == "MOVED":
        yield f"write, for example: {EXAMPLES['MOVED']}"


def _advise_on_words(mistake: Mistake) -> Iterator[str]:
    """Replace a word of another language, or a misspelt keyword, at the start of a statement or definition."""
    top = mistake.statement == "" and mistake.kind in ("NAME", "FROM")
    if not top and not mistake.after_first_name:
        return
    word = str(mistake.token if top else mistake.before[-1])
    if word in FOREIGN_WORDS:
        yield f'"{word}" is no word of the language: {FOREIGN_WORDS[word]}'
    if word == "until":
        yield f"until follows the body of a scan: {LOOP}"
    keyword = closest(word, [each.lower() for each in (DEFINITION_KEYWORDS if top else STATEMENT_KEYWORDS)])
    if keyword is not None and (top or mistake.kind in ("NAME", "INTEGER", "LBRACE")):
        yield f'did you mean "{keyword}"? {(DEFINITIONS | EXAMPLES)[keyword.upper()]}'


def _advise_on_signs(mistake: Mistake) -> Iterator[str]:
    """Replace a sign of another language, or one with another meaning here."""
    kind, following, last = mistake.kind, mistake.following, mistake.last
    between_statements = "INPUT" in mistake.accepted
    if (kind, following) == ("EQUAL", "GREATER"):
        yield f"write an arrow as ->: {EXAMPLES['NAME']}"
    if between_statements and (kind == "FLOOR" or (kind, following) == ("SLASH", "STAR")):
        yield "begin a comment with #"
    if (kind, following) == ("DOT", "INTEGER"):
        yield f"write 0.{mistake.after}"
    if mistake.after_first_name:
        name = mistake.before[-1]
        if kind == "EQUALS" or (kind, following) == ("COLON", "EQUAL"):
            yield f"bind a value with one sign: {name} = x -> relu"
        if kind in OPERATORS and following == "EQUAL":
            yield f"write it out: {name} = {name} {mistake.token} 1"
        if kind == "ARROW":
            yield f"give the result a name: y = {name} -> relu"
        factor = mistake.factor
        if factor is not None:
            yield f"multiply with *: {factor} * {name}{mistake.arguments}"
        if kind == "LPAR":
            yield f"give the result a name: y = {name}(x)"
    elif (kind, following) == ("COLON", "EQUAL"):
        yield f"bind a value with one sign: {EXAMPLES['NAME']}"
    if kind == "COMMA" and mistake.statement == "OUTPUT":
        yield "write a statement for each output: output x output y"
    if kind == "COMMA" and between_statements:
        yield "leave it out: statements need no sign between them"
    if kind == "COMMA" and last in ("LPAR", "LSQB", "COMMA"):
        yield "leave out the comma"
    if kind == "COLON" and mistake.after is not None:
        if mistake.bracket == "LPAR" and last == "NAME":
            yield f"give an argument with =: {mistake.before[-1]}={mistake.after}"
        if mistake.bracket == "LSQB" and last == "INTEGER":
            yield f"write a range with two dots: {mistake.before[-1]}..{mistake.after}"


def _advise_on_values(mistake: Mistake) -> Iterator[str]:
    """Suggest a value or an op where the text has neither."""
    kind, last = mistake.kind, mistake.last
    before = [each.type for each in mistake.before]
    if kind in ("INTEGER", "DECIMAL", "STRING", "TRUE", "FALSE") and before[-2:] == ["ARROW", "NAME"]:
        yield f"put arguments in parentheses: {mistake.before[-1]}({mistake.token})"
    if kind in OPERATORS and "ARROW" in mistake.accepted:
        begins = next((each for each in reversed(before) if each in ("BY", "ARROW")), "")
        either = f", or the weights: x -> p by (w {mistake.token} y)" if begins == "BY" else ""
        yield f"put the pipeline in parentheses: (x -> op) {mistake.token} y{either}"
    if kind == "OVER":
        yield "put by before over: y = x -> p by w over time"
    if last == "OVER":
        yield "name an axis, or count from the last: by w over time, by w over -2"
    if last == "ARROW" and kind == "REPEAT":
        yield "repeat is a statement; along an axis write: y = x -> new_axis(2) -> merge(-3, -2)"
    if last == "ARROW":
        yield "put an op, a module or a pool after the arrow: y = x -> relu"
    if last == "BY":
        yield "route a pool by a router: y = x -> p by r"
    if last == "EQUAL" and kind == "IF":
        yield "write if as a statement: if n > 1 { y = x } else { y = x -> relu }"


def describe_expected(accepted: Set[str]) -> str:
    """Describe the tokens that the parser accepts, as briefly as is useful."""
    rest = frozenset(accepted)
    if rest == BINDING_GOES_ON:
        return '"="'
    groups = [  # tokens that a reader takes for one thing, and its name
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
