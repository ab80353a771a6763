// Passes.td: the passes that only heddle-opt has: stages of the pipeline by themselves, and passes that show
// or check things. docs/spec/passes.md is made from this file.
#ifndef HEDDLE_OPT_PASSES_TD
#define HEDDLE_OPT_PASSES_TD

include "mlir/Pass/PassBase.td"

class Opt_Pass<string name> : Pass<name, "::mlir::ModuleOp">;

/// A pass that reads cards or makes kernels: the dialects of `warehouse::registerDialects`.
class Opt_CardsPass<string name> : Opt_Pass<name> {
  let dependentDialects = [
    "::mlir::transform::TransformDialect", "::mlir::func::FuncDialect", "::heddle::graph::GraphDialect",
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::heddle::program::ProgramDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

/// A stage of the pipeline on a module that has a function @main.
class Opt_Stage<string name, list<Option> own = []> : Opt_CardsPass<name> {
  let options = [Option<"target", "target", "std::string", "\"x86-64-v3\"", "as of `heddle compile --target`">,
                 Option<"workers", "workers", "int64_t", "2", "threads of a run">] # own;
}

def VerifyPass : Opt_Pass<"heddle-verify"> {
  let summary = "verify a module as between two stages";
  let description = "Symbols are bound, and schedules can be read.";
}

def RaggedPass : Opt_Pass<"heddle-ragged"> {
  let summary = "give rows lengths of their own";
  let description = "As `heddle compile --ragged`.";
  let options = [Option<"rows", "rows", "std::string", "", "batch:seq=lengths">,
                 Option<"packs", "packs", "bool", "false", "results are packed">];
}

def PlanPass : Opt_Stage<"heddle-plan", [
    ListOption<"without", "without", "std::string", "layers to leave out">,
    Option<"memory", "memory", "int64_t", "0", "as of `heddle compile --memory`, in bytes">]> {
  let summary = "make groups, and choose a card with its knobs for each by the rules";
}

def RematerialisePass : Opt_Pass<"heddle-rematerialise"> {
  let summary = "let groups compute results again, so that few bytes are alive between them";
  let description = "The step of planning that saves memory, for groups as they are given.";
  let options = [Option<"bytes", "bytes", "int64_t", "0", "the most that may be alive, if that is possible">,
                 Option<"share", "share", "double", "0",
                        "of the time; instead, the fewest bytes for so much more">,
                 ListOption<"temporaries", "temporaries", "std::string",
                            "what groups need while they run: group=bytes">];
}

def ApplyCardPass : Opt_CardsPass<"heddle-apply-card"> {
  let summary = "apply a card to the groups that it is for";
  let description = "Knobs are the card's defaults. It is the proof inside of a card.";
  let options = [Option<"path", "card", "std::string", "", "the file of the card">];
}

def ShortResultsPass : Opt_Stage<"heddle-short-results"> {
  let summary = "store results as bf16 that nothing but products of bf16 reads";
}

def LowerPass : Opt_Stage<"heddle-lower"> {
  let summary = "write the kernels of all groups, and the program around them";
}

def InterpretPass : Opt_Pass<"heddle-interpret"> {
  let summary = "run @main with the reference interpreter and print its results";
  let options = [Option<"fill", "fill", "std::string", "\"iota\"",
                        "arguments: iota (0, 1, 2, ...) or random (-1 to 1, integers 0 to 9)">,
                 Option<"seed", "seed", "unsigned", "0", "seed of random arguments">,
                 ListOption<"sizes", "sizes", "std::string", "values of symbols: name=number">,
                 Option<"limitBytes", "limit-bytes", "int64_t", "reference::Limits().bytes",
                        "limit of live bytes; 16 GiB by default">,
                 Option<"limitTrips", "limit-trips", "int64_t", "reference::Limits().trips",
                        "limit of a loop's iterations; 10 million by default">];
}

def PrintLoopNestsPass : Opt_Pass<"print-loop-nests"> {
  let summary = "print the loop nest of each op";
  let options = [Option<"extents", "extents", "bool", "false", "print the sizes of loops">];
}

#endif // HEDDLE_OPT_PASSES_TD
