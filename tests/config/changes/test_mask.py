"""Texts of configuration files without passwords, wherever they stand."""

from __future__ import annotations

import time

import pytest

from atalanta.config.changes.mask import masked_text


@pytest.mark.parametrize(
    "text, shown",
    [
        ("<a><password>geheim</password></a>", "<a><password>****</password></a>"),
        ("<a><password><![CDATA[geheim]]></password></a>", "<a><password>****</password></a>"),
        ("<a><password>ge<!-- -->heim</password></a>", "<a><password>****</password></a>"),
        ("<a><password>ENC(abc)</password></a>", "<a><password>ENC(abc)</password></a>"),
        ("<a><!-- <cluster-password>geheim</cluster-password> --></a>",
         "<a><!-- <cluster-password>****</cluster-password> --></a>"),
        ("<a remotePassword = 'geheim' b='1'/>", "<a remotePassword = '****' b='1'/>"),
        ('<p key="keyStorePassword" value="geheim"/>', '<p key="keyStorePassword" value="****"/>'),
        ('<p value="geheim" key="keyStorePassword"/>', '<p value="****" key="keyStorePassword"/>'),
        ("<c>tcp://h:1?a=1;keyStorePassword=geheim;b=2</c>", "<c>tcp://h:1?a=1;keyStorePassword=****;b=2</c>"),
        ("<c>tcp://h:1?a=1&amp;keyStorePassword=geheim</c>", "<c>tcp://h:1?a=1&amp;keyStorePassword=****</c>"),
        ("<c>tcp://h:1?a=1;\n keyStorePassword=geheim</c>", "<c>tcp://h:1?a=1;\n keyStorePassword=****</c>"),
        ('<n uri="static:(tcp://u:geheim@h:1)" duplex="true"/>', '<n uri="static:(tcp://****@h:1)" duplex="true"/>'),
        ('password = "geheim"\nuri = "static:(tcp://h:1)"', 'password = "****"\nuri = "static:(tcp://h:1)"'),
        ('password = """\ngeheim\n"""\nb = 1', 'password = "****"\nb = 1'),
        ('# "remotePassword" = \'geheim\'', '# "remotePassword" = "****"'),
    ],
)  # fmt: skip
def test_passwords_are_stars(text: str, shown: str) -> None:
    assert masked_text(text) == shown


@pytest.mark.parametrize("part", ["password", "a:/", " password", "<password", "?token=", "value='x' ", "u@"])
def test_long_values_cost_little(part: str) -> None:
    text = f'<a b="{(part * 10_000).replace("<", "&lt;")}">x</a>\n' + part * 10_000
    begin = time.process_time()
    masked_text(text)
    assert time.process_time() - begin < 3
