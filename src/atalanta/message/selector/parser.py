"""Parser of selectors: recursive descent over the grammar of Artemis' selectors.

Precedence, lowest first: OR, AND, NOT, `= <> IS NULL`, `< <= > >= LIKE BETWEEN IN`, `+ -`, `* / %`, signs.
The parser checks the type of every operand, so that an evaluation raises no error.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from atalanta.message.selector.lexer import (
    END,
    FLOAT,
    IDENTIFIER,
    INTEGER,
    KEYWORD,
    STRING,
    SYMBOL,
    FilterError,
    Lexer,
    Token,
)
from atalanta.message.selector.like import LikePattern
from atalanta.message.selector.nodes import (
    EQUAL,
    FALSE,
    GREATER,
    GREATER_EQUAL,
    HEADERS,
    LESS,
    LESS_EQUAL,
    TRUE,
    UNKNOWN,
    And,
    Arithmetic,
    Cast,
    Comparison,
    Condition,
    Constant,
    Expression,
    Header,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    Property,
    XPath,
)

DEPTH_MAX: Final = 48  # nesting of parentheses and signs during parsing
NODE_DEPTH_MAX: Final = 200  # recursion of an evaluation
XPATHS_MAX: Final = 4  # XPATH in one selector: each parses the body
ORDERINGS: Final = {"<": LESS, "<=": LESS_EQUAL, ">": GREATER, ">=": GREATER_EQUAL}
HYPHENS: Final = "hyphenated_props:"
NO_HYPHENS: Final = "no_hyphenated_props:"
CONVERT: Final = "convert_string_expressions:"
NO_CONVERT: Final = "no_convert_string_expressions:"


def _prefixes(text: str) -> tuple[bool, bool, int]:
    """Returns whether hyphens may be in names and whether texts are converted, as the prefixes say, and their end."""
    hyphens = convert = False
    at = 0
    while True:
        if text.startswith(HYPHENS, at):
            hyphens = True
            at += len(HYPHENS)
        elif text.startswith(NO_HYPHENS, at):
            hyphens = False
            at += len(NO_HYPHENS)
        elif text.startswith(CONVERT, at):
            convert = True
            at += len(CONVERT)
        elif text.startswith(NO_CONVERT, at):
            convert = False
            at += len(NO_CONVERT)
        else:
            return hyphens, convert, at


def any_of(selectors: list[str]) -> str:
    """Returns the selector that takes what one of these takes. What a prefix of one says holds for all then."""
    hyphens = convert = False
    conditions: list[str] = []
    for text in selectors:
        own_hyphens, own_convert, at = _prefixes(text)
        hyphens = hyphens or own_hyphens
        convert = convert or own_convert
        conditions.append(f"({text[at:]})")
    return (HYPHENS if hyphens else "") + (CONVERT if convert else "") + " OR ".join(conditions)


class Parser:
    """The parser of one selector. `condition` returns its tree or raises FilterError with the column of the error."""

    def __init__(self, text: str) -> None:
        hyphens, convert, at = _prefixes(text)
        self.convert: bool = convert
        self.tokens: list[Token] = Lexer(text, hyphens, at).tokens()
        self.position: int = 0
        self.depth: int = 0
        self.properties: int = 0  # number of property reads
        self.xpaths: int = 0

    def condition(self) -> Condition:
        first = self._peek()
        result = self._as_condition(self._or(), first)
        token = self._peek()
        if token.kind != END:
            raise FilterError(_unexpected(token), token.column)
        return result

    # tokens

    def _peek(self) -> Token:
        return self.tokens[self.position]

    def _next(self) -> Token:
        token = self.tokens[self.position]
        if token.kind != END:
            self.position += 1
        return token

    def _accept(self, kind: int, text: str) -> bool:
        token = self.tokens[self.position]
        if token.kind == kind and token.text == text:
            self.position += 1
            return True
        return False

    def _expect(self, kind: int, text: str) -> None:
        if not self._accept(kind, text):
            token = self._peek()
            raise FilterError(f"expected '{text}', found {_show(token)}", token.column)

    def _string(self) -> str:
        token = self._next()
        if token.kind != STRING:
            raise FilterError(f"expected a string, found {_show(token)}", token.column)
        return token.text

    # levels of precedence

    def _or(self) -> Expression:
        start = self._peek()
        left = self._and()
        if not self._accept(KEYWORD, "OR"):
            return left
        terms = [self._as_condition(left, start)]
        while True:
            start = self._peek()
            terms.append(self._as_condition(self._and(), start))
            if not self._accept(KEYWORD, "OR"):
                return self._checked(Or(terms), start)

    def _and(self) -> Expression:
        start = self._peek()
        left = self._not()
        if not self._accept(KEYWORD, "AND"):
            return left
        terms = [self._as_condition(left, start)]
        while True:
            start = self._peek()
            terms.append(self._as_condition(self._not(), start))
            if not self._accept(KEYWORD, "AND"):
                return self._checked(And(terms), start)

    def _not(self) -> Expression:
        denials = 0
        while self._accept(KEYWORD, "NOT"):
            denials += 1
        start = self._peek()
        result = self._equality()
        if denials == 0:
            return result
        condition = self._as_condition(result, start)
        if denials % 2 == 1:
            return self._checked(Not(condition), start)
        return condition

    def _equality(self) -> Expression:
        start = self._peek()
        left = self._comparison()
        while True:
            token = self._peek()
            if self._accept(SYMBOL, "="):
                left = self._equal(left, start)
            elif self._accept(SYMBOL, "<>"):
                left = self._checked(Not(self._equal(left, start)), token)
            elif self._accept(KEYWORD, "IS"):
                denied = self._accept(KEYWORD, "NOT")
                self._expect(KEYWORD, "NULL")
                null = IsNull(left)
                left = self._checked(Not(null) if denied else null, token)
            else:
                return left

    def _equal(self, left: Expression, start: Token) -> Comparison:
        right_start = self._peek()
        right = self._comparison()
        for side, token in ((left, start), (right, right_start)):
            if isinstance(side, Literal) and side.answer == UNKNOWN:
                raise FilterError("NULL cannot be compared: write IS NULL", token.column)
        comparison = Comparison(EQUAL, left, right, self.convert)
        self._checked(comparison, start)
        return comparison

    def _comparison(self) -> Expression:
        start = self._peek()
        left = self._sum()
        while True:
            token = self._peek()
            if token.kind == SYMBOL and token.text in ORDERINGS:
                self.position += 1
                left = self._ordering(ORDERINGS[token.text], left, start)
                continue
            denied = token.kind == KEYWORD and token.text == "NOT"
            if denied:
                self.position += 1
            condition = self._predicate(left, start)
            if condition is None:
                if denied:
                    found = self._peek()
                    raise FilterError("expected LIKE, BETWEEN or IN after NOT", found.column)
                return left
            left = self._checked(Not(condition) if denied else condition, token)

    def _predicate(self, left: Expression, start: Token) -> Condition | None:
        """Parses LIKE, BETWEEN or IN after `left`. Returns None if none of them follows."""
        token = self._peek()
        if self._accept(KEYWORD, "LIKE"):
            return self._like(left)
        if self._accept(KEYWORD, "BETWEEN"):
            low = self._bound()
            self._expect(KEYWORD, "AND")
            high = self._bound()
            _check_ordered(left, start)
            terms: list[Condition] = [
                Comparison(GREATER_EQUAL, left, low, self.convert),
                Comparison(LESS_EQUAL, left, high, self.convert),
            ]
            return And(terms)
        if self._accept(KEYWORD, "IN"):
            return self._in(left, token)
        return None

    def _bound(self) -> Expression:
        start = self._peek()
        bound = self._sum()
        _check_ordered(bound, start)
        return bound

    def _ordering(self, operator: int, left: Expression, start: Token) -> Expression:
        _check_ordered(left, start)
        return self._checked(Comparison(operator, left, self._bound(), self.convert), start)

    def _like(self, left: Expression) -> Condition:
        token = self._peek()
        pattern = self._string()
        escape: str | None = None
        if self._accept(KEYWORD, "ESCAPE"):
            escape_token = self._peek()
            escape = self._string()
            if len(escape) != 1:
                raise FilterError("ESCAPE takes one character", escape_token.column)
        try:
            return Like(left, LikePattern(pattern, escape))
        except ValueError as error:
            raise FilterError(str(error), token.column) from error

    def _in(self, left: Expression, token: Token) -> Condition:
        if not isinstance(left, Property):
            raise FilterError("only a property is allowed before IN", token.column)
        self._expect(SYMBOL, "(")
        members = [self._string()]
        while self._accept(SYMBOL, ","):
            members.append(self._string())
        self._expect(SYMBOL, ")")
        return In(left, frozenset(members))

    def _sum(self) -> Expression:
        start = self._peek()
        left = self._product()
        while True:
            token = self._peek()
            if token.kind != SYMBOL or (token.text != "+" and token.text != "-"):
                return left
            self.position += 1
            left = self._arithmetic(token.text, left, self._product(), start)

    def _product(self) -> Expression:
        start = self._peek()
        left = self._operand()
        while True:
            token = self._peek()
            if token.kind != SYMBOL or token.text not in ("*", "/", "%"):
                return left
            self.position += 1
            left = self._arithmetic(token.text, left, self._operand(), start)

    def _arithmetic(
        self, symbol: str, left: Expression, right: Expression, at: Token
    ) -> Expression:
        if isinstance(left, Condition) or isinstance(right, Condition):
            raise FilterError("a condition is not a number", at.column)
        return self._checked(Arithmetic(symbol, left, right, self.convert), at)

    def _operand(self) -> Expression:
        """Parses a literal, a property or parentheses, each with optional signs or NOT before it."""
        token = self._next()
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise FilterError(f"nested more than {DEPTH_MAX} deep", token.column)
        result = self._primary(token)
        self.depth -= 1
        return result

    def _primary(self, token: Token) -> Expression:
        if token.kind == SYMBOL:
            if token.text == "(":
                inner = self._or()
                self._expect(SYMBOL, ")")
                return inner
            if token.text == "+":
                return self._operand()
            if token.text == "-":
                return self._negative(token)
        elif token.kind == KEYWORD:
            return self._keyword(token)
        elif token.kind == IDENTIFIER:
            self.properties += 1
            if token.text in HEADERS:
                return Header(token.text, HEADERS[token.text])
            return Property(token.text)
        elif token.kind == STRING:
            return Constant(token.text)
        elif token.kind == INTEGER:
            return Constant(int(token.text))
        elif token.kind == FLOAT:
            return Constant(float(token.text))
        raise FilterError(_unexpected(token), token.column)

    def _negative(self, token: Token) -> Expression:
        operand = self._operand()
        if isinstance(operand, Condition):
            raise FilterError("a condition is not a number", token.column)
        if isinstance(operand, Constant):
            value = operand.value
            if isinstance(value, (int, float)):
                return Constant(-value)
            raise FilterError("a string is not a number", token.column)
        return self._checked(Negative(operand), token)

    def _keyword(self, token: Token) -> Expression:
        if token.text == "TRUE":
            return Literal(TRUE)
        if token.text == "FALSE":
            return Literal(FALSE)
        if token.text == "NULL":
            return Literal(UNKNOWN)
        if token.text == "NOT":
            start = self._peek()
            return self._checked(Not(self._as_condition(self._operand(), start)), token)
        if token.text == "XPATH":
            return self._xpath()
        if token.text == "XQUERY":
            raise FilterError("XQUERY is not supported", token.column)
        raise FilterError(_unexpected(token), token.column)

    def _xpath(self) -> Condition:
        token = self._peek()
        expression = self._string()
        self.xpaths += 1
        if self.xpaths > XPATHS_MAX:
            raise FilterError(f"more than {XPATHS_MAX} XPATH in a selector", token.column)
        # The module is not compiled, and lxml is loaded with the first XPATH only.
        xpath = import_module("atalanta.message.selector.xpath")
        try:
            return XPath(xpath.compiled(expression))
        except FilterError as error:
            quotes = expression.count("'", 0, error.column - 1)  # doubled in the selector
            raise FilterError(error.text, token.column + error.column + quotes) from error

    # checks

    def _as_condition(self, expression: Expression, at: Token) -> Condition:
        if isinstance(expression, Condition):
            return expression
        if isinstance(expression, Property):
            return Cast(expression)
        raise FilterError("a condition is expected here, not a value", at.column)

    def _checked(self, expression: Expression, at: Token) -> Expression:
        if expression.depth > NODE_DEPTH_MAX:
            raise FilterError("too many operations in a row", at.column)
        return expression


def _check_ordered(expression: Expression, at: Token) -> None:
    """Checks that an operand has an order. Like in Artemis, only numbers and properties have one."""
    if isinstance(expression, Condition):
        raise FilterError("a condition has no order", at.column)
    if isinstance(expression, Constant) and isinstance(expression.value, str):
        raise FilterError(f"the string '{expression.value}' has no order", at.column)


def _unexpected(token: Token) -> str:
    return "unexpected end" if token.kind == END else f"unexpected {_show(token)}"


def _show(token: Token) -> str:
    if token.kind == END:
        return "the end"
    if token.kind == STRING:
        return f"the string '{token.text}'"
    return f"'{token.text}'"
