"""schemas: writes ONNX's schemas as the C++ table that Schemas.h declares.

    python compiler/onnx/schemas.py Schemas.inc

Run by the build, with the Python that has the onnx package whose onnx.proto is used.
"""

import sys

import onnx
from onnx.defs import OpSchema, get_all_schemas_with_history

KINDS = {name.lower(): number for name, number in onnx.TensorProto.DataType.items()}
OPTION = OpSchema.FormalParameterOption


def is_tensor(name):
    return name.startswith("tensor(")


def formal_row(formal, variables):
    mask = sum(1 << KINDS[name[7:-1]] for name in formal.types if is_tensor(name))
    is_variable = formal.type_str in variables and (
        formal.option != OPTION.Variadic or formal.is_homogeneous)
    variable = 1 + variables.index(formal.type_str) if is_variable else 0
    takes_others = "false" if all(map(is_tensor, formal.types)) else "true"
    return f'{{"{formal.name}", {mask}u, {variable}, {takes_others}}}'


def attribute_row(attribute):
    required = "true" if attribute.required else "false"
    return f'{{"{attribute.name}", {int(attribute.type.value)}, {required}}}'


def main(path):
    arrays, rows = [], []
    schemas = sorted(get_all_schemas_with_history(),
                     key=lambda s: (s.domain, s.name, s.since_version))
    for i, schema in enumerate(schemas):
        variables = [constraint.type_param_str for constraint in schema.type_constraints]
        formals = [formal_row(formal, variables) for formal in schema.inputs]
        results = [formal_row(formal, variables) for formal in schema.outputs]
        attributes = [attribute_row(schema.attributes[name]) for name in sorted(schema.attributes)]
        spans = []
        for kind, prefix, found in (("Formal", "f", formals), ("Formal", "r", results),
                                    ("SchemaAttribute", "a", attributes)):
            if found:
                arrays.append(f"const {kind} {prefix}{i}[] = {{{', '.join(found)}}};")
            spans.append(f"{prefix}{i}" if found else "{}")
        rows.append(f'    {{"{schema.domain}", "{schema.name}", {schema.since_version}, '
                    f"{schema.min_input}, {schema.max_input}, {schema.max_output}, "
                    f'{", ".join(spans)}}},')
    with open(path, "w", encoding="utf-8") as file:
        file.write("// Made by compiler/onnx/schemas.py.\n" + "\n".join(arrays) +
                   "\nconst Schema kSchemas[] = {\n" + "\n".join(rows) + "\n};\n")


if __name__ == "__main__":
    main(sys.argv[1])
