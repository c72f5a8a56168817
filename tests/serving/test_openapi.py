"""The OpenAPI document, and a server that survives everything that schemathesis makes of it."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from clinic import Clinic, running

from dvfl.serving.guarding import Rules
from dvfl.serving.tokens import TokenFile, new_token


def test_the_document_names_every_path_and_refusal(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert set(document["paths"]) == {"/v1/predict", "/v1/status", "/metrics", "/healthz"}
    predict = document["paths"]["/v1/predict"]["post"]
    assert set(predict["responses"]) >= {"200", "400", "401", "413", "415", "422", "429", "503", "504"}
    assert "Retry-After" in predict["responses"]["429"]["headers"]
    asked = document["components"]["schemas"]["PredictRequest"]
    assert asked["properties"]["ids"]["maxItems"] == 10_000 and asked["additionalProperties"] is False
    assert "security" not in predict


def test_the_document_says_where_a_token_is_needed(clinic: Clinic, tmp_path: Path) -> None:
    new_token(tmp_path / "tokens", "ward-3", datetime.now(UTC))
    with running(clinic, Rules(TokenFile(tmp_path / "tokens"))) as address:
        document = httpx.get(f"{address}/openapi.json").json()
    assert document["paths"]["/v1/predict"]["post"]["security"] == [{"token": []}]
    assert "security" not in document["paths"]["/healthz"]["get"]


def test_the_document_says_where_a_certificate_is_needed(clinic: Clinic, tmp_path: Path) -> None:
    new_token(tmp_path / "tokens", "ward-3", datetime.now(UTC))
    with running(clinic, Rules(TokenFile(tmp_path / "tokens"), certificates=True)) as address:
        document = httpx.get(f"{address}/openapi.json").json()
    assert document["components"]["securitySchemes"]["certificate"] == {"type": "mutualTLS"}
    assert document["paths"]["/v1/predict"]["post"]["security"] == [{"certificate": [], "token": []}]
    assert document["paths"]["/healthz"]["get"]["security"] == [{"certificate": []}]


def test_it_survives_schemathesis(clinic: Clinic, tmp_path: Path) -> None:
    pytest.importorskip("schemathesis", reason="the extra dvfl[dev] is not installed")
    secret, _ = new_token(tmp_path / "tokens", "tester", datetime.now(UTC))
    command = [Path(sys.executable).with_name("schemathesis"), "run", "--max-examples", "10", "--seed", "7"]
    with running(clinic, Rules(TokenFile(tmp_path / "tokens"), rate=100_000)) as address:
        found = subprocess.run(
            [*command, "--header", f"Authorization: Bearer {secret}", f"{address}/openapi.json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=110,
        )
        assert httpx.get(f"{address}/healthz").status_code == 200
    assert found.returncode == 0, found.stdout[-6000:]
