# SPDX-License-Identifier: Apache-2.0
"""TLS 1.3 over a byte stream, for the tests' own client and server of rftp-protocol(7).

Python's ssl module has memory BIOs but no exporter, which the tokens of data channels need: so OpenSSL is
called directly.
"""

import ctypes
import ctypes.util

TOKEN_LABEL = b"EXPERIMENTAL rftp data channel"
ALPN = b"\x06rftp/1"
TLS1_3_VERSION = 0x0304
CTRL_SET_MIN_PROTO_VERSION, CTRL_MODE = 123, 33
WANT_READ, ZERO_RETURN = 2, 6

_ssl = ctypes.CDLL(ctypes.util.find_library("ssl") or "libssl.so.3")
_crypto = ctypes.CDLL(ctypes.util.find_library("crypto") or "libcrypto.so.3")


def _function(library, name, result, *arguments):
    f = getattr(library, name)
    f.restype, f.argtypes = result, arguments
    return f


_p, _i, _s = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
CLIENT_METHOD = _function(_ssl, "TLS_client_method", _p)
SERVER_METHOD = _function(_ssl, "TLS_server_method", _p)
CTX_NEW = _function(_ssl, "SSL_CTX_new", _p, _p)
CTX_FREE = _function(_ssl, "SSL_CTX_free", None, _p)
CTX_CTRL = _function(_ssl, "SSL_CTX_ctrl", ctypes.c_long, _p, _i, ctypes.c_long, _p)
SET_ALPN = _function(_ssl, "SSL_CTX_set_alpn_protos", _i, _p, _s, ctypes.c_uint)
SELECT_ALPN = ctypes.CFUNCTYPE(_i, _p, ctypes.POINTER(_p), ctypes.POINTER(ctypes.c_ubyte), _p,
                               ctypes.c_uint, _p)
SET_SELECT_ALPN = _function(_ssl, "SSL_CTX_set_alpn_select_cb", None, _p, SELECT_ALPN, _p)
USE_KEY = _function(_ssl, "SSL_CTX_use_PrivateKey", _i, _p, _p)
USE_CERTIFICATE = _function(_ssl, "SSL_CTX_use_certificate", _i, _p, _p)
SSL_NEW = _function(_ssl, "SSL_new", _p, _p)
SSL_FREE = _function(_ssl, "SSL_free", None, _p)
SET_BIO = _function(_ssl, "SSL_set_bio", None, _p, _p, _p)
CONNECT_STATE = _function(_ssl, "SSL_set_connect_state", None, _p)
ACCEPT_STATE = _function(_ssl, "SSL_set_accept_state", None, _p)
HANDSHAKE = _function(_ssl, "SSL_do_handshake", _i, _p)
ERROR = _function(_ssl, "SSL_get_error", _i, _p, _i)
READ = _function(_ssl, "SSL_read", _i, _p, _p, _i)
WRITE = _function(_ssl, "SSL_write", _i, _p, _s, _i)
EXPORT = _function(_ssl, "SSL_export_keying_material", _i, _p, _p, ctypes.c_size_t, _s,
                   ctypes.c_size_t, _s, ctypes.c_size_t, _i)
BIO_NEW = _function(_crypto, "BIO_new", _p, _p)
BIO_MEM = _function(_crypto, "BIO_s_mem", _p)
BIO_CTRL = _function(_crypto, "BIO_ctrl", ctypes.c_long, _p, _i, ctypes.c_long, _p)
BIO_READ = _function(_crypto, "BIO_read", _i, _p, _p, _i)
BIO_WRITE = _function(_crypto, "BIO_write", _i, _p, _s, _i)
CLEAR_ERRORS = _function(_crypto, "ERR_clear_error", None)
MAKE_KEY = _function(_crypto, "EVP_PKEY_Q_keygen", _p, _p, _p, _s)
X509_NEW = _function(_crypto, "X509_new", _p)
X509_SET_VERSION = _function(_crypto, "X509_set_version", _i, _p, ctypes.c_long)
X509_NOT_BEFORE = _function(_crypto, "X509_getm_notBefore", _p, _p)
X509_NOT_AFTER = _function(_crypto, "X509_getm_notAfter", _p, _p)
SET_TIME = _function(_crypto, "ASN1_TIME_set_string", _i, _p, _s)
X509_SET_KEY = _function(_crypto, "X509_set_pubkey", _i, _p, _p)
X509_SIGN = _function(_crypto, "X509_sign", _i, _p, _p, _p)
BIO_CTRL_PENDING, BIO_CTRL_EOF_RETURN = 10, 130


class Dropped(Exception):
    """The other side ended the connection, or TLS did."""


@SELECT_ALPN
def _select(_ssl_object, out, out_len, offered, offered_len, _arg):
    names = ctypes.string_at(offered, offered_len)
    at = names.find(ALPN)
    if at < 0:
        return 2  # SSL_TLSEXT_ERR_ALERT_FATAL
    out[0] = offered + at + 1
    out_len[0] = len(ALPN) - 1
    return 0


class Identity:
    """A server's: a new Ed25519 key, and a certificate that says nothing else."""

    def __init__(self):
        self.key, self.certificate = MAKE_KEY(None, None, b"ED25519"), X509_NEW()
        X509_SET_VERSION(self.certificate, 2)
        SET_TIME(X509_NOT_BEFORE(self.certificate), b"20200101000000Z")
        SET_TIME(X509_NOT_AFTER(self.certificate), b"99991231235959Z")
        X509_SET_KEY(self.certificate, self.key)
        if X509_SIGN(self.certificate, self.key, None) <= 0:
            raise Dropped("no certificate can be made")


class Tls:
    """Reads and writes through `stream`, which has write(bytes) and some() -> whatever bytes came, at least
    one.  With an identity it is a server's."""

    def __init__(self, stream, identity=None, alpn=ALPN):
        self.stream, self.plain = stream, b""
        context = CTX_NEW(SERVER_METHOD() if identity else CLIENT_METHOD())
        CTX_CTRL(context, CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, None)
        if identity:
            if USE_CERTIFICATE(context, identity.certificate) != 1 or USE_KEY(context, identity.key) != 1:
                raise Dropped("the server's key or certificate")
            SET_SELECT_ALPN(context, _select, None)
        elif alpn:
            SET_ALPN(context, alpn, len(alpn))
        self.ssl = SSL_NEW(context)
        CTX_FREE(context)
        self.incoming, self.outgoing = BIO_NEW(BIO_MEM()), BIO_NEW(BIO_MEM())
        BIO_CTRL(self.incoming, BIO_CTRL_EOF_RETURN, -1, None)
        SET_BIO(self.ssl, self.incoming, self.outgoing)
        (ACCEPT_STATE if identity else CONNECT_STATE)(self.ssl)

    def __del__(self):
        if getattr(self, "ssl", None):
            SSL_FREE(self.ssl)

    def _flush(self):
        pending = BIO_CTRL(self.outgoing, BIO_CTRL_PENDING, 0, None)
        if pending:
            data = ctypes.create_string_buffer(pending)
            BIO_READ(self.outgoing, data, pending)
            self.stream.write(data.raw)

    def _feed(self):
        data = self.stream.some()
        BIO_WRITE(self.incoming, data, len(data))

    def handshake(self):
        while True:
            CLEAR_ERRORS()
            r = HANDSHAKE(self.ssl)
            error = ERROR(self.ssl, r)
            self._flush()
            if r == 1:
                return self
            if error != WANT_READ:
                raise Dropped("the handshake failed")
            self._feed()

    def write(self, data):
        for at in range(0, len(data), 16384):
            piece = data[at:at + 16384]
            if WRITE(self.ssl, piece, len(piece)) != len(piece):
                raise Dropped("write")
        self._flush()

    def read(self, count):
        """Takes them once all have come."""
        room = ctypes.create_string_buffer(16384)
        while len(self.plain) < count:
            CLEAR_ERRORS()
            r = READ(self.ssl, room, 16384)
            if r > 0:
                self.plain += room.raw[:r]
                continue
            if ERROR(self.ssl, r) != WANT_READ:
                raise Dropped("a record is not what it should be, or the stream was closed")
            self._flush()
            self._feed()
        taken, self.plain = self.plain[:count], self.plain[count:]
        return taken

    def export(self, label, context, count=16):
        secret = ctypes.create_string_buffer(count)
        if EXPORT(self.ssl, secret, count, label, len(label), context, len(context), 1) != 1:
            raise Dropped("export")
        return secret.raw
