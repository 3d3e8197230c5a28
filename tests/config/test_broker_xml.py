"""broker.xml as a whole: what is read, refused, listed; where data folders lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.problems import ConfigError, grouped
from atalanta.config.users.users import read_security
from atalanta.kernel.settings.effective_settings import settings_repository
from tests.config.core_xml import problems, read, write

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("pair", [True, False])
def test_a_pair_that_had_a_database_in_common_is_told_that_it_has_none(tmp_path: Path, pair: bool) -> None:
    """What `artemis create --jdbc --shared-store` writes: a backup with a folder of its own would wait for ever."""
    policy = "<ha-policy><shared-store><primary/></shared-store></ha-policy>" if pair else ""
    configuration = read(tmp_path, f"<store><database-store/></store>{policy}")
    warnings = [each for each in configuration.warnings if "database" in each]
    assert len(warnings) == pair
    assert not pair or f"both nodes reach the journal-directory {configuration.journal_folder}" in warnings[0]


def test_what_artemis_create_writes() -> None:
    configuration = read_broker_xml(DATA / "artemis-create.xml")
    broker = configuration.broker
    assert broker.name == "node-a"
    assert broker.security_enabled
    assert (broker.cluster_user, broker.cluster_password) == ("peer", "peer-secret")
    assert [each.name for each in configuration.acceptors] == ["artemis", "stomp", "hornetq"]
    assert (configuration.acceptors[0].host, configuration.acceptors[0].port) == ("0.0.0.0", 61616)
    assert configuration.connectors["artemis"].port == 61616
    assert configuration.broadcast_groups[0].broadcast_period_ms == 5000
    assert configuration.broadcast_groups[0].connectors == ["artemis"]
    assert configuration.discovery_groups["dg-group1"].group_port == 9876
    [connection] = configuration.cluster_connections
    assert connection.discovery_group == "dg-group1"
    assert connection.confirmation_window_bytes == 10 * 1024 * 1024
    assert [address.name for address in broker.addresses] == ["DLQ", "ExpiryQueue", "prices"]
    spec = broker.addresses[0].queues[0].spec()
    assert (spec.name, spec.address, spec.routing_type, spec.durable) == ("DLQ", "DLQ", 1, True)
    settings = settings_repository(configuration.broker)
    assert settings.match("orders").dead_letter_address == "DLQ"
    assert not settings.match("orders").auto_delete_queues
    assert settings.match("activemq.management.x").auto_delete_queues is False
    assert configuration.warnings == []


def test_what_is_without_effect_is_listed_with_its_place() -> None:
    configuration = read_broker_xml(DATA / "artemis-create.xml")
    names = [entry.name for entry in configuration.unsupported]
    assert "critical-analyzer" not in names
    assert configuration.broker.critical_analyzer_policy == "HALT"
    assert "journal-type" in names
    assert "acceptor mqtt" in names
    assert "persistence-enabled" not in names
    assert "journal-datasync" not in names  # as we do anyway
    found = [line for line in grouped(configuration.unsupported) if "day-limit" in line]
    assert len(found) == 1
    assert "artemis-create.xml:84,93: message-counter-history-day-limit" in found[0]


LOCKED = """<acceptors><acceptor name="a">tcp://127.0.0.1:61616</acceptor>
<acceptor name="b" lock-coordinator="lock">tcp://127.0.0.1:61617</acceptor></acceptors>
<lock-coordinators><lock-coordinator name="lock" auto-start="false"><class-name>some.Lock</class-name>
<lock-id>x</lock-id><check-period>9</check-period><properties><property key="k" value="v"/></properties>
</lock-coordinator></lock-coordinators>
<journal-lock-monitor-timeout>1</journal-lock-monitor-timeout><jmx-notification-enabled>true</jmx-notification-enabled>
<journal-lock-monitor-max-retries>1</journal-lock-monitor-max-retries>"""


def test_an_acceptor_with_a_lock_that_others_may_have_stays_closed(tmp_path: Path) -> None:
    configuration = read(tmp_path, LOCKED)
    assert [each.name for each in configuration.acceptors] == ["a"]
    [closed] = configuration.closed_acceptors
    assert (closed.name, closed.line) == ("b", 4)
    assert "<ha-policy>" in closed.ways and "atalanta run --alone" in closed.ways


def test_an_acceptor_over_http_stays_closed_and_the_others_open(tmp_path: Path) -> None:
    core = (
        '<acceptors><acceptor name="web">tcp://0.0.0.0:8080?httpEnabled=true</acceptor>'
        '<acceptor name="old">tcp://0.0.0.0:1?protocol=stomp,CORE</acceptor></acceptors>'
    )
    configuration = read(tmp_path, core)
    [closed] = configuration.closed_acceptors
    assert closed.name == "web" and closed.why.startswith("httpEnabled: CORE over HTTP is not supported")
    [old] = configuration.acceptors
    assert old.protocols == ("STOMP", "CORE")  # the old form of the parameter restricts, too


@pytest.mark.parametrize("own", [False, True])
def test_a_broker_that_is_alone_needs_no_lock(tmp_path: Path, own: bool) -> None:
    path = write(tmp_path, LOCKED)
    if own:
        path.with_name("atalanta.toml").write_text("alone = true\n")
    configuration = read_broker_xml(path, alone=not own)
    assert [each.name for each in configuration.acceptors] == ["a", "b"]
    assert configuration.closed_acceptors == []
    [lost] = [each for each in configuration.unsupported if each.lost and "acceptor" in each.name]
    assert lost.name == "acceptor b: lock-coordinator"


def test_a_connector_has_no_lock(tmp_path: Path) -> None:
    section = '<connectors><connector name="c" lock-coordinator="lock">tcp://127.0.0.1:61617</connector></connectors>'
    [(line, text, _)] = problems(tmp_path, section)
    assert (line, text) == (1, "unknown attribute 'lock-coordinator' of <connector>")


def test_an_empty_core_has_the_defaults(tmp_path: Path) -> None:
    configuration = read(tmp_path, "")
    assert configuration.broker.name == "localhost"
    assert configuration.broker.management_address == "activemq.management"
    assert configuration.broker.id_cache_size == 20_000
    assert configuration.journal.file_size_bytes == 10 * 1024 * 1024
    assert configuration.cluster_settings() is None
    assert configuration.warnings == ["there is no acceptor for CORE: no client can connect"]


def test_core_may_be_the_root(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text('<core xmlns="urn:activemq:core"><name>bare</name></core>')
    assert read_broker_xml(path).broker.name == "bare"


def test_instance_folder(tmp_path: Path) -> None:
    in_etc = read_broker_xml(write(tmp_path / "etc", ""))
    assert in_etc.instance == tmp_path
    assert in_etc.journal_folder == tmp_path / "data/journal"
    assert in_etc.users_folder == tmp_path / "etc"
    plain = read_broker_xml(write(tmp_path, "<journal-directory>j</journal-directory>"))
    assert plain.journal_folder == tmp_path / "j"
    absolute = read_broker_xml(write(tmp_path, "<journal-directory>/var/j</journal-directory>"))
    assert absolute.journal_folder == Path("/var/j")


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        "<nmae>x</nmae>\n"
        '<name colour="red">y</name>\n'
        "<id-cache-size>many</id-cache-size>\n"
        "<security-enabled>maybe</security-enabled>\n"
        "<journal-file-size>10 apples</journal-file-size>\n"
        "<acceptors>\n<acceptor>tcp://a:1</acceptor>\n"
        '<acceptor name="b">http://a:1</acceptor>\n'
        '<acceptor name="c">tcp://a:99999</acceptor>\n</acceptors>',
    )
    assert [line for line, _, _ in found] == [1, 2, 3, 4, 5, 7, 8, 9]
    assert found[0][1:] == ("unknown element <nmae> in <core>", "did you mean 'name'?")
    assert "unknown attribute 'colour'" in found[1][1]
    assert "'many' is not a number" in found[2][1]
    assert "neither true nor false" in found[3][1]
    assert "is not a size" in found[4][1]


def test_the_error_names_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, "<name>x</name>\n<nonsense/>")
    assert str(caught.value) == f"{tmp_path}/broker.xml:4: unknown element <nonsense> in <core>"


@pytest.mark.parametrize(
    ("core", "text"),
    [
        ("<name>a</name><name>b</name>", "given twice"),
        ("<name>a<b/></name>", "unknown element <b>"),
        ("some text", "unexpected text"),
        ("<connection-ttl-check-interval>0</connection-ttl-check-interval>", "less than 1"),
        (
            "<view-permission-method-match-pattern>get(</view-permission-method-match-pattern>",
            "'get(' is not a regular expression",
        ),
        ('<addresses><address name="a"/></addresses>', "no routing type"),
        ("<addresses><address><anycast/></address></addresses>", "needs a name"),
        (
            '<addresses><address name="a"><anycast><queue name="q"><filter string="a = "/></queue>'
            "</anycast></address></addresses>",
            "filter: unexpected end",
        ),
        ('<address-settings><address-setting match="#.a"/></address-settings>', "at the end"),
        ("<address-settings><address-setting/></address-settings>", "needs a match"),
        (
            '<address-settings><address-setting match="a"><address-full-policy>BLOK'
            "</address-full-policy></address-setting></address-settings>",
            "'BLOK' is none of PAGE, BLOCK, DROP, FAIL",
        ),
        (
            '<security-settings><security-setting match="a"><permission type="snd" roles="x"/>'
            "</security-setting></security-settings>",
            "unknown permission 'snd'",
        ),
        (
            '<acceptors><acceptor name="a">tcp://h:1?clusterConnection=c</acceptor></acceptors>',
            "no cluster-connection 'c'",
        ),
        (
            '<cluster-connections><cluster-connection name="c"><connector-ref>x</connector-ref>'
            "</cluster-connection></cluster-connections>",
            "no connector 'x'",
        ),
        (
            '<cluster-connections><cluster-connection name="c"/></cluster-connections>',
            "needs a connector-ref",
        ),
        (
            '<broadcast-groups><broadcast-group name="b"><group-port>1</group-port>'
            "</broadcast-group></broadcast-groups>",
            "needs group-address",
        ),
        ("<cluster-password>ENC(hello)</cluster-password>", "not a masked password"),
        ("<cluster-password>ENC(00)</cluster-password>", "cannot be read with this key"),
        (
            "<cluster-password>ENC(00)</cluster-password><password-codec>a.B;key=c</password-codec>",
            "a.B is Java",
        ),
        ("<mask-password>perhaps</mask-password>", "neither true nor false"),
        ("<ha-policy><replication><backup/></replication></ha-policy>", "describes a backup"),
        (
            "<wildcard-addresses><any-words>##</any-words></wildcard-addresses>",
            "not one character",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, core: str, text: str) -> None:
    assert any(text in found[1] for found in problems(tmp_path, core))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1048576", 1024**2),
        ("100K", 100 * 1024),
        ("100KB", 100 * 1024),
        ("100KiB", 100 * 1024),
        ("1 M", 1024**2),
        ("1MiB", 1024**2),
        ("2g", 2 * 1024**3),
    ],
)
def test_sizes(tmp_path: Path, text: str, size: int) -> None:
    core = f"<global-max-size>{text}</global-max-size>"
    assert read(tmp_path, core).broker.global_max_size_bytes == size


def test_global_max_size_of_minus_one_is_the_default(tmp_path: Path) -> None:
    core = "<global-max-size>-1</global-max-size>"
    assert read(tmp_path, core).broker.global_max_size_bytes == 512 * 1024 * 1024


def test_placeholders(tmp_path: Path) -> None:
    core = (
        "<name>${who:nobody}-${where}</name>\n"
        '<acceptors><acceptor name="${who}">tcp://${host:127.0.0.1}:${port:1234}</acceptor>'
        "</acceptors>\n<journal-directory>${artemis.instance}/j</journal-directory>"
    )
    configuration = read(tmp_path, core, {"who": "me", "where": "here"})
    assert configuration.broker.name == "me-here"
    acceptor = configuration.acceptors[0]
    assert (acceptor.name, acceptor.host, acceptor.port) == ("me", "127.0.0.1", 1234)
    assert configuration.journal_folder == tmp_path / "j"


def test_a_placeholder_without_value_is_an_error(tmp_path: Path) -> None:
    [(line, text, hint)] = problems(tmp_path, "\n<name>${who}</name>")
    assert (line, text) == (2, "'${who}' has no value in <name>")
    assert "${who:default}" in hint


def test_queues_of_an_address(tmp_path: Path) -> None:
    core = """<addresses><address name="a">
        <anycast><queue name="q" max-consumers="3" purge-on-no-consumers="true">
            <filter string="dep_delay > 60"/><durable>false</durable><user>u</user></queue>
        </anycast>
        <multicast><queue name="m" exclusive="true" last-value="true" ring-size="9"
            group-buckets="4" enabled="false"/></multicast></address></addresses>"""
    configuration = read(tmp_path, core)
    [address] = configuration.broker.addresses
    assert address.anycast and address.multicast
    spec = address.queues[0].spec()
    assert (spec.filter_text, spec.durable, spec.user) == ("dep_delay > 60", False, "u")
    assert (spec.max_consumers, spec.purge_on_no_consumers, spec.routing_type) == (3, True, 1)
    spec = address.queues[1].spec()
    assert (spec.routing_type, spec.exclusive, spec.last_value_key) == (0, True, "_AMQ_LVQ_NAME")
    assert (spec.ring_size, spec.group_buckets, spec.enabled) == (9, 4, False)
    assert configuration.unsupported == []


def test_queues_of_artemis_1(tmp_path: Path) -> None:
    core = """<queues><queue name="q"><address>a</address><filter string="x = 1"/>
        <durable>true</durable></queue><queue name="r"><address>a</address></queue></queues>"""
    [address] = read(tmp_path, core).broker.addresses
    assert address.name == "a"
    assert [queue.spec().filter_text for queue in address.queues] == ["x = 1", None]


def test_an_empty_dead_letter_address_takes_back_a_wider_one(tmp_path: Path) -> None:
    core = """<address-settings>
        <address-setting match="#"><dead-letter-address>DLQ</dead-letter-address></address-setting>
        <address-setting match="a"><dead-letter-address/></address-setting></address-settings>"""
    settings = settings_repository(read(tmp_path, core).broker)
    assert settings.match("b").dead_letter_address == "DLQ"
    assert settings.match("a").dead_letter_address is None


def test_role_mappings_and_old_permissions(tmp_path: Path) -> None:
    core = """<security-settings><role-mapping from="cn=admins" to="amq, ops"/>
        <role-mapping from="cn=others" to="amq"/>
        <security-setting match="a"><permission type="createTempQueue" roles="amq,x"/>
        </security-setting></security-settings>"""
    [rule] = read(tmp_path, core).broker.security_rules
    assert rule.permissions == {"createNonDurableQueue": ("amq", "cn=admins", "cn=others", "x")}


def test_literal_matches(tmp_path: Path) -> None:
    core = """<literal-match-markers>()</literal-match-markers>
        <security-enabled>false</security-enabled>
        <security-settings><security-setting match="(a.#.b)"><permission type="send" roles="r"/>
        </security-setting></security-settings><address-settings><address-setting match="(a.#)">
        <max-delivery-attempts>3</max-delivery-attempts></address-setting></address-settings>"""
    configuration = read(tmp_path, core)
    assert settings_repository(configuration.broker).match("a.#").max_delivery_attempts == 3
    assert settings_repository(configuration.broker).match("a.b").max_delivery_attempts == 10
    assert read_security(configuration).rule("a.#.b") is not None


def test_acceptors_of_the_old_form(tmp_path: Path) -> None:
    core = """<acceptors><acceptor name="a"><factory-class>x.NettyAcceptorFactory</factory-class>
        <param key="host" value="h"/><param key="port" value="5"/>
        <param key="tcpNoDelay" value="false"/></acceptor></acceptors>"""
    [acceptor] = read(tmp_path, core).acceptors
    assert (acceptor.host, acceptor.port, acceptor.tcp_no_delay) == ("h", 5, False)


def test_harmless_ha_policies_pass(tmp_path: Path) -> None:
    for policy in ("primary-only", "live-only"):
        assert read(tmp_path, f"<ha-policy><{policy}/></ha-policy>").unsupported == []
    configuration = read(tmp_path, "<ha-policy><replication><primary/></replication></ha-policy>")
    assert [entry.name for entry in configuration.unsupported] == ["ha-policy"]


def test_warnings(tmp_path: Path) -> None:
    core = """<security-enabled>false</security-enabled>
        <connectors><connector name="c">tcp://h:1</connector></connectors>
        <acceptors><acceptor name="a">tcp://h:1</acceptor></acceptors>
        <cluster-connections><cluster-connection name="x"><connector-ref>c</connector-ref>
        </cluster-connection></cluster-connections>"""
    warnings = read(tmp_path, core).warnings
    assert len(warnings) == 2
    assert "security-enabled" in warnings[0] and "cluster-password" in warnings[1]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("<cluster-password>CHANGE ME!!</cluster-password>", 3),
        ("<cluster-user>me</cluster-user>", 0),
        ("", None),
        ("<cluster-password>own</cluster-password>", None),
    ],
)
def test_credentials_that_let_in_nobody_are_named(tmp_path: Path, more: str, line: int | None) -> None:
    found = [each for each in read(tmp_path, more).unsupported if each.name == "cluster-password"]
    assert [(each.lost, each.line, "nobody can log in" in each.why) for each in found] == (
        [] if line is None else [(True, line, True)]
    )


@pytest.mark.parametrize("password", ["", "<cluster-password></cluster-password>"])
def test_a_public_password_beside_a_cluster_connection_is_a_warning(tmp_path: Path, password: str) -> None:
    core = f"""<cluster-user>own</cluster-user>{password}
        <connectors><connector name="c">tcp://h:1</connector></connectors>
        <acceptors><acceptor name="a">tcp://h:1</acceptor></acceptors>
        <cluster-connections><cluster-connection name="x"><connector-ref>c</connector-ref>
        </cluster-connection></cluster-connections>"""
    (warning,) = read(tmp_path, core).warnings
    assert "everybody knows" in warning and "<cluster-password> in the files of all members" in warning


CODEC = "org.apache.activemq.artemis.utils.DefaultSensitiveStringCodec"
# "password", as `artemis mask` writes it, with the key that all have and with the key `own`.
MASKED = "3a34fd21b82bf2a822fa49a8d8fa115d"
MASKED_OWN = "671c3a5894862cb14ab1f79a29286645"


@pytest.mark.parametrize(
    ("secret", "more"),
    [
        (f"ENC({MASKED})", ""),
        (f"ENC({MASKED_OWN})", f"<password-codec>{CODEC};key=own</password-codec>"),
        (MASKED, "<mask-password>true</mask-password>"),
    ],
)
def test_masked_passwords_are_opened(tmp_path: Path, secret: str, more: str) -> None:
    params = f"sslEnabled=true;keyStorePath=k;keyStorePassword={secret};trustStorePassword={secret}"
    configuration = read(
        tmp_path,
        f"""<connectors><connector name="c">tcp://h:1?{params}</connector></connectors>
            <acceptors><acceptor name="a">tcp://h:1?{params}</acceptor></acceptors>
            <cluster-password>{secret}</cluster-password>
            <bridges><bridge name="b"><queue-name>q</queue-name><user>u</user>
            <password>{secret}</password><static-connectors><connector-ref>c</connector-ref>
            </static-connectors></bridge></bridges>{more}""",
    )
    assert configuration.broker.cluster_password == "password"
    assert configuration.bridges[0].password == "password"
    for tls in (configuration.acceptors[0].tls, configuration.connectors["c"].tls):
        assert tls is not None
        assert (tls.key_store_password, tls.trust_store_password) == ("password", "password")


def test_a_password_that_only_looks_masked(tmp_path: Path) -> None:
    core = "<cluster-password>ENC(mine)</cluster-password><mask-password>false</mask-password>"
    assert read(tmp_path, core).broker.cluster_password == "ENC(mine)"


def test_what_is_there_twice_starts_as_at_artemis_with_a_warning_that_says_which_counts(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text(
        """<configuration><jms><queue name="q"/></jms>
<core><connectors>
<connector name="c">tcp://first:1?tcpNoDelay=true;tcpNoDelay=false</connector>
<connector name="c">tcp://second:1</connector></connectors>
<acceptors><acceptor name="a">tcp://0.0.0.0:1?connectionsAllowed=1;connectionsAllowed=7</acceptor></acceptors>
<security-settings><security-setting match="s"><permission type="send" roles="one"/></security-setting>
<security-setting match="s"><permission type="send" roles="two"/></security-setting></security-settings>
<address-settings><address-setting match="s"><max-size-bytes>1</max-size-bytes></address-setting>
<address-setting match="s"><max-size-bytes>2</max-size-bytes></address-setting></address-settings>
<addresses><address name="x"><anycast>
<queue name="q"/></anycast></address><address name="y"><anycast>
<queue name="z"/></anycast></address><address name="w"><anycast>
<queue name="z"/></anycast></address></addresses></core></configuration>"""
    )
    (tmp_path / "artemis-users.properties").write_text("u = first\nu = last\n")
    (tmp_path / "artemis-roles.properties").write_text("")
    found = read_broker_xml(path)
    assert found.connectors["c"].host == "first" and not found.connectors["c"].tcp_no_delay
    assert found.acceptors[0].connections_allowed == 7
    assert [rule.permissions["send"] for rule in found.broker.security_rules] == [("two",)]
    assert [each.values["max_size_bytes"] for each in found.broker.address_settings] == [1]
    security = read_security(found)
    assert security.users["u"].password.verify("last")
    assert any("user 'u' is there twice: the last one counts" in each for each in found.warnings)
    assert sorted((each.line, each.name, each.why.partition(": ")[2]) for each in found.unsupported if each.lost) == [
        (1, "queue q", "that of line 11 counts"),
        (3, "connector c: tcpNoDelay", "the last one counts"),
        (4, "connector c", "that of line 3 counts"),
        (5, "acceptor a: connectionsAllowed", "the last one counts"),
        (6, "security-setting s", "that of line 7 counts"),
        (9, "address-setting s", "that of line 8 counts"),
        (13, "queue z", "that of line 12 counts"),
    ]
