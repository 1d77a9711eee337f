"""Who may speak to the tasks of a cluster, and whether what they say is encrypted.

Each process of a cluster, and each client, finds the same in its environment (`framework/flags.py`):

- a *token*, which every message must come with: in ``FLOWSTONE_CLUSTER_TOKEN``, or in the file ``token`` of
  the folder of secrets. The variable, even when it is empty, goes before the file;
- a folder of secrets, ``FLOWSTONE_CLUSTER_SECRETS``: ``ca.crt``, the authority that the tasks' certificates
  are checked with; ``tls.crt`` and ``tls.key``, this process's own. With ``ca.crt`` all connections but those
  over Unix sockets are encrypted (TLS). These are the names that Kubernetes gives them;
- ``FLOWSTONE_CLUSTER_NAME``: the name that all tasks' certificates are for, if they are not for their hosts.

Servers of a cluster with certificates and without a token ask clients for a certificate of the authority. A
server without either answers anybody who reaches it, as TensorFlow's does. Nothing here goes into messages
but the token, and none of it into a log.
"""

from __future__ import annotations

import hmac
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from flowstone.framework import errors, flags

__all__ = ["OPEN", "ClusterSecurity", "cluster_security"]

_TOKEN = re.compile(r"[!-~]+\Z")  # what a header of HTTP can hold
_MOST_TOKEN = 4096


@dataclass(frozen=True)
class ClusterSecurity:
    """The token ("" for none), the authority, certificate and key (PEM, b"" for none), and the name that
    certificates of tasks are for ("": their hosts')."""

    token: str = field(default="", repr=False)
    authority: bytes = b""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    name: str = ""
    folder: Path | None = None  # that has the three, which only files can give to TLS

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return bool(self.authority)

    @property
    def asks_for_certificates(self) -> bool:
        """Whether servers want one of each client."""
        return self.has_tls and not self.token

    def admits(self, token: str | None) -> bool:
        """Whether a message that came with this token is answered."""
        return not self.token or hmac.compare_digest((token or "").encode(), self.token.encode())

    def check_server(self) -> None:
        """InvalidArgumentError if a server cannot do with this."""
        if self.has_tls and not self.certificate:
            raise _invalid(
                f"{self.folder} has a ca.crt; a server also needs its own tls.crt and tls.key there"
            )

    def server_context(self) -> ssl.SSLContext | None:
        """How to accept connections; None for plain ones."""
        if not self.has_tls:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = 0  # nobody resumes a session
        self._load(context)
        if self.asks_for_certificates:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client_context(self) -> ssl.SSLContext | None:
        """How to connect to a server; None for plain connections."""
        if not self.has_tls:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which checks certificates and names
        self._load(context)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        assert self.folder is not None
        try:
            context.load_verify_locations(cadata=self.authority.decode("ascii"))
            if self.certificate:
                context.load_cert_chain(self.folder / "tls.crt", self.folder / "tls.key", password=b"")
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise _invalid(f"the certificates in {self.folder} cannot be used: {error}") from None


OPEN = ClusterSecurity()
"""Anybody may speak, and everything is readable on its way."""


def cluster_security() -> ClusterSecurity:
    """What the environment says now. InvalidArgumentError for a folder, or files in it, that cannot be read,
    and for a token that no message can carry."""
    folder = Path(flags.cluster_secrets()).expanduser() if flags.cluster_secrets() else None
    given = flags.cluster_token()
    if folder is None:
        return ClusterSecurity(_checked(given or ""))
    if not folder.is_dir():
        raise _invalid(f"FLOWSTONE_CLUSTER_SECRETS is no folder: {folder}")
    token = _content(folder / "token").decode(errors="replace") if given is None else given
    files = [_content(folder / name) for name in ("ca.crt", "tls.crt", "tls.key")]
    authority, certificate, key = files
    if bool(certificate) != bool(key) or (certificate and not authority):
        raise _invalid(f"{folder} needs ca.crt, tls.crt and tls.key together, or a client's ca.crt alone")
    name = flags.cluster_name() if authority else ""
    found = ClusterSecurity(_checked(token), authority, certificate, key, name, folder)
    found.client_context()  # says what is wrong with files
    return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _invalid(f"{path} cannot be read: {error.strerror}") from None


def _checked(token: str) -> str:
    token = token.strip()
    if token and (not _TOKEN.match(token) or len(token) > _MOST_TOKEN):
        raise _invalid(
            f"a cluster's token is up to {_MOST_TOKEN} letters, digits and signs of ASCII without spaces"
        )
    return token


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)
