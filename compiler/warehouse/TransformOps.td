// TransformOps.td: the mechanisms that a card may call, as ops of the transform dialect.
//
// Strategy is data, mechanism is code: an op here rewrites nothing. It writes the attribute
// `schedule = {mechanism = "contraction", m = 8, ...}` onto its graph.group, which lower carries out.
#ifndef HEDDLE_WAREHOUSE_TRANSFORMOPS_TD
#define HEDDLE_WAREHOUSE_TRANSFORMOPS_TD

include "mlir/Dialect/Transform/IR/TransformDialect.td"
include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpBase.td"

/// Knobs are pairs of a name and a parameter, `m %m n %n`, in any order; each may be left out, which leaves the
/// value to lower. `row` is the mechanism's in compiler/mechanism, which says what knobs there are.
class Heddle_Mechanism<string mnemonic, string row>
    : Op<Transform_Dialect, "heddle." # mnemonic,
         [DeclareOpInterfaceMethods<TransformOpInterface>,
          DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let arguments = (ins TransformHandleTypeInterface:$group,
                       Variadic<TransformParamTypeInterface>:$knobs, StrArrayAttr:$names);
  let assemblyFormat = "$group custom<Knobs>($knobs, type($knobs), $names) attr-dict `:` type($group)";
  let hasVerifier = 1;
  let extraClassDeclaration = "const ::heddle::mechanism::Mechanism *getMechanism() { return "
                              "&::heddle::mechanism::" # row # "; }";
  let extraClassDefinition = [{
    ::mlir::DiagnosedSilenceableFailure
    $cppClass::apply(::mlir::transform::TransformRewriter &, ::mlir::transform::TransformResults &,
                     ::mlir::transform::TransformState &state) {
      return writeSchedule(*this, getMechanism(), getGroup(), getKnobs(), getNames(), state);
    }
    void $cppClass::getEffects(
        ::llvm::SmallVectorImpl<::mlir::MemoryEffects::EffectInstance> &effects) {
      ::mlir::transform::onlyReadsHandle(getOperation()->getOpOperands(), effects);
      ::mlir::transform::modifiesPayload(effects);
    }
    ::llvm::LogicalResult $cppClass::verify() {
      return verifyKnobs<::llvm::StringLiteral>(*this, getMechanism()->allKnobs(), getKnobs(), getNames());
    }
  }];
}

def Heddle_ContractOp : Heddle_Mechanism<"contract", "kContraction"> {
  let summary = "carry the group out as a product in register tiles";
  let description = [{
    `m` rows by `n` columns of a register tile, `panels` of columns and `tiles` of rows in one task.
  }];
}

def Heddle_WinogradOp : Heddle_Mechanism<"winograd", "kWinograd"> {
  let summary = "carry the group out as products of transformed tiles of images";
  let description = [{
    A 3x3 convolution of stride 1 in tiles of `tile` x `tile` pixels (2 or 4). `m` tiles by `n` output channels
    of a register tile, at most `tiles` of one task. Filters are transformed by each task where `late` is 1,
    else when the model is compiled.
  }];
}

def Heddle_NarrowOp : Heddle_Mechanism<"narrow", "kNarrowConv"> {
  let summary = "carry the group out as a convolution of few filters, the reduction in lanes";
  let description = [{
    `m` pixels by all filters of a register tile, `tiles` of them in one task.
  }];
}

def Heddle_FilterGradientOp : Heddle_Mechanism<"filter_gradient", "kFilterGradient"> {
  let summary = "carry the group out as sums of products over the positions of two images";
  let description = [{
    The gradient of a convolution's filters: register tiles of `m` channels of the image by `n` filters. Channels
    are divided among `chunks`, the rows of the images among `parts`, whose sums are added up at the end. Where
    `strips` is 1, a task copies what it meets of the image into strips of `m` channels, and where `panels` is 1,
    what it meets of the gradient into panels of `n` filters. Where `turned` is 1 and the window has one place,
    tiles are of `m` filters by `n` channels.
  }];
}

def Heddle_StitchOp : Heddle_Mechanism<"stitch", "kStitch"> {
  let summary = "carry the group out as a product and, while its rows are in the cache, their reductions";
  let description = [{
    `m` rows by `n` columns of a register tile, `panels` of columns and `rows` at a time.
  }];
}

def Heddle_AttentionOp : Heddle_Mechanism<"attention", "kAttention"> {
  let summary = "carry the group out as two products with a softmax between them";
  let description = [{
    Strips of `m` rows by all keys; `n` columns of a register tile; `rows` of one task.
  }];
}

def Heddle_AttentionGradientOp : Heddle_Mechanism<"attention_gradient", "kAttentionGradient"> {
  let summary = "carry the group out as products that make scores, their rows, and products that take these";
  let description = [{
    Strips of `m` rows or keys; `n` columns of a register tile; `rows` of queries at a time.
  }];
}

def Heddle_WindowOp : Heddle_Mechanism<"window", "kWindow"> {
  let summary = "carry the group out as a window with channels in lanes";
  let description = "`pixels` of a row are computed together.";
}

def Heddle_RowsOp : Heddle_Mechanism<"rows", "kRows"> {
  let summary = "carry the group out a row at a time";
  let description = "`rows` of one task.";
}

def Heddle_PointwiseOp : Heddle_Mechanism<"pointwise", "kPointwise"> {
  let summary = "carry the group out an output element at a time, the last dimension in lanes";
  let description = "`chunk` elements of one task.";
}

def Heddle_PlaceOp : Heddle_Mechanism<"place", "kPlace"> {
  let summary = "let the kernels that make a concat's operands write them where they belong";
  let description = [{
    Operands whose kernels cannot, or that others read too, are copied; `chunk` elements of one task.
  }];
}

def Heddle_SerialOp : Heddle_Mechanism<"serial", "kSerial"> {
  let summary = "carry a scatter out, the updates of each element in order";
}

def Heddle_CallOp : Op<Transform_Dialect, "heddle.call",
    [DeclareOpInterfaceMethods<TransformOpInterface>,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "have a function of an existing library carry the group out";
  let description = [{
    `"onednn.matmul"`, `"onednn.convolution"` or `"onednn.layer_norm"`. What of the group the function
    cannot do is computed after it, element by element.
  }];
  let arguments = (ins StrAttr:$function, TransformHandleTypeInterface:$group);
  let assemblyFormat = "$function $group attr-dict `:` type($group)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    const ::heddle::mechanism::Mechanism *getMechanism() {
      return ::heddle::mechanism::find(getFunction());
    }
  }];
}

def Heddle_KernelOp : Op<Transform_Dialect, "heddle.kernel",
    [DeclareOpInterfaceMethods<TransformOpInterface>,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "have a kernel that is written by hand carry the group out";
  let description = [{
    `"product"` or `"rows"` says which holes the kernel has. Its source is a file of C or C++ beside the
    card, else `@kernel` and `@tasks` of the card. Knobs are numbers in the source, by their names here.
  }];
  let arguments = (ins StrAttr:$frame, TransformHandleTypeInterface:$group, OptionalAttr<StrAttr>:$source,
                       Variadic<TransformParamTypeInterface>:$knobs, StrArrayAttr:$names);
  let assemblyFormat = [{
    $frame $group (`from` $source^)? custom<Knobs>($knobs, type($knobs), $names) attr-dict `:` type($group)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    const ::heddle::mechanism::Mechanism *getMechanism() {
      return ::heddle::mechanism::find("kernel." + getFrame().str());
    }
  }];
}

#endif // HEDDLE_WAREHOUSE_TRANSFORMOPS_TD
