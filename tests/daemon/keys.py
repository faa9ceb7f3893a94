# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Keys for TLS, made by the openssl program."""

import contextlib
import secrets
import ssl
import subprocess
import time

from daemon_net import address
from daemon_process import PATIENCE
from pipe_peer import Conn, hello


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
        openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial",
                "-copy_extensions", "copy", "-out", cert, "-days", days)
        return cert, key

    def sign_for(self, host, seconds):
        """As sign(), valid for `seconds` from now; openssl's x509 takes days only."""
        cert, key = self.sign(host)
        now = time.time()
        begin, end = (time.strftime("%y%m%d%H%M%SZ", time.gmtime(when)) for when in (now - 60, now + seconds))
        self.run_ca("-in", cert.with_suffix(".csr"), "-out", cert, "-startdate", begin, "-enddate", end)
        return cert, key

    def run_ca(self, *args):
        """openssl's ca, with a database of its certificates."""
        config, index = self.folder / f"{self.cert.stem}.cnf", self.folder / f"{self.cert.stem}.index"
        config.write_text(f"[ca]\ndefault_ca = c\n[c]\ndatabase = {index}\nnew_certs_dir = {self.folder}\n"
                          "rand_serial = yes\ndefault_md = sha256\npolicy = p\ncopy_extensions = copy\n"
                          "unique_subject = no\n[p]\ncommonName = supplied\n")
        index.touch()
        openssl("ca", "-batch", "-notext", "-config", config, "-cert", self.cert, "-keyfile", self.key, *args)

    def revoke(self, *certs, seconds=3600):
        """Write a revocation list that has these certificates, and all that were revoked before. Return: its path."""
        for cert in certs:
            self.run_ca("-revoke", cert)
        path = self.folder / f"{self.cert.stem}.crl"
        self.run_ca("-gencrl", "-crlsec", seconds, "-out", path)
        return path

    def options(self, host, ca=None, **kwargs):
        """Options of a daemon."""
        cert, key = self.sign(host, **kwargs)
        return ["--tls-cert", str(cert), "--tls-key", str(key), "--tls-ca", str((ca or self).cert)]


def psk_options(folder, host, **keys):
    """A file with a key for each other host; `all` is the key without a name."""
    lines = (key if name == "all" else f"{name}:{key}" for name, key in keys.items())
    return write_keys(folder / f"{host}.psk", "# made by a test", "", *lines)


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


@contextlib.contextmanager
def psk_dialler(host, key, name):
    """A connection to h1 with the pre-shared key of `host`, and a HELLO of host `name`. Yield: a file to read from."""
    with subprocess.Popen(["openssl", "s_client", "-connect", f"{address(1)}:7471", "-tls1_3", "-quiet", "-psk", key,
                           "-psk_identity", host], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as child:
        try:
            child.stdin.write(hello(name))
            child.stdin.flush()
            yield child.stdout
        finally:
            child.kill()
            child.communicate(timeout=PATIENCE)


def damage(path, how, ca):
    """Damage a file of ca.options("h1")."""
    if how == "missing":
        path.unlink()
    elif how == "garbage":
        path.write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    elif how == "certificate of h9":
        path.write_bytes(ca.sign("h9")[0].read_bytes())
    elif how == "key of h9":
        path.write_bytes(ca.sign("h9")[1].read_bytes())
    elif how == "RSA key":
        openssl("genrsa", "-out", path, 2048)
    elif how == "expired":
        ca.sign("h1", days=-1)
    elif how == "locked":
        openssl("pkey", "-in", path, "-out", path.with_suffix(".new"), "-aes256", "-passout", "pass:secret")
        path.with_suffix(".new").rename(path)


# Index of the file in the options, damage, message.
WRONG_FILES = [
    (1, "missing", "cannot read the certificate FILE: No such file"),
    (1, "garbage", "cannot use the certificate FILE: "),
    (1, "certificate of h9", "the private key .*ca-h1.key does not belong to the certificate FILE"),
    (3, "missing", "cannot read the private key FILE: No such file"),
    (3, "key of h9", "the private key FILE does not belong to the certificate .*ca-h1.pem"),
    (3, "RSA key", "the private key FILE does not belong to the certificate .*ca-h1.pem"),
    (3, "locked", "cannot use the private key FILE: it has a passphrase"),
    (5, "missing", "cannot read the certificate authority FILE: No such file"),
    (5, "garbage", "cannot use the certificate authority FILE: "),
]
