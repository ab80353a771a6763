"""heddle.serve: a language model as a server with OpenAI's interface.

`heddle serve` is the command (docs/guide/serve.md). In the order of a request: web.py reads it and
writes the answer, protocol.py knows the fields of both, and engine.py computes texts beside each
other; tools.py is of calls in chats, embed.py of models that give vectors. It is Python's own
http.server, a thread a connection, which mostly waits: compiled code runs without Python's lock.
SPDX-License-Identifier: Apache-2.0
"""

from .embed import EmbedEngine
from .engine import Engine
from .web import Server

__all__ = ["EmbedEngine", "Engine", "Server"]
