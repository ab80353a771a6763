// Control.td: control flow with regions, and the group that partition makes. Regions may use outer values.
#ifndef HEDDLE_GRAPH_CONTROL_TD
#define HEDDLE_GRAPH_CONTROL_TD

include "compiler/graph/Graph.td"

def Graph_YieldOp : Graph_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "end a region with its values";
  let arguments = (ins Variadic<Graph_Tensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

def Graph_IfOp : Graph_Op<"if", [SingleBlock, NoRegionArguments, Graph_BindsSizes, Graph_OutsideKernels]> {
  let summary = "the values of one of two regions";
  let description = "A size of a result in which the branches differ is a fresh symbol, which this op binds.";
  let constraints = ["I1: condition has one element of i1.",
                     "I2: both regions yield as many values as there are results, of their element types and ranks."];
  let arguments = (ins Graph_Tensor:$condition);
  let results = (outs Variadic<Graph_Tensor>:$results);
  let regions = (region SizedRegion<1>:$then_region, SizedRegion<1>:$else_region);
  let assemblyFormat = [{
    $condition attr-dict `:` functional-type($condition, $results) $then_region `else` $else_region
  }];
  let hasVerifier = 1;
}

def Graph_LoopOp : Graph_Op<"loop", [SingleBlock, Graph_BindsSizes, Graph_OutsideKernels]> {
  let summary = "repeat a region at most `trip_count` times while it says so";
  let description = [{
    Operands: trip_count (scalar i64), condition (scalar i1), initial values of the carried tensors. Region arguments:
    iteration (tensor<i64>), condition, carried values. It yields the condition, the carried values,
    then `scan_count` values of each iteration, which are stacked along a new first dimension. Results are the carried values, then
    the stacked ones. A size that changes from one iteration to the next, and the number
    of iterations, are fresh symbols, which this op binds.
  }];
  let constraints = ["L1: arguments, yielded values and results are as many as the carried and the stacked values say."];
  let arguments = (ins Graph_Tensor:$trip_count, Graph_Tensor:$condition,
                       Variadic<Graph_Tensor>:$inits, DefaultValuedAttr<I64Attr, "0">:$scan_count);
  let results = (outs Variadic<Graph_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results) $body";
  let hasVerifier = 1;
}

def Graph_ScanOp : Graph_Op<"scan", [SingleBlock, Graph_BindsSizes, Graph_OutsideKernels]> {
  let summary = "walk along the first dimension of tensors, carrying states";
  let description = [{
    Operands: `state_count` initial states, then the scanned tensors, all of one first size. Region
    arguments: states, then one slice of each scanned tensor (without the first dimension). It yields the states, then
    slices that are stacked along a new first dimension. Results are the final states, then the stacked tensors.
    `reverse_inputs`, `reverse_outputs` name (by number) those walked or written from the end.
  }];
  let constraints = ["SC1: arguments, yielded values and results are as many as the states and the scanned tensors say."];
  let arguments = (ins Variadic<Graph_Tensor>:$inputs, I64Attr:$state_count,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$reverse_inputs,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$reverse_outputs);
  let results = (outs Variadic<Graph_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results) $body";
  let hasVerifier = 1;
}

def Graph_GroupOp : Graph_Op<"group", [RecursiveMemoryEffects, SingleBlock, NoRegionArguments]> {
  let summary = "ops that share one kernel";
  let description = [{
    Made by partition. `name` identifies it in the plan; `mechanism` names the mechanism that it was made for: that of
    the loops that it is built around, or of the card that claimed it. The chooser adds `card`, `card_hash` and
    `schedule`, a dictionary of knobs and of the mechanism that carries the group out: the same, or another one that
    serves it. Groups of a block with one `region` are launched together. `device` is the number of the machine's device that
    runs it, 0 if there is none. `precision` is that of the factors of its products, f32 if there is none. What mechanisms hold a schedule to is in [cards](cards.md), *Mechanisms*.
  }];
  let constraints = ["GR1: the body ends with graph.yield of as many values as there are results, at least one, of their types.",
                     "GR2: no group is in a group.",
                     "GR3: the body has an op beside its yield, and makes the values that it yields.",
                     "GR4: `schedule` is a dictionary whose `mechanism` is text.",
                     "GR5: ops of the body are those of kernels: neither hosted nor control flow, nor what binds sizes for others.",
                     "GR6: `device` is the number of a device, from 0 on.",
                     "GR7: `precision` is bf16."];
  let arguments = (ins StrAttr:$name, OptionalAttr<StrAttr>:$mechanism, OptionalAttr<StrAttr>:$card,
                       OptionalAttr<StrAttr>:$card_hash, OptionalAttr<I64Attr>:$region,
                       OptionalAttr<I64Attr>:$device, OptionalAttr<StrAttr>:$precision,
                       OptionalAttr<DictionaryAttr>:$schedule);
  let results = (outs Variadic<Graph_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::StringRef":$name, "::mlir::StringRef":$mechanism)>];
  let extraClassDeclaration = [{
    /// "" where no card was chosen.
    ::mlir::StringRef cardName() { return getCard().value_or(""); }
    /// The name of the mechanism that the schedule asks for; "" before one was chosen.
    ::mlir::StringRef chosenMechanism();
    /// The number of the device, 0 for the machine itself.
    int64_t deviceNumber() { return static_cast<int64_t>(getDevice().value_or(0)); }
    /// The one precision that a group may have beside that of its operands.
    static constexpr ::llvm::StringLiteral kShort = "bf16", kExact = "f32";
    bool isShort() { return getPrecision() == kShort; }
    /// Forgets card, precision and schedule.
    void clearChoice();
  }];
  let assemblyFormat = "$name attr-dict `:` type($results) $body";
  let hasVerifier = 1;
}

#endif // HEDDLE_GRAPH_CONTROL_TD
