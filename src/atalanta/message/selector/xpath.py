"""XPath 1.0 in selectors: `XPATH '...'` is true if the body, an XML document, makes the expression true.

lxml evaluates. It cannot be interrupted, so `_Check` refuses what may read a tree once for each of its nodes: paths
lead downwards, `//` stands once in a path, no two sets of nodes are compared, and only literal texts are searched for.
The slowest accepted expression takes 0.3 s over the worst body within the limits. A body that is no XML, has a DOCTYPE
or exceeds a limit matches nothing, without an event (JAXPXPathEvaluator). Nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from lxml import etree

from atalanta.message.selector.lexer import FilterError

if TYPE_CHECKING:
    from atalanta.message.message import Message

EXPRESSION_MAX: Final = 256  # characters
SEARCHED_MAX: Final = 64  # characters of all texts that contains() and substring-…() search for
BODY_MAX: Final = 64 * 1024  # characters
NODES_MAX: Final = 8_000  # elements, attributes and texts of a body
DEPTH_MAX: Final = 32  # nested elements of a body
NAMES_MAX: Final = 100_000  # names that lxml may keep

WITHIN_LIMITS: Final = (
    f"count(//node()) + count(//@*) <= {NODES_MAX} and not({'/*' * (DEPTH_MAX + 1)})"
)
TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+) | (?P<text>"[^"]*"|'[^']*') | (?P<number>\d+(?:\.\d*)?|\.\d+)
    | (?P<name>[^\W\d][\w.\-]*) | (?P<symbol>//|::|\.\.|!=|<=|>=|[/@.()\[\],|+\-=<>*$:])""",
    re.VERBOSE,
)
FOREIGN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
NODE_TYPES: Final = {"node", "text"}
SEARCHES: Final = {"contains", "substring-after", "substring-before"}
NUMBERS: Final = {
    "ceiling", "count", "floor", "last", "number", "position", "round", "string-length", "sum",
}  # fmt: skip
FUNCTIONS: Final = {
    "boolean", "false", "local-name", "name", "namespace-uri", "normalize-space", "not", "starts-with",
    "string", "substring", "true", *NUMBERS, *SEARCHES,
}  # fmt: skip
REFUSED: Final = {
    "|": "'|' is not supported: write or",
    "..": "'..' is not supported: test a child in [ ]",
    "::": "axes are not supported: paths lead downwards, with / and //",
    "$": "variables have no value",
    ":": "prefixes have no namespace: write *[local-name() = 'name']",
}
# Operators with the functions that may follow. libxml2 reads a text anew for every node that is ordered by it.
COMPARISONS: Final = {
    "=": FUNCTIONS, "!=": FUNCTIONS, "<": NUMBERS, "<=": NUMBERS, ">": NUMBERS, ">=": NUMBERS,
}  # fmt: skip
END: Final = ("", "", 0)


def compiled(expression: str) -> Callable[[Message], bool]:
    """Returns the test of a message. Raises FilterError with the column in the expression."""
    if len(expression) > EXPRESSION_MAX:
        text = f"an XPath expression has more than {EXPRESSION_MAX} characters"
        raise FilterError(text, EXPRESSION_MAX + 1)
    foreign = FOREIGN.search(expression)
    if foreign is not None:
        raise FilterError(f"XML has no character {foreign.group()!r}", foreign.start() + 1)
    _Check(expression).check()
    try:
        etree.XPath(expression, regexp=False)
    except etree.XPathSyntaxError as error:
        read = expression.encode()[: error.error_log[0].column].decode(errors="ignore")
        raise FilterError("an invalid XPath expression", len(read) + 1) from None
    # A path begins at the document, not at its root element.
    evaluate = etree.XPath(
        f"boolean(/self::node()[{WITHIN_LIMITS} and ({expression})])",
        regexp=False,
        smart_strings=False,
    )
    parser = _parser()

    def test(message: Message) -> bool:
        body = message.text_in_memory(BODY_MAX)
        if body is None or not body.lstrip().startswith("<"):
            return False
        # lxml keeps the names of elements as long as the thread (lxml 7: as the parser).
        if etree.memory_debugger.dict_size() < NAMES_MAX:
            return _matches(body, evaluate, parser)
        answers: list[bool] = []
        thread = Thread(target=lambda: answers.append(_matches(body, evaluate, _parser())))
        thread.start()
        thread.join()
        return answers == [True]

    return test


def _parser() -> etree.XMLParser:
    return etree.XMLParser(
        encoding="utf-8",  # whatever the body declares
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,  # libxml2 sorts them by the square of their number
        collect_ids=False,
    )


def _matches(body: str, evaluate: etree.XPath, parser: etree.XMLParser) -> bool:
    try:
        tree: Any = etree.fromstring(body.encode(), parser).getroottree()
        return not tree.docinfo.doctype and evaluate(tree) is True
    except (etree.LxmlError, ValueError):
        return False


class _Check:
    """The check of one expression's cost. The grammar is checked by lxml."""

    def __init__(self, expression: str) -> None:
        self.tokens: list[tuple[str, str, int]] = []  # kind, text, column
        at = 0
        while at < len(expression):
            found = TOKEN.match(expression, at)
            if found is None:
                raise FilterError(f"unexpected character {expression[at]!r} in XPath", at + 1)
            if found.lastgroup != "space":
                self.tokens.append((str(found.lastgroup), found.group(), at + 1))
            at = found.end()
        self.at = 0
        self.descents = 0  # `//` behind a step
        self.searched = 0  # characters
        # For each open bracket: its kind ("[", "(" or the function), and whether the path around it has a `//`.
        self.open: list[tuple[str, bool]] = []
        self.within = 0  # open [
        self.deep = False  # the path has a `//`
        self.operand = False  # the token before ends an operand

    def check(self) -> None:
        for at, (kind, text, column) in enumerate(self.tokens):
            self.at = at
            if text in REFUSED and kind == "symbol":
                raise FilterError(REFUSED[text], column)
            if kind == "name" or text == "*":
                self._name(text, column)
            elif kind != "symbol" or text == ".":
                self.operand = True
            elif text == "/" or text == "//":
                self._slash(text, column)
            elif text == "(" or text == "[":
                self._opening(text, column)
            elif text == ")" or text == "]":
                self._closing()
            else:
                self._operator(text, column)

    def _token(self, distance: int) -> tuple[str, str, int]:
        at = self.at + distance
        return self.tokens[at] if 0 <= at < len(self.tokens) else END

    def _name(self, text: str, column: int) -> None:
        if self.operand:  # and, or, div, mod, *
            self.operand = self.deep = False
        elif self._token(1)[1] != "(":
            self.operand = True
        elif text not in FUNCTIONS and text not in NODE_TYPES:
            raise FilterError(f"the function {text}() is not supported", column)

    def _slash(self, text: str, column: int) -> None:
        if not self.operand:
            if self.within:
                raise FilterError("a path in [ ] begins at the node that is tested", column)
            self.deep = text == "//"
        elif text == "//":
            from_here = self._token(-1)[1] == "." and self._token(-2)[1] != "/"
            if self.deep or self.within > 1 or (self.within and not from_here):
                raise FilterError("a path has one '//', in the outer [ ] as './/'", column)
            self.deep = True
            self.descents += not self.within
            if self.descents > 1:
                raise FilterError("only one '//' may stand behind a step", column)
        self.operand = False

    def _opening(self, text: str, column: int) -> None:
        before = self._token(-1)
        opened = before[1] if text == "(" and before[0] == "name" and not self.operand else text
        self.open.append((opened, self.deep))
        self.within += text == "["
        self.operand = self.deep = False

    def _closing(self) -> None:
        opened, self.deep = self.open.pop() if self.open else ("", False)
        self.within -= opened == "["
        self.operand = True
        following = self._token(1)
        if opened != "[" and opened not in NODE_TYPES and following[1] in ("/", "//", "["):
            raise FilterError("a path cannot continue behind parentheses", following[2])

    def _operator(self, text: str, column: int) -> None:
        if text == "," and self.open and self.open[-1][0] in SEARCHES:
            kind, searched, at = self._token(1)
            if kind != "text" or self._token(2)[1] != ")":
                raise FilterError(f"{self.open[-1][0]}() searches for a literal text", at or column)
            self.searched += len(searched) - 2
            if self.searched > SEARCHED_MAX:
                raise FilterError(f"more than {SEARCHED_MAX} characters are searched for", at)
        elif text in COMPARISONS and not self._compares_value(COMPARISONS[text]):
            raise FilterError(f"behind '{text}' a literal or a function is missing", column)
        self.operand = self.deep = False

    def _compares_value(self, functions: set[str]) -> bool:
        """Returns True if one operand of the comparison is a single value, not a set of nodes."""
        left, right = self._token(-1), self._token(1)
        return (
            left[0] in ("text", "number")
            or right[0] in ("text", "number")
            or right[1] == "-"
            or (right[1] in functions and self._token(2)[1] == "(")
        )
