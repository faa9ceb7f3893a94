# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A byte stream from a guest, cut into lines."""

import os


class LineReader:
    """Calls on_line(text) for each line that arrives on a non-blocking descriptor."""

    LONGEST = 64 * 1024

    def __init__(self, sock, on_line, log=None):
        self.sock = sock
        self.on_line = on_line
        self.log = log
        self.open = True
        self._rest = b""
        sock.setblocking(False)

    def read(self):
        """Take what is there. False at the end of the stream."""
        while self.open:
            try:
                data = os.read(self.sock.fileno(), 65536)
            except BlockingIOError:
                return True
            except OSError:
                data = b""
            if not data:
                self._end()
                return False
            self._take(data)
        return False

    def _take(self, data):
        if self.log:
            self.log.write(data)
            self.log.flush()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.on_line(line.decode(errors="replace").rstrip("\r"))
        if len(self._rest) > self.LONGEST:
            self.on_line(self._rest.decode(errors="replace"))
            self._rest = b""

    def begin_with(self, text):
        """Bytes of an earlier stream, in front of all that comes."""
        self._rest = text

    def take_rest(self):
        """Return: the bytes of a line that has not ended. Another stream has its end."""
        rest, self._rest = self._rest, b""
        return rest

    def close(self):
        """No line ends by this."""
        self.open = False
        self.sock.close()
        if self.log:
            self.log.close()

    def _end(self):
        self.close()
        if self._rest:
            self.on_line(self._rest.decode(errors="replace"))
            self._rest = b""
