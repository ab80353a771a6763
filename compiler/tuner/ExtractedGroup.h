// ExtractedGroup: a group cut out of its model, with numbers to run it on.
#ifndef HEDDLE_TUNER_EXTRACTEDGROUP_H
#define HEDDLE_TUNER_EXTRACTEDGROUP_H

#include "compiler/graph/edit/CutOut.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/plan/Chooser.h"
#include "compiler/trial/Program.h"

namespace heddle::tuner {

/// Size of a symbol without a given or typical size.
constexpr int64_t kNominalSize = 32;

/// Results that candidates of bf16 have to have (trial/Rounded.h).
struct RoundedResults {
  reference::Tensors results;
  double slack = 0;
  std::string problem; // why it is not known; "" if it is
};

class ExtractedGroup {
public:
  /// `sizes`: of symbols by their names in the model. An error for a group that cannot run alone,
  /// such as one of strings.
  static llvm::Expected<std::unique_ptr<ExtractedGroup>>
  make(graph::GroupOp group, const trial::Sizes &sizes, uint64_t seed);

  /// Compiles in the model's context, with the model's own constants.
  llvm::Expected<std::unique_ptr<trial::Program>> compile(const plan::Choice &choice,
                                                          const CompileOptions &options);

  /// Computed once, in a process of its own that may take so long.
  const RoundedResults &rounded(const CompileOptions &options, double seconds);

  const reference::Tensors &inputs() const { return numbers; }
  const llvm::SmallVector<mlir::Type> &resultElements() const { return elements; }

private:
  explicit ExtractedGroup(graph::GroupOp group);
  void addSizes(const trial::Sizes &given);
  void makeInputsPlain();

  graph::CutOut cut;
  trial::Sizes sizes;
  reference::Tensors numbers;
  llvm::SmallVector<mlir::Type> elements;
  std::optional<RoundedResults> known;
};

/// Says in attributes of integer arguments which numbers they may be: indices that are below all
/// that they index at these sizes.
void addRanges(mlir::func::FuncOp main, const trial::Sizes &sizes);

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_EXTRACTEDGROUP_H
