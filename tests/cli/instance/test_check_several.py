"""`atalanta check` of nodes that are in several clusters: each connection is compared with those of its own cluster."""

from __future__ import annotations

from pathlib import Path

from tests.cli.instance.check_rig import call, static, told, write

WEST = """<cluster-connection name="west"><address>west</address><connector-ref>west</connector-ref>
<max-hops>{hops}</max-hops>{members}</cluster-connection></cluster-connections>"""


def both(folder: Path, east: str = "east", hops: int = 1) -> Path:
    """m: in `east` with e, in `west` with w, an acceptor for each."""
    path = write(
        folder, "m", cluster="east", host="127.0.0.1", listen="127.0.0.1", port="61616",
        connectors='<connector name="west">tcp://127.0.0.1:61617</connector>'
        '<connector name="e">tcp://127.0.0.1:61618</connector>'
        '<connector name="w">tcp://127.0.0.1:61619</connector>',
        members=static("e"), acceptor="?clusterConnection=east",
    )  # fmt: skip
    text = path.read_text()
    begin = '<cluster-connection name="east">'
    text = text.replace(begin, f"{begin}<address>{east}</address>")
    text = text.replace("</cluster-connections>", WEST.format(members=static("w"), hops=hops))
    text = text.replace(
        "</acceptors>",
        '<acceptor name="west">tcp://127.0.0.1:61617?clusterConnection=west</acceptor></acceptors>',
    )
    text = text.replace('name="orders"', 'name="east.orders"').replace(
        "</addresses>", '<address name="west.orders"><anycast/></address></addresses>'
    )
    path.write_text(text)
    return path


def outer(folder: Path, name: str, side: str, port: int, middle: int) -> Path:
    path = write(
        folder, name, cluster=side, host="127.0.0.1", listen="127.0.0.1", port=str(port),
        connectors=f'<connector name="m">tcp://127.0.0.1:{middle}</connector>',
        members=static("m"),
    )  # fmt: skip
    text = path.read_text()
    text = text.replace(
        f'<cluster-connection name="{side}">',
        f'<cluster-connection name="{side}"><address>{side}</address>',
    )
    path.write_text(text.replace('name="orders"', f'name="{side}.orders"'))
    return path


def three(folder: Path, east: str = "east", hops: int = 1) -> tuple[list[str], list[str]]:
    paths = [
        both(folder, east, hops),
        outer(folder, "e", "east", 61618, 61616),
        outer(folder, "w", "west", 61619, 61617),
    ]
    found = call(*paths)
    return told(found, "error"), told(found, "warning")


def test_two_clusters_that_share_a_node(tmp_path: Path) -> None:
    assert three(tmp_path) == ([], [])


def test_a_connection_is_compared_with_that_of_its_name(tmp_path: Path) -> None:
    errors, warnings = three(tmp_path, hops=3)
    assert errors == []
    (warning,) = warnings
    assert warning.startswith("cluster-connection 'west': max-hops is 1, that of")


def test_overlapping_addresses_are_told(tmp_path: Path) -> None:
    _, warnings = three(tmp_path, east="")
    assert any("'east' and 'west' share addresses that begin with 'west'" in each for each in warnings)
