"""Text to syntax tree, for both languages: one driver around Lark, and its errors in words that help.

The parser is LALR(1) with a contextual lexer: linear in the text, without recursion, and at every point it
knows which terminals could come next. So an error can list what would be accepted, and recognize a
misspelled keyword. The size of a text is bounded (`MAX_CHARACTERS`, `MAX_NESTING`, `MAX_STEPS`), so that
none takes more than a moment to be read or refused.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from meander.errors import QueryError, Span
from meander.syntax.foreign import Construct, explain_foreign

MAX_CHARACTERS = 50_000
"""The longest query text."""

_SKIPPED = re.compile(r"""[%#][^\n]*|`(?:[^`\r\n]|``)+`|"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*'""")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


PHRASES = {
    "GRAPH": "GRAPH VIEW",
    "NAME": "a name",
    "QUOTED": "a name in backquotes",
    "STRING": 'a vertex in quotes ("alice")',
    "INTEGER": "an integer",
    **dict.fromkeys(("NUMBER", "AMOUNT"), "a number"),
    "COMPARISON": "a comparison (=, !=, <, <=, >, >=)",
    "_IN": "in",
    "_NOT": "not",
    "_AND": "and",
    "_OR": "or",
    "SIGN": "+ or -",
    "TIMES": "* or /",
    "DURATION": "a duration (24h, 15 minutes, 3600)",
    **dict.fromkeys(("EDGE", "EDGE_BACK"), "an edge (-[:label]->)"),
    **dict.fromkeys(("PATH_STEP", "PATH_STEP_BACK"), "a path (-/<:label*>/->)"),
    "EDGE_END": '"]->"',
    "EDGE_BACK_END": '"]-"',
    "PATH_STEP_END": '"/->"',
    "PATH_STEP_BACK_END": '"/-"',
    "COLON": "a label (:label)",
    "TILDE": "a PATH clause (~Name)",
    "AT": "@ and the path's variable",
    "LESSTHAN": '"<"',
    "MORETHAN": '">"',
    "EQUAL": '"="',
    "_ARROW": '"<-"',
    "LPAR": '"("',
    "RPAR": '")"',
    "RBRACE": '"}"',
    "COMMA": '","',
    "DOT": '"."',
    "CIRCUMFLEX": '"^"',
    "SLASH": '"/"',
    "VBAR": '"|"',
    "MINUS": '"-" (backwards)',
    **dict.fromkeys(("STAR", "PLUS", "QMARK", "LBRACE"), "a repetition (*, +, ?, {2,4})"),
    "$END": "the end of the query",
}
"""The terminals of both grammars as errors describe them, in the order in which errors list them."""


@dataclass(frozen=True)
class Language:
    """The files of a grammar and the words for its errors.

    `starts` are the rules that a text can be: the first, unless another is asked for. `form` is an example for
    hints. `keywords` are the words of the language, whose terminals have the same names in capitals. `hints` are
    triples (a terminal that would be accepted, the one that came instead or "" for any, the hint); the first that
    fits is given. `foreign` are constructs of other languages.
    """

    name: str
    grammars: tuple[str, ...]
    form: str
    keywords: tuple[str, ...]
    hints: tuple[tuple[str, str, str], ...]
    foreign: tuple[Construct, ...]
    starts: tuple[str, ...] = ("start",)
    terminals: str = ""  # those that are built in Python


class TextErrors:
    """Errors with a position in the query's text."""

    text: str

    def error(self, message: str, span: Span | None, hint: str) -> QueryError:
        return QueryError(message, text=self.text, span=span, hint=hint)


@cache
def _parser(language: Language) -> Lark:
    files = resources.files("meander.syntax")
    parts = [(files / file).read_text(encoding="utf-8") for file in language.grammars]
    return Lark(
        "\n".join([*parts, language.terminals]),
        parser="lalr",
        start=list(language.starts),
        propagate_positions=True,
        maybe_placeholders=True,
    )


def read(language: Language, text: str, start: str = "start") -> Tree[Token]:
    """The syntax tree of a text, or of a part of one; raises `QueryError` if it is not in the language."""
    check_characters(text)
    if not blank_out(text).strip():
        raise QueryError("the query is empty", hint=f"a {language.name} query reads {language.form}")
    try:
        return _parser(language).parse(text, start)
    except UnexpectedInput as error:
        raise _explain(language, text, error) from None


def check_characters(text: str) -> None:
    """Refuse a text that is too long, or holds characters that no query has."""
    if len(text) > MAX_CHARACTERS:
        raise QueryError(
            f"the query has {len(text):,} characters; the most is {MAX_CHARACTERS:,}",
            hint="is this the query, and not the data? Streams are named in a query, not written into it",
        )
    control = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", text)
    if control:
        code = ord(control.group())
        what = "a NUL character" if code == 0 else f"the character U+{code:04X}"
        raise QueryError(
            f"{what} cannot stand in a query",
            text=text,
            span=Span(control.start(), control.end()),
            hint="a query is plain text in UTF-8; in a quoted vertex, write \\uXXXX",
        )


def blank_out(text: str) -> str:
    """The text with comments blanked and quotations filled with `_`: the same length, only its own structure."""
    return _SKIPPED.sub(lambda match: (" " if match[0][0] in "%#" else "_") * len(match[0]), text)


def parse_int(token: Token, text: str, what: str, limit: int, hint: str) -> int:
    """The token's integer, refused above `limit` and, as in two's complement, below `-limit - 1`."""
    if len(token) > 40 or not -limit - 1 <= int(token) <= limit:
        raise QueryError(
            f"{what} is too large: {token[:40]}{'…' if len(token) > 40 else ''}",
            text=text,
            span=span_of(token),
            hint=hint,
        )
    return int(token)


def span_of(located: Any) -> Span:
    """The span of a token, or of a tree's or rule's `Meta`."""
    start = getattr(located, "start_pos", None)
    end = getattr(located, "end_pos", None)
    return Span(start or 0, end or start or 0)


# ---------------------------------------------------------------------------------------------------------
# Errors


def _explain(language: Language, text: str, error: UnexpectedInput) -> QueryError:
    offset = getattr(error, "pos_in_stream", None)
    if offset is not None and offset < len(text):
        foreign = explain_foreign(language.foreign, text, blank_out(text), offset)
        if foreign is not None:
            return foreign
    progress = _Progress(language, text)
    if isinstance(error, UnexpectedToken):
        return _explain_token(progress, error.token)
    assert isinstance(error, UnexpectedCharacters)
    return _explain_character(progress, error.pos_in_stream or 0)


class _Progress:
    """The tokens that the parser accepted, and the terminals that it would have accepted next."""

    def __init__(self, language: Language, text: str) -> None:
        self.language = language
        self.text = text
        self.tokens: list[Token] = []
        self.accepted = self._feed(None)

    def accepted_instead_of_last(self) -> set[str]:
        """The terminals that it would have accepted instead of the last token."""
        return self._feed(self.tokens[-1].start_pos)

    def phrases(self, terminals: set[str]) -> tuple[str, ...]:
        """The terminals as a message describes them."""
        words = {word.upper(): PHRASES.get(word, word) for word in self.language.keywords}
        return tuple(dict.fromkeys(phrase for name, phrase in (words | PHRASES).items() if name in terminals))

    def _feed(self, stop: int | None) -> set[str]:
        parser: Any = _parser(self.language).parse_interactive(self.text, "start")
        tokens: list[Token] = []
        with contextlib.suppress(UnexpectedInput):
            for token in parser.lexer_thread.lex(parser.parser_state):
                if token.start_pos == stop:
                    return set(parser.accepts())
                parser.feed_token(token)
                tokens.append(token)
        self.tokens = tokens
        return set(parser.accepts())


def _explain_token(progress: _Progress, token: Token) -> QueryError:
    text = progress.text
    at_end = token.type == "$END"
    if token.type in _SIGNS and token in _CHARACTER_HINTS and not progress.accepted & _SIGNS:
        return _explain_character(progress, token.start_pos or 0)
    end = len(text.rstrip())
    span = Span(end, end) if at_end else span_of(token)
    misspelled = _misspelled_keyword(progress, token)
    if misspelled is not None:
        return misspelled
    percent = _percent_for_modulo(progress)
    if percent is not None:
        return percent
    opening = _open_bracket(text, span.start)
    if opening is not None and not opening.closed:
        bracket = text[opening.offset]
        return QueryError(
            f"this {bracket} is never closed",
            text=text,
            span=Span(opening.offset, opening.offset + 1),
            hint=f"add the missing {_CLOSING[bracket]}, before {'the end' if at_end else _shorten(token)} or earlier",
        )
    if opening is None and token in _CLOSING.values():
        return QueryError(f"this {token} closes nothing", text=text, span=span, hint="remove it")
    return QueryError(
        "the query ends too early" if at_end else f"{_shorten(token)} does not fit here",
        text=text,
        span=span,
        accepted=progress.phrases(progress.accepted),
        hint=_hint(progress, token),
    )


def _explain_character(progress: _Progress, offset: int) -> QueryError:
    text = progress.text
    character = text[offset]
    if character in "\"'`":
        line_end = text.find("\n", offset)
        return QueryError(
            f"this quotation ({character}) is never closed",
            text=text,
            span=Span(offset, line_end if line_end >= 0 else len(text)),
            hint=f"a quotation ends on its own line, with the {character} that it began with",
        )
    return QueryError(
        f"the character {character} does not fit here",
        text=text,
        span=Span(offset, offset + 1),
        accepted=progress.phrases(progress.accepted),
        hint=_CHARACTER_HINTS.get(
            character, f"a {progress.language.name} query reads {progress.language.form}"
        ),
    )


_CHARACTER_HINTS = {
    ":": "a rule is written head <- body",
    "←": "an arrow is written <- (less than, minus)",
    "→": "an arrow is written -> (minus, greater than)",
    ";": "a rule ends with a full stop",
    "=": "a comparison has a variable or a value on both sides: x != y, m > 5",
    "-": "a label that is not an identifier stands in backquotes: `has-tag`",
    ".": 'vertices have no properties: compare them as they are, (u) = "alice"',
}


_SIGNS = {"SIGN", "TIMES", "COMPARISON"}
"""The terminals of comparisons and arithmetic. Where none fits, one is a character that does not belong there."""


def _misspelled_keyword(progress: _Progress, token: Token) -> QueryError | None:
    """An error for a word that is almost a keyword, if that keyword would be accepted there.

    The word is the token that does not fit, or the one before it: `STREAM s WINDWO 24h` reads WINDWO as
    the head of a rule and stumbles over 24h, `WINDOW 24 SLIED 1` reads SLIED as a unit and stumbles over 1.
    """
    keywords = [word.upper() for word in progress.language.keywords]
    candidates: list[tuple[str, Span, Callable[[], set[str]]]] = [
        (str(token), span_of(token), lambda: progress.accepted)
    ]
    if progress.tokens:
        last = progress.tokens[-1]
        word = re.search(r"[^\W\d]\w*$", last)
        end = span_of(last).end
        if last.type == "NAME":
            candidates.append((str(last), span_of(last), progress.accepted_instead_of_last))
        elif last.type == "DURATION" and word:
            candidates.append((word[0], Span(end - len(word[0]), end), lambda: progress.accepted))
    for written, span, accepted in candidates:
        close = difflib.get_close_matches(written[:40].upper(), keywords, n=3, cutoff=0.7)
        if not close or written.upper() in close:
            continue
        terminals = accepted()
        fitting = [word for word in close if word in terminals]
        if fitting:
            return QueryError(
                f"unknown keyword {written}",
                text=progress.text,
                span=span,
                accepted=progress.phrases(terminals),
                hint=f"did you mean {fitting[0]}?",
            )
    return None


_MODULO = re.compile(r"[ \t]*(?P<sign>%)\s*(?:\d|[^\W\d][\w.]*\s*[)\],.=<>!]|\()")


def _percent_for_modulo(progress: _Progress) -> QueryError | None:
    """An error for a comment that was meant as an operation: `m % 2 = 0`, after which the query cannot be read on."""
    if not progress.tokens or "TIMES" not in progress.accepted:
        return None
    percent = _MODULO.match(progress.text, span_of(progress.tokens[-1]).end)
    if percent is None:
        return None
    return QueryError(
        "% starts a comment, up to the end of the line",
        text=progress.text,
        span=Span(*percent.span("sign")),
        accepted=progress.phrases(progress.accepted),
        hint="there is no modulo operator, only + - * /: return the value, and divide where the answers are read",
    )


class _Bracket(NamedTuple):
    offset: int
    closed: bool


def _open_bracket(text: str, offset: int) -> _Bracket | None:
    """The innermost bracket that is open at `offset`, and whether anything in the whole text closes it."""
    still_open: list[int] = []
    innermost: int | None = None
    reached = False
    for bracket in re.finditer(r"[()\[\]{}]|$", blank_out(text)):
        if not reached and (bracket.start() >= offset or not bracket[0]):
            reached = True
            innermost = still_open[-1] if still_open else None
        if bracket[0] in _CLOSING:
            still_open.append(bracket.start())
        elif still_open and _CLOSING[text[still_open[-1]]] == bracket[0]:
            still_open.pop()
    return None if innermost is None else _Bracket(innermost, innermost not in still_open)


def _hint(progress: _Progress, token: Token) -> str:
    for wanted, came, hint in progress.language.hints:
        if wanted in progress.accepted and came in ("", token.type):
            return hint
    if token.upper() in map(str.upper, progress.language.keywords):
        return f"{token.upper()} is a keyword; a name with that spelling stands in backquotes"
    return f"a {progress.language.name} query reads {progress.language.form}"


def _shorten(token: Token) -> str:
    return token if len(token) <= 40 else f"{token[:40]}…"
