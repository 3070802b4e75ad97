"""Parses a text into a syntax tree and reports all its syntax mistakes at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lark import UnexpectedToken
from lark.parsers.lalr_analysis import Shift

from modgraph.diagnostics import Diagnostic, Report, Source, Span, closest, list_names
from modgraph.files import explain_error, open_file
from modgraph.log import log
from modgraph.syntax import ast, errors, limits
from modgraph.syntax.advice import DEFINITION_KEYWORDS, STATEMENT_KEYWORDS, Mistake, advise, describe_expected
from modgraph.syntax.build import Rejected
from modgraph.syntax.errors import NotText, TooDeep, TooLong
from modgraph.syntax.tables import literals, load_language
from modgraph.syntax.tokens import SOFT, PlacedToken, tokens

OPENING = frozenset(("LPAR", "LSQB", "LBRACE"))
CLOSING = frozenset(("RPAR", "RSQB", "RBRACE"))
NAME_FOLLOWS = frozenset("INPUT TARGET TOKENIZER MODULE POOL ROUTER MODEL BLOCK REPEAT FOR BY AS DOT".split())
FOLLOWS_NAME = frozenset("EQUAL COLON ARROW COMMA RPAR RSQB LSQB".split())
KEYWORDS = STATEMENT_KEYWORDS | DEFINITION_KEYWORDS
PATH = frozenset(("MOVED", "ARROW", "DOT"))  # in a path, a keyword is part of a name
NEIGHBOURS = 6  # tokens before a mistake that hint at its meaning


def read(path: str | Path, report: Report, span: Span | None = None, label: str = "") -> Source | None:
    """Read a spec file; None, with the reason reported at `span`."""
    name = str(path)
    try:
        with open_file(path) as file:
            log.debug(f"read {path}")
            content = file.read(limits.SOURCE_BYTES + 1)
    except (OSError, ValueError) as error:
        report.add(
            errors.UnreadableFile(span=span, path=name, reason=explain_error(error), way_out=_suggest_paths(Path(path)))
        )
        return None
    reason = _explain_unreadable(content)
    if reason is not None:
        report.add(NotText(span=span, path=name, reason=reason, limit=limits.SOURCE_BYTES))
        return None
    return Source(name, content.decode("utf-8-sig").replace("\r\n", "\n"), label)


def parse(source: Source, report: Report) -> ast.File | None:
    """Parse a text; None, with every syntax mistake reported."""
    if (reason := _explain_unreadable(source.text.encode("utf-8", "surrogatepass"))) is not None:
        report.add(NotText(path=source.name, reason=reason, limit=limits.SOURCE_BYTES))
        return None
    earlier = len(report.errors)
    stream = _tokenize(source, report)
    file = Recovery(source, report).run(stream) if stream is not None else None
    if len(report.errors) > earlier or file is None:
        return None
    if not file.definitions:
        report.add(errors.NothingHere(span=Span(source, 0, min(1, len(source.text)))))
        return None
    return file


def read_tokens(source: Source) -> list[PlacedToken]:
    """Return the tokens of a text, even of one with syntax mistakes."""
    stream = list(tokens(source, Report()))
    Recovery(source, Report()).run(stream)
    return stream


def _tokenize(source: Source, report: Report) -> list[PlacedToken] | None:
    """Return the tokens of a text; None, with a report, if there are too many or brackets nest too deep."""
    stream: list[PlacedToken] = []
    depth = 0
    most = len(report.errors) + limits.REPORTED_SYNTAX_ERRORS
    for token in tokens(source, report):
        span, depth = token.span, max(0, depth + (token.type in OPENING) - (token.type in CLOSING))
        problem: Diagnostic | None = None
        if depth > limits.BRACKET_DEPTH:
            problem = TooDeep(span=span, what="brackets are", limit=limits.BRACKET_DEPTH)
        elif len(stream) == limits.TOKENS:
            problem = TooLong(span=span, what="words and signs", limit=limits.TOKENS)
        elif token.type == "NAME" and len(token) > limits.LETTERS:
            problem = TooLong(span=span, what="letters in a name", limit=limits.LETTERS, way_out="choose a shorter one")
        if problem is not None:
            report.add(problem)
            return None
        stream.append(token)
    return stream if len(report.errors) < most else None


def _explain_unreadable(content: bytes) -> str | None:
    if len(content) > limits.SOURCE_BYTES:
        return "it is too long"
    if b"\0" in content:
        return "it contains a NUL character"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"byte {error.start} is not UTF-8"
    return None


def _suggest_paths(path: Path) -> str:
    """Suggest specs for a misspelt path or a folder."""
    try:
        if path.is_dir():
            names = sorted(str(entry) for entry in path.glob("*.mod"))
            return f"name a spec: {list_names(names)}" if names else "name a spec, a file that ends in .mod"
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix == path.suffix and entry != path]
    except (OSError, ValueError):
        return "check the path"
    match = closest(path.name, names)
    return f'did you mean "{path.parent / match}"?' if match else "check the path"


def keywords() -> Iterator[str]:
    """Iterate over the reserved words of the language."""
    return (text for name, text in literals().items() if text.isalpha() and name == text.upper())


class Recovery:
    """Feeds tokens to the parser and recovers from mistakes.

    After a mistake the parser returns to its state before the broken statement and resumes at the next statement
    keyword or at the closing brace of the body.
    """

    def __init__(self, source: Source, report: Report) -> None:
        self.source = source
        self.report = report
        self.parser: Any = load_language().parse_interactive("", start="start").parser_state
        self.checkpoints = [self._copy_stacks()]  # for each open body: the state before its last statement
        self.mistakes = 0
        self.stream: list[PlacedToken] = []
        self.at = 0
        strays = (each.span for each in report.errors if isinstance(each, errors.StrayCharacter))
        self.strays = [span.start for span in strays if span is not None and span.source is source]

    def run(self, stream: list[PlacedToken]) -> ast.File | None:
        """Parse tokens; a soft keyword in the place of a name becomes a name."""
        self.stream, at = stream, 0
        while at < len(stream):
            self.at = at
            if stream[at].type in SOFT and not self._is_keyword(at):
                stream[at] = stream[at].as_name()
            token = stream[at]
            before = self._copy_stacks() if token.type in KEYWORDS and self.last not in PATH else self.checkpoints[-1]
            if len(before[0]) > limits.PARSER_STACK:
                self.report.add(TooDeep(span=token.span, what="this is", limit=limits.TREE_DEPTH))
                return None
            if self._feed(token):
                self.checkpoints[-1] = before
                if token.type == "LBRACE":
                    self.checkpoints.append(self._copy_stacks())
                elif token.type == "RBRACE":
                    self.checkpoints.pop()
                at += 1
                continue
            if self.mistakes >= limits.REPORTED_SYNTAX_ERRORS:
                return None
            if self._is_misused_word(token):
                stream[at] = token.as_name()
                continue
            at = self._resume(stream, at)
        end = len(self.source.text.rstrip())
        result = self._feed(PlacedToken.create("$END", "", Span(self.source, max(0, end - 1), end)))
        return result if isinstance(result, ast.File) else None

    @property
    def before(self) -> tuple[PlacedToken, ...]:
        """The tokens just before the current one."""
        return tuple(self.stream[max(0, self.at - NEIGHBOURS) : self.at])

    @property
    def last(self) -> str:
        return self.stream[self.at - 1].type if self.at else ""

    @property
    def after(self) -> PlacedToken | None:
        return self.stream[self.at + 1] if self.at + 1 < len(self.stream) else None

    def _feed(self, token: PlacedToken) -> Any:
        """Feed one token: return True or the finished file, or False after a reported mistake."""
        try:
            result = self.parser.feed_token(token, token.type == "$END")
            return result if result is not None else True
        except UnexpectedToken:
            start = self.before[0].span.start if self.before else 0
            if not any(start <= stray < token.span.end for stray in self.strays):  # which may have caused this
                self.report.add(self._describe_unexpected(token))
        except Rejected as rejection:
            self.report.add(rejection.diagnostic)
        self.mistakes += 1
        return False

    def _is_misused_word(self, token: PlacedToken) -> bool:
        """Whether a reserved word stands in the place of a name and begins no statement."""
        following = self.after.type if self.after is not None else ""
        begins = token.type in STATEMENT_KEYWORDS and following == "NAME"
        as_name = (self.last in NAME_FOLLOWS and not begins) or following in FOLLOWS_NAME
        return as_name and token.isalpha() and token.type != "NAME" and self._accepts("NAME")

    def _is_keyword(self, at: int) -> bool:
        """Whether a soft keyword is a keyword here: the parser accepts no name, or none before the next token."""
        kinds = [each.type for each in self.stream[at : at + 2]]
        following = [kinds[1:], ["NAME"]] if kinds[-1] in SOFT else [kinds[1:]]
        goes_on = any(self._accepts(kinds[0], *each) and not self._accepts("NAME", *each) for each in following)
        return goes_on or not self._accepts("NAME")

    def _resume(self, stream: list[PlacedToken], at: int) -> int:
        """Restore the last checkpoint and find the token to continue at."""
        self.parser.state_stack[:], self.parser.value_stack[:] = self.checkpoints[-1]
        opened = 0
        for later in range(self._find_end(stream, at), len(stream)):
            kind = stream[later].type
            opened += (kind == "LBRACE") - (kind == "RBRACE")
            if kind in DEFINITION_KEYWORDS or (kind in STATEMENT_KEYWORDS and opened <= 0) or opened < 0:
                if kind not in DEFINITION_KEYWORDS and self._accepts("$END"):
                    continue
                if self._is_keyword(later) if kind in SOFT else self._accepts(kind):
                    return later
        return len(stream)

    def _find_end(self, stream: list[PlacedToken], at: int) -> int:
        """Find the end of the tokens that belong to the mistake, though they look like a statement."""
        kinds = [token.type for token in stream[at:]]
        if kinds[0] == "FROM":
            return at + kinds.index("IMPORT") + 1 if "IMPORT" in kinds else at
        if kinds[0] != "IF" or self.last != "EQUAL":
            return at
        depth = 0
        for later, kind in enumerate(kinds):  # skip the bodies, those of `else` included
            depth += (kind == "LBRACE") - (kind == "RBRACE")
            if kind == "RBRACE" and depth <= 0 and kinds[later + 1 : later + 2] != ["ELSE"]:
                return at + later + 1
        return len(stream)

    def _copy_stacks(self) -> tuple[list[Any], list[Any]]:
        return list(self.parser.state_stack), list(self.parser.value_stack)

    def _accepts(self, *kinds: str) -> bool:
        """Whether the parser accepts these tokens one after another: each leads to a shift after any reductions."""
        conf = self.parser.parse_conf
        states, stack = conf.states, list(self.parser.state_stack)
        for kind in kinds:
            while stack[-1] != conf.end_state:
                action, argument = states[stack[-1]].get(kind, (None, None))
                if action is None:
                    return False
                if action is Shift:
                    stack.append(argument)
                    break
                del stack[len(stack) - len(argument.expansion) :]
                stack.append(states[stack[-1]][argument.origin.name][1])
        return True

    def _describe_unexpected(self, token: PlacedToken) -> errors.UnexpectedText:
        choices = self.parser.parse_conf.states[self.parser.state_stack[-1]]
        accepted = frozenset(kind for kind in choices if kind.isupper() and self._accepts(kind))
        as_name = self._is_misused_word(token)
        mistake = Mistake(token, self.before, self.after, accepted, *self._find_surroundings(), as_name)
        found = "the end of the file" if token.type == "$END" else f'"{token}"'
        return errors.UnexpectedText(
            span=token.span, found=found, expected=describe_expected(accepted), way_out=advise(mistake)
        )

    def _find_surroundings(self) -> tuple[str, str]:
        """Return the keyword of the incomplete statement or definition ("NAME" in a body, "" at the top), and its open
        bracket: LPAR, LSQB or none."""
        bracket, closed = "", 0
        for kind in (each.type for each in reversed(self.parser.value_stack) if isinstance(each, PlacedToken)):
            if kind == "LBRACE":
                return "NAME", bracket
            if kind in KEYWORDS:
                return kind, bracket
            if kind in ("LPAR", "LSQB") and closed == 0 and not bracket:
                bracket = kind
            closed += (kind in ("RPAR", "RSQB")) - (kind in ("LPAR", "LSQB"))
        return "", bracket
