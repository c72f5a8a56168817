"""Who may ask: tokens, addresses, names, and how often."""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from clinic import Clinic, running

from dvfl.errors import UserError
from dvfl.serving.guarding import Rules
from dvfl.serving.listening import Listen, Tls, check_reach, parse_listen, parse_tls
from dvfl.serving.tokens import TokenFile, new_token, owner_of, read_tokens

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def test_a_token_is_shown_once_and_kept_as_its_hash(tokens: Path) -> None:
    secret, token = new_token(tokens, "ward-3", NOW)
    assert secret not in tokens.read_text()
    assert tokens.read_text() == f"ward-3 {hashlib.sha256(secret.encode()).hexdigest()} 2027-02-14T12:00:00Z\n"
    assert tokens.stat().st_mode & 0o077 == 0
    assert read_tokens(tokens) == (token,)
    assert owner_of(secret, read_tokens(tokens)) == token
    assert owner_of(secret + "x", read_tokens(tokens)) is None


def test_a_second_token_leaves_the_first_as_it_is(tokens: Path) -> None:
    first, _ = new_token(tokens, "ward-3", NOW)
    new_token(tokens, "ward-4", NOW)
    assert [token.name for token in read_tokens(tokens)] == ["ward-3", "ward-4"]
    found = owner_of(first, read_tokens(tokens))
    assert found is not None and found.name == "ward-3"
    with pytest.raises(UserError, match="ward-3 has a token"):
        new_token(tokens, "ward-3", NOW)


@pytest.mark.parametrize("name", ["", "a b", "../x", "x" * 65, "é"])
def test_names_that_would_break_the_file_are_refused(tokens: Path, name: str) -> None:
    with pytest.raises(UserError, match="are right"):
        new_token(tokens, name, NOW)
    assert not tokens.exists()


@pytest.mark.parametrize(
    "line",
    ["ward-3", "ward-3 12 2027-01-01T00:00:00Z", f"ward-3 {'a' * 64} soon", f"ward-3 {'a' * 64} 2027-01-01T00:00:00"],
)
def test_a_line_that_is_none_is_named(tokens: Path, line: str) -> None:
    tokens.write_text(f"# those of ward 3\n\n{line}\n")
    with pytest.raises(UserError, match="line 3"):
        read_tokens(tokens)


def test_a_line_taken_out_counts_at_once(tokens: Path) -> None:
    secret, _ = new_token(tokens, "ward-3", NOW)
    file = TokenFile(tokens)
    assert file.owner_of(secret) is not None
    line = tokens.read_text()
    tokens.write_text("# nobody\n")
    assert file.owner_of(secret) is None
    tokens.write_text(line)
    assert file.owner_of(secret) is not None
    tokens.unlink()
    assert file.owner_of(secret) is None


def test_without_a_token_nothing_is_said_of_the_federation(clinic: Clinic, tokens: Path) -> None:
    new_token(tokens, "ward-3", datetime.now(UTC))
    with running(clinic, Rules(TokenFile(tokens))) as address, httpx.Client(base_url=address) as client:
        for path in ("/v1/status", "/v1/events", "/metrics", "/v1/nothing"):
            response = client.get(path)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            assert "Authorization: Bearer" in response.json()["error"]
        assert client.post("/v1/predict", json={"ids": ["7"]}).status_code == 401
        assert client.get("/v1/status", headers=bearer("guessed")).status_code == 401
        assert client.get("/v1/status", headers={"authorization": "Basic eDp5"}).status_code == 401
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/").status_code == 200


def test_a_known_token_is_let_in_and_named_in_the_log(clinic: Clinic, tokens: Path) -> None:
    secret, _ = new_token(tokens, "ward-3", datetime.now(UTC))
    log: list[dict[str, Any]] = []
    with running(clinic, Rules(TokenFile(tokens)), log) as address:
        assert httpx.post(f"{address}/v1/predict", json={"ids": ["7"]}, headers=bearer(secret)).status_code == 200
    assert log[0]["token"] == "ward-3"
    assert secret not in str(log)


def test_an_expired_token_is_told_so(clinic: Clinic, tokens: Path) -> None:
    secret, _ = new_token(tokens, "ward-3", datetime.now(UTC) - timedelta(days=91))
    with running(clinic, Rules(TokenFile(tokens))) as address:
        response = httpx.get(f"{address}/v1/status", headers=bearer(secret))
    assert response.status_code == 401
    assert "the token of ward-3 expired on" in response.json()["error"]


def test_whoever_asks_too_often_waits_and_others_do_not(clinic: Clinic, tokens: Path) -> None:
    secrets = [new_token(tokens, name, datetime.now(UTC))[0] for name in ("ward-3", "ward-4")]
    with running(clinic, Rules(TokenFile(tokens), rate=2)) as address, httpx.Client(base_url=address) as client:
        answers = [client.get("/v1/status", headers=bearer(secrets[0])) for _ in range(8)]
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert "2 requests a second" in answers[-1].json()["error"]
        assert client.get("/v1/status", headers=bearer(secrets[1])).status_code == 200
        guesses = [client.get("/v1/status", headers=bearer(f"guess-{number}")).status_code for number in range(8)]
        assert guesses[0] == 401 and guesses[-1] == 429
        assert client.get("/healthz").status_code == 200


def test_a_web_page_cannot_reach_an_open_server_by_a_name_of_its_own(clinic: Clinic) -> None:
    with running(clinic, Rules(local=True)) as address, httpx.Client(base_url=address) as client:
        for name in ("localhost:80", "127.0.0.1", "[::1]:8080"):
            assert client.get("/healthz", headers={"host": name}).status_code == 200
        for name in ("evil.example", "localhost.evil.example", "10.0.0.1", ""):
            assert client.get("/healthz", headers={"host": name}).status_code == 421


def test_every_answer_carries_the_headers_that_keep_pages_apart(client: httpx.Client) -> None:
    for path in ("/", "/healthz", "/nothing", "/v1/status"):
        headers = client.get(path, headers={"origin": "https://evil.example"}).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080, True),
        ("localhost:1", "localhost", 1, True),
        ("[::1]:443", "::1", 443, True),
        ("0.0.0.0:8443", "0.0.0.0", 8443, False),
        ("serve.clinic.example:443", "serve.clinic.example", 443, False),
    ],
)
def test_an_address_is_read(text: str, host: str, port: int, loopback: bool) -> None:
    found = parse_listen(text)
    assert (found.host, found.port, found.loopback) == (host, port, loopback)


@pytest.mark.parametrize("text", ["", "8080", ":8080", "localhost", "localhost:", "localhost:x", "localhost:65536"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="HOST:PORT is right"):
        parse_listen(text)


def test_only_loopback_goes_without_tokens_or_certificates_of_clients(tmp_path: Path) -> None:
    everywhere, pem = Listen("0.0.0.0", 8080), tmp_path / "x.pem"
    plain, mutual = Tls(pem, pem), Tls(pem, pem, pem)
    check_reach(Listen("127.0.0.1", 8080), tokens=False, tls=None)
    check_reach(everywhere, tokens=True, tls=plain)
    check_reach(everywhere, tokens=False, tls=mutual)
    with pytest.raises(UserError, match="--token-file"):
        check_reach(everywhere, tokens=False, tls=plain)
    with pytest.raises(UserError, match="--tls-cert"):
        check_reach(everywhere, tokens=True, tls=None)


def test_certificates_need_their_keys(tmp_path: Path) -> None:
    pem = tmp_path / "x.pem"
    pem.touch()
    assert parse_tls(None, None, None) is None
    for given in ((pem, None, None), (None, pem, None), (None, None, pem)):
        with pytest.raises(UserError, match="belong together"):
            parse_tls(*given)
    with pytest.raises(UserError, match="no such file"):
        parse_tls(pem, tmp_path / "missing.pem", None)
