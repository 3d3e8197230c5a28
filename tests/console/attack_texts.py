"""Texts that are an attack where a page shows them as markup, and the check that it does not."""

from __future__ import annotations

from tests.console.console_rig import Page

SCRIPT = "\"><script>alert('x')</script><img src=x onerror=alert(1)>"
TURNED = "gpj.\u202eexe"  # shown as exe.jpg by what obeys the character


def harmless(page: Page) -> None:
    """Nothing on the page is markup of a client: scripts are ours alone, no handler, no frame, no foreign address."""
    document = page.document
    sources = document.xpath("//script/@src")
    assert len(document.xpath("//script")) == len(sources) == 1 and "/static/page.js" in sources[0], page.url
    assert not document.xpath("//*[@onerror] | //*[@onload] | //*[@onclick] | //iframe | //object | //embed | //base")
    assert not [each for each in document.xpath("//img/@src") if not each.endswith("/picture.svg")]
    for attribute in document.xpath("//@href | //@src | //@action"):
        assert str(attribute).startswith(("/", "#")) and not str(attribute).startswith("//"), attribute
    for form in document.forms:
        names = [name for name, _ in form.form_values()]
        assert form.get("method") != "post" or "form_token" in names or "entry_token" in names
    assert "\u202e" not in page.text and "\x1b" not in page.text
