// Graph.td: the graph dialect, its encoding of named sizes, and the bases of its ops.
//
// One op is one primitive of mathematics on whole tensors with value semantics. Composite ONNX ops
// are spelt with these; what they fuse to is the partitioner's business, not the dialect's.
#ifndef HEDDLE_GRAPH_TD
#define HEDDLE_GRAPH_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let cppNamespace = "::heddle::graph";
  let summary = "primitive tensor ops with value semantics and named sizes";
  let description = [{
    Tensors are ranked. A size that is not constant has a name, in the encoding of the type:
    `tensor<?x3x?xf32, #graph.dims<"batch", 3, "2*w + 1">>`. Equal texts are equal sizes; ops take no tensor with a
    dynamic size that has no name (TN1). A signless
    integer is signed, `ui8` is unsigned, `i1` is a truth value. Elementwise ops take operands of one
    shape; `graph.broadcast` makes it. Locations carry the name of the ONNX node.

    Some elements are no numbers to compute with, and only move, compare equal and become others: `!graph.float4`,
    `!graph.scale8` and `!graph.string`. Each is kept as an integer: in a constant as `#graph.bits`, in memory, in kernels
    and in the interpreter as `graph::storageOf` says.

    What holds after each stage, beside the constraints of the ops; tests and debug builds hold each stage to it
    (`compiler/pipeline/Verify.h`), all builds the two ends of lowering:

    | after | holds |
    |---|---|
    | import | one `@main` whose arguments and results are ranked tensors with names for all dynamic sizes (FN1 to FN3); an argument, or an op before, binds each symbol that an op names (SY1); no groups |
    | simplify | the same; constants are folded up to the limit, and images of convolutions and pools have the layout that the module's attribute `graph.layouts` says |
    | partition | each op that a kernel computes is in a group, several times only where it is cheap; views, constants, hosted ops and control flow are in none; each group names a mechanism that serves its ops (GR1 to GR5, SK1) |
    | plan | a group has a card and a schedule, or its mechanism finds its numbers (SK1 to SK4); groups of one `region` are launched together |
    | lower | no op of this dialect: kernels and the program around them in [program](program.md) |
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    /// Name of the unit attribute-free string attribute that keeps a symbol fresh; see freshSymbol.
    static constexpr llvm::StringLiteral kSymbolCounter = "graph.next_symbol";
  }];
}

def Graph_DimsAttr : AttrDef<Graph_Dialect, "Dims",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "dims";
  let summary = "sizes of a tensor, constant or as expressions over named symbols";
  let description = [{
    One canonical text a dimension, as `Dim::str` prints it: `768`, `batch`, `2*h + 1`,
    `(h + 1) floordiv 2`. As the encoding of a tensor type it names the dynamic sizes; as an
    attribute of an op it gives symbolic offsets or paddings.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$sizes);
  let hasCustomAssemblyFormat = 1;
}

def Graph_StoredAttr : AttrDef<Graph_Dialect, "Stored", [ElementsAttrInterface]> {
  let mnemonic = "stored";
  let summary = "a matrix of f32 that is kept in fewer bits";
  let description = [{
    Of type `[1..., K, N]`; element (k, n) is `(codes[k, n] - zeros[k / block, n]) * scales[k / block, n]`. Codes are integers of
    8 or 4 bits or floats of 16, `[K, N]`; scales and zeros, either of which may be missing, are f32 `[K / block, N]`.
  }];
  let parameters = (ins AttributeSelfTypeParameter<"", "::mlir::ShapedType">:$type, "::mlir::ElementsAttr":$codes,
    OptionalParameter<"::mlir::ElementsAttr">:$scales, OptionalParameter<"::mlir::ElementsAttr">:$zeros);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRows() const { return getCodes().getShapedType().getDimSize(0); }
    int64_t getColumns() const { return getCodes().getShapedType().getDimSize(1); }
    /// Rows that share a scale and a zero; all where there are none.
    int64_t getBlock() const {
      int64_t rows = getRows();
      for (::mlir::ElementsAttr part : {getScales(), getZeros()})
        if (part)
          return rows / part.getShapedType().getDimSize(0);
      return rows;
    }
  }];
}

def Graph_BitsAttr : AttrDef<Graph_Dialect, "Bits", [ElementsAttrInterface]> {
  let mnemonic = "bits";
  let summary = "elements that are no numbers, by the integers that they are kept as";
  let description = [{
    `#graph.bits<dense<[0, 2]> : tensor<2xi64>> : tensor<2x!graph.string>`. The codes have the shape of the constant and the
    storage of its elements.
  }];
  let parameters = (ins AttributeSelfTypeParameter<"", "::mlir::ShapedType">:$type, "::mlir::ElementsAttr":$codes);
  let assemblyFormat = "`<` $codes `>`";
  let genVerifyDecl = 1;
}

/// An element that is no number to compute with; graph::storageOf says which integer it is kept as.
class Graph_BitsType<string name, string word> : TypeDef<Graph_Dialect, name> {
  let mnemonic = word;
}
def Graph_Float4Type : Graph_BitsType<"Float4", "float4"> {
  let summary = "float4e2m1, kept as ui4";
  let description = [{ Codes 0 to 7 are 0, 0.5, 1, 1.5, 2, 3, 4 and 6; those from 8 on their negatives. }];
}
def Graph_Scale8Type : Graph_BitsType<"Scale8", "scale8"> {
  let summary = "float8e8m0, a power of two, kept as ui8";
  let description = [{ Code c is 2^(c - 127), and 255 is NaN. }];
}
def Graph_StringType : Graph_BitsType<"String", "string"> {
  let summary = "text, kept as i64, its number in the table of strings";
  let description = [{
    The table begins with the module's attribute `graph.strings`; texts that come in or are made while running follow.
    Equal texts have one number.
  }];
}

def Graph_ListType : TypeDef<Graph_Dialect, "List"> {
  let mnemonic = "list";
  let summary = "handle of a list of tensors, the element type of a scalar tensor";
  let description = [{
    `kind`: "sequence"; "optional", a list of at most one tensor that may be absent; or "optional_sequence", a sequence that may be
    absent; or "any_rank", a list of one tensor, which callers of the model see as that tensor. `element` is the tensors' element type and `rank` their rank; -1 where there is no tensor yet,
    -2 where they may differ. It is a promise that ops hold against the tensors that they take out.
  }];
  let parameters = (ins StringRefParameter<>:$kind, "::mlir::Type":$element, "int64_t":$rank);
  let assemblyFormat = "`<` $kind `,` $element `,` $rank `>`";
}

def Graph_Tensor : Type<
    And<[AnyRankedTensor.predicate, CPred<"::heddle::graph::hasNamedSizes($_self)">]>,
    "ranked tensor whose dynamic sizes have names, as #graph.dims gives them (TN1)">;

/// A property of ops; Graph.h says what each is.
class Graph_Trait<string name> : NativeOpTrait<name> { let cppNamespace = "::heddle::graph"; }
def Graph_BindsSizes : Graph_Trait<"BindsSizes">;
def Graph_OutsideKernels : Graph_Trait<"OutsideKernels">;
def Graph_Standalone : Graph_Trait<"Standalone">;
def Graph_Reorderable : Graph_Trait<"Reorderable">;
def Graph_KeepsNonNegative : Graph_Trait<"KeepsNonNegative">;

/// `constraints`: what the verifier or the shape rule holds an op to, each with the label that its
/// messages begin with. docs/spec/graph.md lists them.
class Graph_Op<string mnemonic, list<Trait> traits = []> : Op<Graph_Dialect, mnemonic, traits> {
  list<string> constraints = [];
}

// Constraints that several ops have.
defvar Graph_OneShape = "E1: operands and result have one shape.";
defvar Graph_AxisOfX = "AX1: `axis` is a dimension of x.";
defvar Graph_AxesOfX = "AX1: each of `axes` is a dimension of x.";
defvar Graph_AxisOfResult = "AX1: `axis` is a dimension of the result.";

/// An op without side effects whose result types follow from its operands and attributes.
class Graph_InferredOp<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>],
                                     traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

/// An op without side effects whose result type says what it makes.
class Graph_TypedOp<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat([Pure], traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

/// An op that binds sizes, which others may use though nobody uses the tensor itself: not Pure, so
/// that it stays until simplify sees that no type names them.
class Graph_BindingOp<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat([Graph_BindsSizes], traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // HEDDLE_GRAPH_TD
