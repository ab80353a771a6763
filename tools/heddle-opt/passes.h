// passes: the passes that only heddle-opt has, for tests and for looking at things.
#ifndef HEDDLE_TOOLS_OPT_PASSES_H
#define HEDDLE_TOOLS_OPT_PASSES_H

namespace heddle::opt {

/// print-loop-nests: the key of each op.
void registerPrintLoopNests();
/// heddle-interpret: runs @main with the reference and prints the results.
void registerInterpret();
/// heddle-apply-card: a card on the groups that it is for.
void registerApplyCard();
/// heddle-ragged: rows with lengths of their own.
void registerMakeRagged();
/// heddle-plan and heddle-lower: the stages after partition; heddle-verify: what holds between two;
/// steps of the targets.
void registerStages();

} // namespace heddle::opt

#endif // HEDDLE_TOOLS_OPT_PASSES_H
