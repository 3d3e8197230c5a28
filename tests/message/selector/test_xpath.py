"""XPATH in selectors: what matches, what is refused and where, and that neither text nor body makes it slow."""

from __future__ import annotations

import subprocess
import sys
import time
import zlib

import pytest
from lxml import etree

from atalanta.kernel.memory.large_body import LargeBody
from atalanta.message.codec import text_body
from atalanta.message.message import BYTES, TEXT, Message
from atalanta.message.selector import xpath
from atalanta.message.selector.selector import FilterError, parse

ORDER = (
    "<?xml version='1.0' encoding='ISO-8859-1'?>\n<!-- new --><order id='7' xmlns:x='urn:x'>"
    "<customer><name>Müller</name><!-- old --><country>DE</country></customer>"
    "<item n='1'><sku>S1</sku><price>2.50</price></item><item n='2'><sku>S2</sku><price>8</price></item>"
    "<x:note>n<![CDATA[<o>]]>te</x:note></order>"
)


def made(body: str, kind: int = TEXT) -> Message:
    return Message.create("orders", text_body(body), kind, True, 1_700_000_000_000, 4)


def matches(expression: str, body: str = ORDER) -> bool:
    doubled = expression.replace("'", "''")
    return parse(f"XPATH '{doubled}'").matches(made(body))


@pytest.mark.parametrize(
    "expression",
    [
        "order", "order/item", "/order/item/sku", "//sku", "/order//sku", ".//sku", "order/@id", "//@n", "/",
        "/order/item/sku[text()='S2']", '/order/item/sku[text()="S2"]', "//item[@n='2']/price", "//item[sku='S1']",
        "//item[price > 5]", "//item[price * 2 = 5]", "//item[2]/@n = 2", "//item[last()][@n='2']",
        "count(//item) = 2", "count(//item) > count(//customer)", "sum(//price) > 10", "not(//gift)",
        "//order[.//sku='S1' and .//sku='S2']", "//item[not(gift)][sku]", "//customer[contains(name, 'üll')]",
        "starts-with(/order/customer/name, 'M')", "string-length(//country) = 2", "//country = 'DE' or //gift",
        "normalize-space(//country) = 'DE'", "substring(//sku, 1, 1) = 'S'", "string(//order/@id)",
        "//*[local-name()='note']", "//*[namespace-uri()='urn:x'] = 'n<o>te'", "//item[position() = 2]/sku = 'S2'",
        "order[customer[name][country='DE']]", "'DE' = //country", "//item[@n = string(2)]", "5", "5 div 2 > 1",
    ],
)  # fmt: skip
def test_what_matches(expression: str) -> None:
    assert matches(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "item", "/item", "//gift", "order/note", "//item[@n='3']", "count(//item) = 3", "0", "'x'/order", "count('a')",
        "string(//gift)", "//customer[contains(name, 'Meier')]", "//comment = 'x'", "false()",
    ],
)  # fmt: skip
def test_what_does_not_match(expression: str) -> None:
    assert not matches(expression)


def test_the_result_is_a_condition_among_others() -> None:
    message = made(ORDER)
    message.put_property("rank", 3)
    assert parse("XPATH '//sku' AND rank = 3").matches(message)
    assert not parse("XPATH '//gift' OR rank = 4").matches(message)
    assert parse("NOT XPATH '//gift'").matches(message)
    assert parse("xpath '//country[.=\"DE\"]' = TRUE").matches(message)


@pytest.mark.parametrize(
    "body",
    [
        "", "foo", "<", "<order>", "<order/>x", "<order>&name;</order>", "<order/>\ud800", "<order a='1' a='2'/>",
        "<!DOCTYPE order><order/>",
        "<!DOCTYPE order [<!ENTITY e SYSTEM 'file:///etc/hostname'>]><order>&e;</order>",
        "<!DOCTYPE order SYSTEM 'http://127.0.0.1:9/order.dtd'><order/>",
        "<order xmlns='urn:orders'/>",
    ],
)  # fmt: skip
def test_a_body_that_is_no_document_matches_nothing(body: str) -> None:
    assert not matches("order", body)
    assert parse("NOT XPATH 'order'").matches(made(body))


def test_only_text_messages_in_memory_have_a_document() -> None:
    selector = parse("XPATH 'order'")
    assert not selector.matches(made(ORDER, BYTES))
    assert not selector.matches(Message.create("orders", b"", TEXT))
    assert not selector.matches(Message.create("orders", b"\x00", TEXT))
    assert not selector.matches(Message.create("orders", ORDER.encode(), TEXT))
    large = made(ORDER)
    large.large = LargeBody(1, None)
    assert not selector.matches(large)


def test_a_compressed_body_is_read() -> None:
    """compressLargeMessage: what is small enough after the compression is sent as an ordinary message."""
    message = Message.create("orders", zlib.compress(text_body(ORDER)), TEXT)
    message.put_property("_AMQ_LARGE_COMPRESSED", True)
    assert parse("XPATH '//sku'").matches(message)
    for body in (zlib.compress(text_body(f"<a>{' ' * 1_000_000}</a>")), b"no zlib", text_body(ORDER)):
        broken = Message.create("orders", body, TEXT)
        broken.put_property("_AMQ_LARGE_COMPRESSED", True)
        assert not parse("XPATH '*'").matches(broken)


@pytest.mark.parametrize(
    ("expression", "words", "column"),
    [
        ("", "invalid XPath", 1),
        ("//a[", "invalid XPath", 5),
        ("a b", "invalid XPath", 3),
        ("ü and", "invalid XPath", 6),
        ("a[b='x'] c", "invalid XPath", 10),
        ("a]", "invalid XPath", 2),
        ("a # b", "unexpected character '#'", 3),
        ("'a", "unexpected character", 1),
        ("a or document('/etc/passwd')", "document() is not supported", 6),
        ("concat(a, b) = 'x'", "concat() is not supported", 1),
        ("x:a", "prefixes", 2),
        ("a = 'x\x01'", "no character '\\x01'", 7),
        ("a = 'x\ud800'", "no character '\\ud800'", 7),
        ("a = '\uffff'", "no character '\\uffff'", 6),
        ("$a = 1", "variables", 1),
        ("a/../b", "'..'", 3),
        ("a/ancestor::b", "axes", 11),
        ("a | b", "write or", 3),
        ("//a//b", "one '//'", 4),
        ("/a//b or /c//d", "only one '//'", 12),
        ("a[//b]", "in [ ]", 3),
        ("a[b//c]", "'.//'", 4),
        ("a[b[.//c]]", "'.//'", 6),
        ("(//a)[1]", "parentheses", 6),
        ("a = b", "behind '='", 3),
        ("a > string(b)", "behind '>'", 3),
        ("contains(a, b)", "literal text", 13),
        (f"contains(a, '{'x' * 65}')", "64 characters", 13),
        ("a or " * 60 + "a", "256 characters", 257),
    ],
)
def test_what_is_refused_names_its_position(expression: str, words: str, column: int) -> None:
    doubled = expression.replace("'", "''")
    before = "rank > 5 AND XPATH '"
    with pytest.raises(FilterError) as caught:
        parse(f"{before}{doubled}'")
    assert words in caught.value.text
    quotes = expression[: column - 1].count("'")
    assert caught.value.column == len(before) + quotes + column


@pytest.mark.parametrize(
    ("selector", "words", "column"),
    [
        ("XPATH a", "expected a string", 7),
        ("XPATH", "expected a string", 6),
        ("XQUERY 'a'", "XQUERY is not supported", 1),
        ("XPATH 'a' OR XPATH 'a' OR XPATH 'a' OR XPATH 'a' OR XPATH 'a'", "more than 4", 59),
    ],
)
def test_what_is_no_xpath_selector(selector: str, words: str, column: int) -> None:
    with pytest.raises(FilterError) as caught:
        parse(selector)
    assert (words in caught.value.text, caught.value.column) == (True, column)


def test_bodies_have_limits() -> None:
    assert matches("a", "<a>" + "<b/>" * (xpath.NODES_MAX - 1) + "</a>")
    assert not matches("a", "<a>" + "<b/>" * xpath.NODES_MAX + "</a>")
    assert matches("a", "<a>" * xpath.DEPTH_MAX + "</a>" * xpath.DEPTH_MAX)
    assert not matches("a", "<a>" * (xpath.DEPTH_MAX + 1) + "</a>" * (xpath.DEPTH_MAX + 1))
    assert not matches("a", "<a>" * 20_000)
    assert matches("a", "<a>" + "x" * (xpath.BODY_MAX - 7) + "</a>")
    assert not matches("a", "<a>" + "x" * (xpath.BODY_MAX - 6) + "</a>")


# The slowest pairs that a random search found.
@pytest.mark.parametrize(
    "expression",
    [
        "+".join(["(boolean(//*[.//node()/./.!=position()]/@*))"] * 5),
        " or ".join(["//*[count(.//@b)+substring(.//text(),2)='q']"] * 5),
        " or ".join(["//.=7"] * 28),
        ".//a[.//a[@b/*[contains(b/node(),'aaaaaaaaaaaaaaaaaaaaaaaab')]*starts-with(a/b/b,*/text())]]",
        f"//*[contains(., '{'a' * 60}b')]",
        "/*/*//node()/z",
        "//node()[" + " or ".join(["a"] * 48) + "]",
        "//*[*[*[*]]]",
    ],
)
def test_nothing_makes_an_evaluation_slow(expression: str) -> None:
    bodies = [
        "<r>" + "<a/>" * 7_900 + "</r>",
        "<r>" + ("<a>" * 31 + "</a>" * 31) * 250 + "</r>",
        "<a>" * 31 + "<a>aaaaaaaaaa</a>" * 3_400 + "</a>" * 31,
        "<a>" * 32 + "a" * 63_000 + "</a>" * 32,
        "<r>" + "<?a?>" * 7_900 + "</r>",
        "<r " + " ".join(f"a{n}='1'" for n in range(6_000)) + "/>",
    ]
    doubled = expression.replace("'", "''")
    selector = parse(f"XPATH '{doubled}'")
    for body in bodies:
        start = time.process_time()
        selector.matches(made(body))
        assert time.process_time() - start < 2, "0.3 s at most on the machine of the search"


def test_names_of_elements_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xpath, "NAMES_MAX", 0)
    before = etree.memory_debugger.dict_size()
    body = "<order>" + "".join(f"<only-here-{n}/>" for n in range(1_000)) + "</order>"
    assert matches("order", body) and not matches("gift", body) and not matches("gift", "<broken>")
    assert etree.memory_debugger.dict_size() - before < 100


@pytest.mark.parametrize(("selector", "loads"), [("a = 1", False), ("XPATH \'a\'", True)])
def test_xml_is_loaded_with_the_first_xpath(selector: str, loads: bool) -> None:
    code = (
        "import sys; from atalanta.message.selector.selector import parse;"
        f" parse({selector!r}); sys.exit('lxml.etree' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == int(loads)
