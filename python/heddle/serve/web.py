"""web: the server: reads requests, waits for their texts, and writes answers.

Only bodies in JSON and, on a loopback address, only requests to it by name are taken: so a page of
another site, which a browser shows, cannot send any. SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import http.server
import json
import queue
import select
import socket
import threading
import time

from .. import library
from . import embed, protocol
from .engine import Counts, FullError, LateError

POLL = 0.1  # seconds, after which a client that waits is looked at
LAST_WORDS = 2  # seconds, in which answers are written after the last text has ended
IDLE = 30  # seconds, in which a client has to send or take something
LOOPBACK = ("127.0.0.1", "localhost", "::1")
JSON = "application/json"


class Gone(Exception):
    """The client has left."""


class Refused(Exception):
    """A request that is refused before it is read: (status, message)."""


def status_of(error):
    """(HTTP status, type and code of OpenAI's errors)."""
    if isinstance(error, protocol.NoModelError):
        return 404, "invalid_request_error", "model_not_found"
    if isinstance(error, FullError):
        return 503, "server_error", "overloaded"
    if isinstance(error, LateError):
        return 504, "server_error", "timeout"
    if isinstance(error, (library.UsageError, library.RefusedError)):
        return 400, "invalid_request_error", None
    return 500, "server_error", None


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "heddle", ""
    timeout = IDLE
    disable_nagle_algorithm = True  # a piece waits for no word that the one before has come
    is_streaming = False

    def log_message(self, form, *values):
        self.server.log(f"{self.client_address[0]} {form % values}")

    def do_GET(self):  # noqa: N802: http.server's name
        self._answer({"/v1/models": self._models, "/metrics": self._metrics,
                      "/health": self._health})

    def do_POST(self):  # noqa: N802
        self._answer({"/v1/embeddings": self._embed} if self.server.embeds else {
            "/v1/completions": lambda: self._complete(is_chat=False),
            "/v1/chat/completions": lambda: self._complete(is_chat=True)})

    def _answer(self, routes):
        """Does what the path says, or answers with its error."""
        self.is_streaming = False
        if self.headers.get("Content-Length", "0") != "0" and self.command == "GET":
            self.close_connection = True  # a body that nobody reads is no next request
        with self.server.busy():
            self._carry_out(routes)

    def _carry_out(self, routes):
        try:
            self._check_host()
            path = self.path.partition("?")[0]
            if path not in routes:
                known = "GET /v1/models, /metrics, /health; POST " + (
                    "/v1/embeddings" if self.server.embeds else
                    "/v1/completions, /v1/chat/completions")
                raise Refused(404, f"there is no {self.command} {path!r}; there are: {known}")
            routes[path]()
        except Refused as error:
            status, message = error.args
            self.close_connection = True  # a body may follow
            self._send(status, protocol.error_of(message))
            if self.command == "POST":
                self._drain()
        except library.Error as error:
            self._tell(error)
        except (Gone, ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:
            self.server.log(f"internal error: {type(error).__name__}: {error}")
            self._tell(library.InternalError("internal error; the server's log says more"))

    def _drain(self):
        """Reads for a while what a refused request goes on to send: its client would see a broken
        connection in place of the answer."""
        end = time.monotonic() + LAST_WORDS
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(LAST_WORDS)
            while time.monotonic() < end and self.connection.recv(1 << 16):
                pass

    def _tell(self, error):
        status, kind, code = status_of(error)
        made = protocol.error_of(str(error), kind, code)
        try:
            if self.is_streaming:
                self._event(made)
                self._chunk(b"")
            else:
                self._send(status, made)
        except (ConnectionError, TimeoutError):
            pass
        self.close_connection = self.close_connection or self.is_streaming

    def _check_host(self):
        name = self.headers.get("Host", "")
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        if self.server.is_local and name not in LOOPBACK:
            raise Refused(403, f"the host is '{name}', but this server is of this machine: "
                          f"{', '.join(LOOPBACK)}")

    def _send(self, status, body, kind=JSON):
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if status == 503:
            self.send_header("Retry-After", "1")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _health(self):
        self._send(200, {"status": "ok"})

    def _models(self):
        self._send(200, {"object": "list", "data": [
            {"id": self.server.name, "object": "model", "created": self.server.created,
             "owned_by": "heddle"}]})

    def _metrics(self):
        engine, lines = self.server.engine, []
        for name, value in engine.counts.read().items():
            full = f"heddle_{name}_total"
            lines += [f"# HELP {full} {Counts.NAMES[name]}.", f"# TYPE {full} counter",
                      f"{full} {value:.6g}" if isinstance(value, float) else f"{full} {value}"]
        for name, value, what in (("running", engine.running, "Texts that are computed"),
                                  ("waiting", engine.queued, "Texts in the queue"),
                                  ("slots", engine.slots, "Texts that are computed at most")):
            lines += [f"# HELP heddle_{name} {what} now.", f"# TYPE heddle_{name} gauge",
                      f"heddle_{name} {value}"]
        self._send(200, "\n".join(lines) + "\n", "text/plain; version=0.0.4; charset=utf-8")

    def _body(self):
        if self.headers.get_content_type() != JSON:
            raise Refused(415, f"the body is {self.headers.get_content_type()}, but must be {JSON}")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()) or "Transfer-Encoding" in self.headers:
            raise Refused(411, "the request must say its Content-Length")
        most = self.server.most_bytes
        if len(length) > 18 or int(length) > most:
            raise Refused(413, f"the body has {length} bytes, but {most} are allowed")
        data = self.rfile.read(int(length))
        if len(data) < int(length):
            raise Gone
        return protocol.parse(data)

    def _embed(self):
        self._send(200, embed.answer(self.server.engine, self._body(), self.server.name))

    def _complete(self, is_chat):
        request = protocol.request_of(self._body(), is_chat, self.server)
        tickets = self.server.engine.submit(request.prompts, request.settings)
        try:
            if request.is_stream:
                self._stream(request, tickets)
            else:
                for ticket in tickets:
                    for _ in self._events(ticket):
                        pass
                self._send(200, protocol.answer(self.server.engine.model, request, tickets))
        finally:
            for ticket in tickets:
                ticket.cancel()

    def _events(self, ticket):
        """Pieces of a text until its end, or an error; looks whether the client is still there."""
        while True:
            try:
                piece = ticket.events.get(timeout=POLL)
            except queue.Empty:
                self._check_client()
                continue
            if isinstance(piece, Exception):
                raise piece
            yield piece
            if piece.reason is not None:
                return

    def _check_client(self):
        readable, _, _ = select.select([self.connection], [], [], 0)
        if readable and not self.connection.recv(1, socket.MSG_PEEK):
            raise Gone

    def _stream(self, request, tickets):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.is_streaming = True
        model = self.server.engine.model
        for index, ticket in enumerate(tickets):
            if request.is_chat:
                self._event(protocol.first_chunk(request, index))
            for piece in self._events(ticket):
                if request.tools and piece.reason:
                    self._event(protocol.message_chunk(
                        model, request, index, ticket.text.result))
                elif not request.tools and (piece.text or piece.reason or piece.logprobs):
                    self._event(protocol.chunk(model, request, index, piece))
        if request.has_usage:
            self._event(protocol.last_chunk(request, tickets))
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _event(self, body):
        self._chunk(b"data: " + json.dumps(body).encode() + b"\n\n")

    def _chunk(self, data):
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


class Server(http.server.ThreadingHTTPServer):
    """The server of an engine. `connections` are those that may be open at once."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, engine, *, host="127.0.0.1", port=8000, name=None, template=None,
                 most_tokens=1024, most_bytes=1 << 20, connections=128, log=lambda text: None):
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)
        facts = engine.model.facts
        self.engine, self.log = engine, log
        self.embeds = isinstance(engine, embed.EmbedEngine)
        self.name, self.template = name or facts.name, template or facts.template
        self.most_tokens, self.most_bytes = most_tokens, most_bytes
        self.is_local = host in LOOPBACK
        self.created = int(time.time())
        self._places = threading.BoundedSemaphore(connections)
        self._lock, self._busy = threading.Condition(), 0

    def server_bind(self):
        """Binds; http.server would ask for the name of the address, which may take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]

    @contextlib.contextmanager
    def busy(self):
        """Counts a request that is answered."""
        with self._lock:
            self._busy += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1
                self._lock.notify_all()

    @property
    def url(self):
        host, port = self.server_address[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def process_request(self, request, client_address):
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request, client_address):
        """A connection that breaks is no error of the server's."""

    def end(self, seconds):
        """Takes no more requests, lets texts go on for so long, and ends."""
        self.engine.end(seconds)
        with self._lock:  # the last words are on their way
            self._lock.wait_for(lambda: not self._busy, LAST_WORDS)
        self.server_close()
