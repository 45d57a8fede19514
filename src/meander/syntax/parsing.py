"""Text to tree, for both languages: one driver around Lark, and its complaints in words a person can use.

The parser is LALR(1) with a contextual lexer: linear in the text, without recursion, and at every point it
knows which terminals could come next. So an error can say what would be accepted, and whether a word that
does not fit is a misspelt keyword. A text has bounds (`MAX_CHARACTERS`, `MAX_NESTING`, `MAX_STEPS`), so that
none takes more than a moment to be read or refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from meander.errors import QueryError, Span

MAX_CHARACTERS = 100_000
"""The longest query text."""

_SKIPPED = re.compile(r"""[%#][^\n]*|`(?:[^`\r\n]|``)+`|"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*'""")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Language:
    """A grammar file and the words for its terminals.

    `phrases` maps the name of a terminal to what an error calls it, in the order in which they are listed;
    `keywords` maps those that are words to their spelling. `hints` are triples (a terminal that would be
    accepted, the one that came instead or "" for any, what to say); the first that fits is said.
    """

    name: str
    grammar: str
    keywords: Mapping[str, str]
    phrases: Mapping[str, str]
    hints: tuple[tuple[str, str, str], ...]

    def __hash__(self) -> int:
        return hash(self.grammar)


@cache
def _parser(language: Language) -> Lark:
    return Lark.open_from_package(
        "meander.syntax", language.grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True
    )


def read(language: Language, text: str) -> Tree[Token]:
    """The text's syntax tree; raises `QueryError` where the text is not of the language."""
    check_characters(text)
    if not blank_out(text).strip():
        raise QueryError(
            "the query is empty",
            hint="a query needs a stream and a rule, such as: "
            "STREAM s WINDOW 24h  Answer(x, y) <- follows+(x, y).",
        )
    try:
        return _parser(language).parse(text)
    except UnexpectedInput as error:
        raise _explain(language, text, error) from None


def check_characters(text: str) -> None:
    """Refuse a text that is too long, or holds characters that no query has."""
    if len(text) > MAX_CHARACTERS:
        raise QueryError(
            f"the query has {len(text):,} characters; the most is {MAX_CHARACTERS:,}",
            hint="is this the query, and not the data? Streams are named in a query, not written into it",
        )
    found = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", text)
    if found:
        code = ord(found.group())
        what = "a NUL character" if code == 0 else f"the character U+{code:04X}"
        raise QueryError(
            f"{what} cannot stand in a query",
            text=text,
            span=Span(found.start(), found.end()),
            hint="a query is plain text in UTF-8; in a quoted vertex, write \\uXXXX",
        )


def blank_out(text: str) -> str:
    """The text with comments and quotations replaced by blanks: the same length, only its own structure."""
    return _SKIPPED.sub(lambda found: (" " if found[0][0] in "%#" else "_") * len(found[0]), text)


def parse_int(token: Token, text: str, what: str, limit: int) -> int:
    """The token's integer, refused above `limit` in size."""
    if len(token) > 40 or abs(int(token)) > limit:
        raise QueryError(
            f"{what} is too large: {token[:40]}{'…' if len(token) > 40 else ''}",
            text=text,
            span=span_of(token),
            hint=f"the largest is {limit:,}",
        )
    return int(token)


def span_of(place: Any) -> Span:
    """The span of a token, or of a tree's or rule's `Meta`."""
    start = getattr(place, "start_pos", None)
    end = getattr(place, "end_pos", None)
    return Span(start or 0, end or start or 0)


# ---------------------------------------------------------------------------------------------------------
# Complaints


def _explain(language: Language, text: str, error: UnexpectedInput) -> QueryError:
    if isinstance(error, UnexpectedCharacters):
        return _explain_character(language, text, error)
    assert isinstance(error, UnexpectedToken)
    accepted = set(error.accepts or error.expected)
    token = error.token
    if token.type == "$END":
        end = len(text.rstrip())
        where = Span(end, end)
        unclosed = _unclosed_bracket(text, len(text))
        what = "the query ends too early"
    else:
        where = span_of(token)
        unclosed = _unclosed_bracket(text, where.start)
        what = f"{_shorten(token)} does not fit here"
    misspelt = _misspelt_keyword(language, text, error, accepted)
    if misspelt is not None:
        return misspelt
    if unclosed is not None:
        bracket = text[unclosed]
        return QueryError(
            f"this {bracket} is never closed",
            text=text,
            span=Span(unclosed, unclosed + 1),
            hint=f"add the missing {_CLOSING[bracket]}; at the latest before {_shorten(token) or 'the end'}",
        )
    return QueryError(
        what,
        text=text,
        span=where,
        accepted=_phrases(language, accepted),
        hint=_hint(language, token, accepted),
    )


def _explain_character(language: Language, text: str, error: UnexpectedCharacters) -> QueryError:
    place = error.pos_in_stream or 0
    character = text[place]
    line_end = text.find("\n", place)
    if character in "\"'`":
        return QueryError(
            f"this quotation ({character}) is never closed",
            text=text,
            span=Span(place, line_end if line_end >= 0 else len(text)),
            hint=f"a quotation ends on its own line, with the {character} that it began with",
        )
    return QueryError(
        f"the character {character} does not fit here",
        text=text,
        span=Span(place, place + 1),
        accepted=_phrases(language, set(error.allowed or ())),
        hint=_CHARACTER_HINTS.get(
            character, "a label with unusual characters stands in backquotes: `has-tag`"
        ),
    )


_CHARACTER_HINTS = {
    ":": "a rule is written head <- body",
    "←": "a rule is written with <- (less than, minus)",
    "→": "an arrow is written -> (minus, greater than)",
    ";": "a rule ends with a full stop",
    "!": "negation is not part of a regular query",
}


def _misspelt_keyword(
    language: Language, text: str, error: UnexpectedToken, accepted: set[str]
) -> QueryError | None:
    """An error for a word that is almost a keyword, at a place where that keyword could stand.

    The word is the token that does not fit, or the one before it: `STREAM s WINDWO 24h` reads WINDWO as
    the head of a rule and stumbles over 24h.
    """
    candidates: list[tuple[Token, set[str]]] = [(error.token, accepted)]
    for previous in error.token_history or ():
        if previous.type == "NAME":
            candidates.append((previous, _accepted_before(language, text, previous)))
    for token, terminals in candidates:
        words = {language.keywords[name]: name for name in terminals if name in language.keywords}
        if not re.fullmatch(r"[^\W\d]\w*", token) or len(token) > 40:
            continue
        close = difflib.get_close_matches(token.upper(), words, n=1, cutoff=0.7)
        if close and close[0] != token.upper():
            return QueryError(
                f"unknown keyword {token}",
                text=text,
                span=span_of(token),
                hint=f"did you mean {close[0]}?",
                accepted=_phrases(language, terminals),
            )
    return None


def _accepted_before(language: Language, text: str, token: Token) -> set[str]:
    """The terminals that the parser would have taken in the place of `token`."""
    parser: Any = _parser(language).parse_interactive(text)
    for next_token in parser.lexer_thread.lex(parser.parser_state):
        if next_token.start_pos == token.start_pos:
            return set(parser.accepts())
        parser.feed_token(next_token)
    return set()


def _unclosed_bracket(text: str, place: int) -> int | None:
    """Where the innermost bracket that is open at `place` stands, if nothing in the whole text closes it."""
    open_brackets: list[int] = []
    innermost = -1
    for found in re.finditer(r"[()\[\]{}]", blank_out(text)):
        if found.start() >= place and innermost < 0:
            innermost = open_brackets[-1] if open_brackets else len(text)
        if found[0] in _CLOSING:
            open_brackets.append(found.start())
        elif open_brackets and _CLOSING[text[open_brackets[-1]]] == found[0]:
            open_brackets.pop()
    if innermost < 0:
        innermost = open_brackets[-1] if open_brackets else len(text)
    return innermost if innermost in open_brackets else None


def _phrases(language: Language, terminals: set[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(phrase for name, phrase in language.phrases.items() if name in terminals))


def _hint(language: Language, token: Token, accepted: set[str]) -> str:
    for wanted, came, hint in language.hints:
        if wanted in accepted and came in ("", token.type):
            return hint
    if str(token).upper() in language.keywords.values():
        return f"{str(token).upper()} is a keyword; a name that is spelt so stands in backquotes"
    return f"compare the place with the forms of {language.name}; it may be what comes just before"


def _shorten(token: Token) -> str:
    return token if len(token) <= 40 else f"{token[:40]}…"
