"""Folders of secrets for tests: an authority of the test's own, certificates signed by it, a token."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def write_secrets(folder: Path, token: str = "", names: str = "DNS:localhost,IP:127.0.0.1") -> Path:
    """Writes ``ca.crt``, ``tls.crt``, ``tls.key`` for these names and, if it is given, ``token``.

    Skips the test without openssl.
    """
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made by the command openssl, which is not installed")
    folder.mkdir(parents=True)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    more = ("-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.crt")
    _openssl(folder, "req", *key, *more)
    (folder / "extensions").write_text(f"subjectAltName={names}\n")
    _openssl(folder, "req", *key, "-subj", "/CN=task", "-keyout", "tls.key", "-out", "request")
    _openssl(
        folder, "x509", "-req", "-in", "request", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
        "-days", "2", "-extfile", "extensions", "-out", "tls.crt",
    )  # fmt: skip
    if token:
        (folder / "token").write_text(token + "\n")
    return folder


def clients_secrets(folder: Path, secrets: Path) -> Path:
    """Writes what a client needs who has no certificate of its own."""
    folder.mkdir(parents=True)
    for name in ("ca.crt", "token"):
        if (secrets / name).exists():
            shutil.copy(secrets / name, folder)
    return folder
