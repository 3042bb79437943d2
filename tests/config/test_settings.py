"""Settings: precedence, and errors that say where, what and what instead."""

from pathlib import Path

import pytest

from config.settings import Settings, SettingsError, is_loopback, load, starting_file


def write(folder: Path, text: str) -> None:
    (folder / "aboyeur.toml").write_text(text)


def test_a_hub_without_a_file_has_defaults_on_loopback(tmp_path: Path) -> None:
    settings = load(tmp_path, {})
    assert settings == Settings(data=tmp_path)
    assert (settings.http.host, settings.http.port) == ("127.0.0.1", 7878)
    assert (settings.broker.kind, settings.broker.port, settings.broker.protocol) == (
        "embedded",
        18830,
        "3.1.1",
    )
    assert settings.warnings() == []


def test_environment_goes_before_file_goes_before_defaults(tmp_path: Path) -> None:
    write(tmp_path, 'kitchen = "file"\n[http]\nport = 8001\n[log]\nlevel = "debug"\n')
    settings = load(tmp_path, {"ABOYEUR_HTTP_PORT": "8002", "ABOYEUR_KITCHEN": "env"})
    assert (settings.http.port, settings.kitchen) == (8002, "env")
    assert settings.log.level == "debug"
    assert settings.forward.answer_s == 10.0


def test_every_setting_can_come_from_the_environment(tmp_path: Path) -> None:
    environ = {
        "ABOYEUR_BROKER_KIND": "mosquitto",
        "ABOYEUR_BROKER_TLS_CA": "/etc/ca.pem",
        "ABOYEUR_QUOTAS_EVENTS_PER_DEVICE_PER_MINUTE": "50",
        "ABOYEUR_FORWARD_STOP_ANSWER_S": "1.5",
        "ABOYEUR_LOG_LEVEL": "error",
    }
    settings = load(tmp_path, environ)
    assert settings.broker.tls_ca == "/etc/ca.pem"
    assert settings.quotas.events_per_device_per_minute == 50
    assert settings.forward.stop_answer_s == 1.5
    assert settings.log.level == "error"


@pytest.mark.parametrize(
    ("extra", "port", "protocol"),
    [("", 1883, "5"), ('tls_ca = "ca.pem"', 8883, "5"), ('port = 2000\nprotocol = "3.1.1"', 2000, "3.1.1")],
)
def test_a_real_broker_has_its_usual_port_unless_told(
    tmp_path: Path, extra: str, port: int, protocol: str
) -> None:
    write(tmp_path, f'[broker]\nkind = "mosquitto"\n{extra}\n')
    broker = load(tmp_path, {}).broker
    assert (broker.port, broker.protocol) == (port, protocol)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[http]\nport = 99999", ["aboyeur.toml", "http.port = 99999", "1 to 65535"]),
        ('[http]\nport = "7878"', ["http.port = '7878'", "whole number"]),
        ("[http]\nprot = 1", ["http.prot", "unknown", "host, port"]),
        ("[htpp]\nport = 1", ["htpp", "unknown", "[http]"]),
        ("http = 7878", ["http", "must be a table", "[http]"]),
        ('kitchen = "my kitchen"', ["kitchen = 'my kitchen'", "letters, digits"]),
        ('kitchen = "home\\n"', ["kitchen", "letters, digits"]),
        ('data = "/elsewhere"', ["data", "--data", "ABOYEUR_DATA"]),
        ('[broker]\nkind = "rabbit"', ["broker.kind = 'rabbit'", '"embedded" or "mosquitto"']),
        ("[broker]\nprotocol = 5", ["broker.protocol = 5", "in quotes"]),
        ("[forward]\nanswer_s = nan", ["forward.answer_s", "at most 600"]),
        ("[quotas]\npayload_bytes = 10", ["quotas.payload_bytes = 10", "1024"]),
        ("[http\nport = 1", ["aboyeur.toml", "not TOML"]),
        ("kitchen = 'a'\nkitchen = 'b'", ["not TOML"]),
        ('[broker]\nhost = "0.0.0.0"', ["broker.host", "loopback only"]),
        ('[broker]\nprotocol = "5"', ["broker.protocol", "3.1.1"]),
        ('[broker]\ntls_ca = "ca.pem"', ["broker.tls_ca", "no TLS"]),
    ],
)
def test_a_wrong_file_is_refused_with_place_key_and_what_is_allowed(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    write(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, {})
    assert [word for word in words if word not in str(caught.value)] == []
    assert str(tmp_path) in str(caught.value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "aboyeur.toml").write_bytes(b"kitchen = '\xff'")
    with pytest.raises(SettingsError, match="not TOML"):
        load(tmp_path, {})


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ABOYEUR_HTTP_PORT", "http", ["environment", "ABOYEUR_HTTP_PORT = 'http'", "1 to 65535"]),
        ("ABOYEUR_HTTP_PROT", "1", ["ABOYEUR_HTTP_PROT", "unknown", "host, port"]),
        ("ABOYEUR_BROKER_HOST", "10.0.0.1", ["ABOYEUR_BROKER_HOST", "loopback only"]),
    ],
)
def test_a_wrong_variable_is_refused_by_its_name(
    tmp_path: Path, variable: str, value: str, words: list[str]
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, {variable: value})
    assert [word for word in words if word not in str(caught.value)] == []


def test_variables_of_other_purposes_are_left_alone(tmp_path: Path) -> None:
    environ = {"ABOYEUR_TOKEN": "t", "ABOYEUR_URL": "u", "ABOYEUR_DATA": "d", "HTTP_PORT": "1"}
    assert load(tmp_path, environ) == Settings(data=tmp_path)


def test_listening_beyond_loopback_is_said_aloud(tmp_path: Path) -> None:
    write(tmp_path, '[http]\nhost = "0.0.0.0"\n[broker]\nkind = "mosquitto"\nhost = "broker.lan"\n')
    settings = load(tmp_path, {})
    http, pairing, broker = settings.warnings()
    assert "http://127.0.0.1:7878" in pairing
    assert "http.host = 0.0.0.0" in http
    assert "broker.tls_ca" in broker
    assert settings.url() == "http://127.0.0.1:7878"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("192.168.1.2", False),
        ("localhost.evil.example", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_an_address_of_ip_version_6_makes_a_valid_url(tmp_path: Path) -> None:
    assert load(tmp_path, {"ABOYEUR_HTTP_HOST": "::"}).url() == "http://[::1]:7878"


def test_the_first_file_says_what_it_was_made_from(tmp_path: Path) -> None:
    write(
        tmp_path, 'kitchen = "mill:1"\n[http]\nport = 9000\n[broker]\nkind = "mosquitto"\ntls_ca = "/c.pem"\n'
    )
    settings = load(tmp_path, {})
    write(tmp_path, starting_file(settings))
    assert load(tmp_path, {}) == settings


def test_the_commented_lines_of_the_first_file_are_the_defaults(tmp_path: Path) -> None:
    text = starting_file(Settings(data=tmp_path))
    lines = [line for line in text.splitlines() if not line.startswith("# tls_ca")][2:]
    write(tmp_path, "\n".join(line.removeprefix("# ") for line in lines))
    assert load(tmp_path, {}) == Settings(data=tmp_path)


def test_the_altitude_of_the_kitchen_is_a_setting(tmp_path: Path) -> None:
    write(tmp_path, "[place]\naltitude_m = 1200.0\n")
    assert load(tmp_path, {}).place.altitude_m == 1200.0
    with pytest.raises(SettingsError, match="metres"):
        load(tmp_path, {"ABOYEUR_PLACE_ALTITUDE_M": "12000"})
