"""Files of version 1, as its chapter about clusters has them."""

from __future__ import annotations

JMS = """<jms xmlns="urn:activemq:jms">
<queue name="orders"/><queue name="eu.invoices"/><topic name="news"/></jms>"""


def version_1_file(core: str, jms: str = JMS, acceptor: str = "tcp://127.0.0.1:61616") -> str:
    return f"""<configuration xmlns="urn:activemq">
{jms}
<core xmlns="urn:activemq:core">
<security-enabled>false</security-enabled>
<acceptors><acceptor name="netty">{acceptor}</acceptor></acceptors>
{core}
</core></configuration>"""
