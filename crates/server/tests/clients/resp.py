"""The Redis protocol by hand: bytes in and out, with the type of each value. No library interprets anything."""

import socket


def encode(command):
    """A command as an array of bulk strings."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Connection:
    """A connection that sends whatever it is given, and reads typed replies: ("+", b"OK"), (":", 1), ("~", [...])."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def send(self, commands):
        self.socket.sendall(b"".join(map(encode, commands)))

    def ask(self, *command):
        self.send([command])
        return self.read()

    def close(self):
        self.file.close()
        self.socket.close()

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server has closed the connection")
        kind, rest = chr(line[0]), line[1:-2]
        if kind in "+-(,#":
            return kind, rest
        if kind == ":":
            return kind, int(rest)
        if kind == "_":
            return kind, None
        if kind in "$=!":
            return kind, self.bytes(int(rest))
        if kind in "*~>":
            length = int(rest)
            return kind, None if length < 0 else [self.read() for _ in range(length)]
        if kind == "%":
            return kind, [(self.read(), self.read()) for _ in range(int(rest))]
        raise ConnectionError(f"not a reply: {line!r}")

    def bytes(self, length):
        if length < 0:
            return None
        content = self.file.read(length + 2)
        if content[length:] != b"\r\n":
            raise ConnectionError("a string is shorter or longer than its length")
        return content[:length]
