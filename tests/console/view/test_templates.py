"""What templates do with values."""

from __future__ import annotations

from atalanta.console.view.links import PageLinks, own_page
from atalanta.console.view.templates import environment, instant, octets, visible


def rendered(text: str, **values: object) -> str:
    return environment(PageLinks("/console"), {}).from_string(text).render(values)


def test_every_value_is_escaped() -> None:
    assert rendered("<b title=\"{{ x }}\">{{ x }}</b>", x="\"'<&>") == (
        '<b title="&#34;&#39;&lt;&amp;&gt;">&#34;&#39;&lt;&amp;&gt;</b>'
    )
    found = rendered("{{ link('/queue', name=x) }}", x="a\"&b=<ä>\r\n")
    assert found == "/console/queue?name=a%22%26b%3D%3C%C3%A4%3E%0D%0A"


def test_what_cannot_be_seen_is_written_out() -> None:
    assert visible("a\u202eb\x1b\x00\ud800\u2066") == "a\\u202eb\\x1b\\x00\\ud800\\u2066"
    assert visible("lines\nand\ttabs") == "lines\nand\ttabs"
    assert visible(None) == "" and visible(7) == 7
    rendered("{{ x }}", x="\udcff").encode()


def test_numbers_sizes_and_times() -> None:
    assert rendered("{{ 1234567|number }} {{ none|number }} {{ true|yes }} {{ none|yes }}") == "1,234,567 – yes –"
    assert [octets(each) for each in (None, 0, 1_023, 1_024, 5 << 30)] == ["–", "0 B", "1023 B", "1.0 KiB", "5.0 GiB"]
    assert instant(1_700_000_000_123) == (
        '<time datetime="2023-11-14T22:13:20.123Z">2023-11-14 22:13:20 UTC</time>'
    )
    assert instant(0) == instant(-5) == instant(1 << 60) == instant(None) == "–"


def test_a_login_leads_to_pages_of_the_console_only() -> None:
    for good in ("/", "/queues", "/queue?name=a%22b&page=2", "/message/body?x=1"):
        assert own_page(good) == good
    bads = ["", "//evil", "https://evil", "/\\evil", "/queues\n", "/Queues", "/a/b/c", "/queue?\u00e4", "javascript:x"]
    for bad in bads:
        assert own_page(bad) == "/"
