"""metadata: what a model file says of itself, read from the wire format without the package onnx.

Only the few fields that ModelMetadata has are read; weights are stepped over.
SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass, field

# Numbers of fields in onnx.proto.
PRODUCER, DOMAIN, VERSION, DOC, GRAPH, PROPERTIES = 2, 4, 5, 6, 7, 14
GRAPH_NAME, GRAPH_DOC = 2, 10
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class ModelMetadata:
    """As ONNX Runtime has it."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict = field(default_factory=dict)


def _varint(data, at):
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]  # an IndexError at the end
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a number of more than ten bytes")


def fields(data):
    """(number, value) of each field of a message: integers, or views of bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == VARINT:
            value, at = _varint(data, at)
        elif kind in (FIXED64, FIXED32):
            value, at = None, at + (8 if kind == FIXED64 else 4)
        elif kind == BYTES:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"a field of kind {kind}")
        if at > len(data):
            raise ValueError("a field beyond the end")
        yield key >> 3, value


def _texts(data, *numbers):
    found = dict.fromkeys(numbers, "")
    for number, value in fields(data):
        if number in found and isinstance(value, memoryview):
            found[number] = bytes(value).decode(errors="replace")
    return [found[number] for number in numbers]


def read(data):
    """The metadata of a model's bytes; a ValueError when they are no protobuf."""
    data, version, properties = memoryview(data), 0, {}
    try:
        producer, domain, doc = _texts(data, PRODUCER, DOMAIN, DOC)
        graph_name = graph_doc = ""
        for number, value in fields(data):
            if number == VERSION and isinstance(value, int):
                version = value - (1 << 64) if value >> 63 else value
            elif number == GRAPH and isinstance(value, memoryview):
                graph_name, graph_doc = _texts(value, GRAPH_NAME, GRAPH_DOC)
            elif number == PROPERTIES and isinstance(value, memoryview):
                key, text = _texts(value, 1, 2)
                properties[key] = text
    except IndexError:
        raise ValueError("it ends within a number") from None
    return ModelMetadata(producer, graph_name, domain, doc, graph_doc, version, properties)
