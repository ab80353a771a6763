"""`heddle serve`: a language model as a server with OpenAI's interface.

Exit codes are Heddle's: 0 done, 2 usage, 3 refused, 4 limit, 5 internal error.
SPDX-License-Identifier: Apache-2.0
"""

import argparse
import functools
import sys
import threading

from .. import library
from ..generate.embed import Embedder, is_embedder
from ..generate.model import add_options, open_model
from ..stops import exit_code
from .embed import EmbedEngine
from .engine import Engine
from .web import Server


def _from(least, kind=int):
    def read(text):
        number = kind(text)
        if not least <= number <= 1 << 40:
            raise ValueError
        return number

    read.__name__ = f"number from {least} on"
    return read


def parser_of(program):
    parser = argparse.ArgumentParser(
        prog=program, description="serve a language model by OpenAI's interface, /v1/completions "
        "and /v1/chat/completions, or /v1/embeddings; docs/guide/serve.md says more")
    parser.add_argument("model", metavar="MODEL", help="as of heddle generate: a folder, or a "
                        ".onnx or .gguf file")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: "
                        "127.0.0.1, which other machines do not reach)")
    parser.add_argument("--port", type=_from(0), default=8000, metavar="N",
                        help="0: any that is free (default: 8000)")
    parser.add_argument("--name", help="of the model in requests (default: that of its folder)")
    for flag, kind, default, text in (
            ("slots", _from(1), 4, "texts that are computed at once"),
            ("queue", _from(1), 64, "texts that may wait"),
            ("keep", _from(0), 4, "texts whose keys stay for those that begin as they did"),
            ("max-tokens", _from(1), 1024, "tokens of an answer"),
            ("max-body", _from(1), 1 << 20, "bytes of a request"),
            ("timeout", _from(0.1, float), 600.0, "seconds of an answer"),
            ("grace", _from(0.0, float), 10.0, "seconds that answers may go on after a signal")):
        parser.add_argument(f"--{flag}", type=kind, default=default, metavar="N",
                            help=f"{text}, at most (default: {default:g})")
    add_options(parser, _from(0))
    parser.add_argument("--quiet", action="store_true", help="tell nothing of requests")
    return parser


def _run(options, tell, stops):
    limits = options.slots, options.queue, options.timeout
    if is_embedder(options.model):
        if options.kv_cache_type:
            raise library.UsageError(f"--kv-cache-type {options.kv_cache_type}: '{options.model}' "
                                     "makes embeddings, for which no keys and values are kept")
        engine = EmbedEngine(Embedder(options.model, max_length=options.max_length,
                                      threads=options.threads), *limits)
    else:
        model = open_model(options.model, options.max_length, options.threads,
                           kv_cache_type=options.kv_cache_type)
        if model.has_words:
            model.words  # noqa: B018: read now: it may be of another model
        engine = Engine(model, *limits, options.keep)
    try:
        server = Server(engine, host=options.host, port=options.port, name=options.name,
                        most_tokens=options.max_tokens, most_bytes=options.max_body,
                        log=(lambda text: None) if options.quiet else tell)
    except (OSError, OverflowError) as error:
        engine.end()
        raise library.UsageError(f"cannot listen at {options.host}, port {options.port}: {error}"
                                 ) from error
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    try:
        tell(f"'{server.name}' is at {server.url}/v1")
        thread.start()
        while thread.is_alive():
            thread.join(1.0)
            stops.check()
    except KeyboardInterrupt:
        stops.ignore()
        tell("ends")
        if thread.is_alive():
            server.shutdown()
        server.end(options.grace)


def main(arguments=None, program="heddle serve"):
    options = parser_of(program).parse_args(sys.argv[1:] if arguments is None else arguments)
    return exit_code(program, functools.partial(_run, options))


if __name__ == "__main__":
    sys.exit(main())
