"""broker.xml files of small clusters, for what looks at several together."""

from __future__ import annotations

from pathlib import Path

TEXT = """<configuration><core><name>{name}</name><security-enabled>false</security-enabled>
<journal-directory>data/{name}</journal-directory>
<cluster-user>peer</cluster-user><cluster-password>{password}</cluster-password>
<connectors><connector name="self">tcp://host-{name}:61616</connector>{connectors}</connectors>
<acceptors><acceptor name="artemis">tcp://0.0.0.0:61616</acceptor></acceptors>
<cluster-connections><cluster-connection name="c"><connector-ref>self</connector-ref>
<max-hops>{hops}</max-hops>{address}
<static-connectors{only}>{references}</static-connectors></cluster-connection></cluster-connections>
<address-settings><address-setting match="#"><redistribution-delay>{delay}</redistribution-delay>
</address-setting></address-settings>
<addresses><address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>
</core></configuration>"""


def broker_file(
    folder: Path,
    name: str,
    peers: str,
    hops: int = 1,
    direct: bool = False,
    delay: int = 0,
    password: str = "secret",
    address: str = "",
) -> Path:
    """Node `name` with static connectors to `peers` (one letter each)."""
    path = folder / f"{name}.xml"
    connectors = "".join(f'<connector name="to-{peer}">tcp://host-{peer}:61616</connector>' for peer in peers)
    references = "".join(f"<connector-ref>to-{peer}</connector-ref>" for peer in peers)
    path.write_text(
        TEXT.format(
            name=name, connectors=connectors, references=references, hops=hops, delay=delay, password=password,
            only=' allow-direct-connections-only="true"' if direct else "",
            address=f"<address>{address}</address>" if address else "",
        )
    )  # fmt: skip
    return path


def pair_file(folder: Path, name: str, peers: str, role: str, store: str = "store") -> Path:
    """Node `name` with the data folders `store`, as their primary or backup."""
    path = broker_file(folder, name, peers)
    policy = f"<ha-policy><shared-store><{role}/></shared-store></ha-policy>"
    folders = "".join(
        f"<{kind}-directory>{folder}/{store}/{kind}</{kind}-directory>"
        for kind in ("journal", "paging", "large-messages")
    )
    own = f"<journal-directory>data/{name}</journal-directory>"
    path.write_text(path.read_text().replace(own, folders + policy))
    return path


def member_file(folder: Path, name: str, others: str, role: str, voters: str = "w1:5790,w2:5790,w3:5790") -> Path:
    """Node `name` as a member of a replicated group with `others`."""
    path = broker_file(folder, name, others)
    policy = f"<ha-policy><replication><{role}/></replication></ha-policy>"
    kinds = ("paging", "large-messages")
    folders = "".join(f"<{kind}-directory>data/{name}/{kind}</{kind}-directory>" for kind in kinds)
    path.write_text(path.read_text().replace("<cluster-user>", f"{policy}{folders}<cluster-user>"))
    toml = f'[ha.manager]\nkind = "quorum"\nvoters = "{voters}"\n'
    path.with_name(f"{name}.atalanta.toml").write_text(toml)
    return path
