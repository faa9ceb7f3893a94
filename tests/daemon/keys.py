# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Keys for TLS, made by the openssl program."""

import secrets
import ssl
import subprocess
import time

from daemon_net import address
from pipe_peer import Conn


def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)


class Authority:
    """Signs certificates of hosts."""

    def __init__(self, folder, name="ca"):
        self.folder, self.cert, self.key = folder, folder / f"{name}.pem", folder / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key,
                "-out", self.cert, "-subj", f"/CN={name}", "-days", 30)

    def sign(self, host, names=None, days=30, extra=()):
        """(certificate, key) of a host; `names` are its DNS names."""
        cert, key, request = (self.folder / f"{self.cert.stem}-{host}.{end}" for end in ("pem", "key", "csr"))
        names = [host] if names is None else names
        extensions = [f"subjectAltName={','.join(f'DNS:{name}' for name in names)}"] if names else []
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", request,
                "-subj", f"/CN={host}", *(arg for text in [*extensions, *extra] for arg in ("-addext", text)))
        when = ["-days", days]
        openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial",
                "-copy_extensions", "copy", "-out", cert, *when)
        return cert, key

    def sign_for(self, host, seconds):
        """As sign(), valid for `seconds` from now; openssl's x509 takes days only."""
        cert, key = self.sign(host)
        config, index, now = self.folder / "ca.cnf", self.folder / "ca.index", time.time()
        config.write_text(f"[ca]\ndefault_ca = c\n[c]\ndatabase = {index}\nnew_certs_dir = {self.folder}\n"
                          "rand_serial = yes\ndefault_md = sha256\npolicy = p\ncopy_extensions = copy\n"
                          "unique_subject = no\n[p]\ncommonName = supplied\n")
        index.touch()
        begin, end = (time.strftime("%y%m%d%H%M%SZ", time.gmtime(when)) for when in (now - 60, now + seconds))
        openssl("ca", "-batch", "-notext", "-config", config, "-in", cert.with_suffix(".csr"), "-out", cert, "-cert",
                self.cert, "-keyfile", self.key, "-startdate", begin, "-enddate", end)
        return cert, key

    def options(self, host, ca=None, **kwargs):
        """Options of a daemon."""
        cert, key = self.sign(host, **kwargs)
        return ["--tls-cert", str(cert), "--tls-key", str(key), "--tls-ca", str((ca or self).cert)]


def psk_options(folder, host, **keys):
    """A file with a key for each other host; `all` is the key without a name."""
    path = folder / f"{host}.psk"
    path.write_text("# made by a test\n\n" + "".join(
        f"{key}\n" if name == "all" else f"{name}:{key}\n" for name, key in keys.items()))
    return ["--tls-psk-file", str(path)]


def new_psk(size=32):
    return secrets.token_hex(size)


def write_keys(path, *lines):
    """Write a key file: the option that names it."""
    path.write_text("".join(f"{line}\n" for line in lines))
    return ["--tls-psk-file", str(path)]


def tls_context(ca=None, certificate=None):
    """Of a dialler in Python, which checks no host name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED if ca else ssl.CERT_NONE
    if ca:
        context.load_verify_locations(ca.cert)
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def tls_peer(ca, host, **kwargs):
    """A connection to h1 as `host`, TLS done; None: without a certificate."""
    context = tls_context(ca, ca.sign(host, **kwargs) if host else None)
    return Conn(context.wrap_socket(Conn.dial(address(1)).sock))
