// case: a model of a few ops, the numbers to feed it, and how close its results must come.
//
// Every case is compiled and run at each of its sizes, and compared with the interpreter on the
// same graph before simplification. Inputs are arguments, so that nothing folds away. A model with
// graph.row_lengths is interpreted once for each row, see rows.cpp.
#ifndef HEDDLE_TEST_OPS_CASE_H
#define HEDDLE_TEST_OPS_CASE_H

#include "compiler/graph/Graph.h"
#include "compiler/reference/Tensor.h"

#include <random>

namespace heddle::ops {

using llvm::ArrayRef;
using llvm::StringRef;
using mlir::Value;
using Values = llvm::SmallVector<Value>;

/// The numbers of an input.
struct Fill {
  enum Kind { Any, Finite, Range, Index, Length } kind = Finite;
  double low = -2, high = 2;
  std::string size;     // Index: -size to size - 1; Length: 0 to size
  bool isShort = false; // f32 that are numbers of bf16

  /// Finite numbers with NaN, infinities, -0 and the type's extremes among them.
  static Fill any() { return {Any, -2, 2, ""}; }
  /// Numbers that rounding to bf16 leaves as they are, of both kinds.
  static Fill exact() { return {Finite, -2, 2, "", true}; }
  static Fill exactAny() { return {Any, -2, 2, "", true}; }
  /// Numbers in [low, high]; whole ones for integers.
  static Fill range(double low, double high) { return {Range, low, high, ""}; }
  static Fill index(const llvm::Twine &size) { return {Index, 0, 0, size.str()}; }
  static Fill length(const llvm::Twine &size) { return {Length, 0, 0, size.str()}; }
};

struct Tolerance {
  double relative = 0, absolute = 0;
  static Tolerance exact() { return {}; }
  /// A few units in the last place of the type, for values of about 1.
  static Tolerance close(mlir::Type element, double scale = 1);
};

/// Values of size symbols, one for each run.
using Sizes = std::map<std::string, int64_t>;

class Model {
public:
  explicit Model(mlir::MLIRContext &context, bool takesWeights = false);

  /// An argument of @main. A type is "f32[n, 7, 2*n + 1]".
  Value input(StringRef type, Fill fill = Fill());
  /// A constant of random numbers.
  Value constant(StringRef type, Fill fill = Fill());
  Value constant(mlir::ElementsAttr value);
  /// A constant of random numbers, or an input where the model takes its weights.
  Value weight(StringRef type, Fill fill = Fill());
  Value scalar(StringRef element, double number);
  Value integers(ArrayRef<int64_t> numbers);
  /// `name` without the dialect; attributes as MLIR text. `type` where the op does not infer it.
  Value op(StringRef name, ArrayRef<Value> operands, StringRef attributes = "",
           StringRef type = "");
  Values ops(StringRef name, ArrayRef<Value> operands, StringRef attributes,
             ArrayRef<std::string> types);
  /// `like` decides the shape; the last dimensions of x are aligned with it.
  Value broadcastTo(Value x, Value like);
  void output(Value value); // exact for integers, else close
  void output(Value value, Tolerance tolerance);
  /// The whole module instead, with one fill an argument; outputs have default tolerances.
  void text(StringRef module, ArrayRef<Fill> fills);
  void finish();

  mlir::Type element(StringRef name);
  mlir::RankedTensorType type(StringRef text);

  mlir::MLIRContext &context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<Fill> fills;
  std::vector<Tolerance> tolerances;
  std::mt19937 random;

private:
  bool takesWeights;
  mlir::Block *block = nullptr;
  Values results;
};

struct Case {
  std::string name; // "family/what"
  std::function<void(Model &)> build;
  std::vector<Sizes> runs;
  std::map<std::string, int64_t> groups = {};     // how many of some kinds it becomes
  std::string card = "";                          // card that its convolutions have to take
  std::map<std::string, int64_t> knobs = {};      // knobs of that card
  bool takesWeights = false;                      // as inputs, known only at run time
  std::string versions = "";                      // versions of its groups, as in a plan
  std::map<std::string, int64_t> thresholds = {}; // as a plan has them
  bool inPlace = false;                           // results take the place of inputs of their types
  bool isShort = false;                           // factors of products are rounded to bf16
  bool needsMatrices = false;                     // for that; without such registers they are not
};
using Cases = std::vector<Case>;
/// Whether groups are for a device beside the host, however small they are.
inline bool isForDevice() {
  const char *target = std::getenv("HEDDLE_OPS_TARGET");
  return target && llvm::StringRef(target).contains("cuda");
}

/// All cases, and of each op the one of the fewest ops.
Cases allCases();
Cases smallestCases();

/// The case, and the same where the model takes its weights.
void addBoth(Cases &cases, Case one);

/// The results of the module, which the interpreter runs as a whole.
llvm::Expected<reference::Tensors> runOracle(mlir::ModuleOp module, uint64_t seed,
                                             const reference::Tensors &inputs);

reference::Tensor randomTensor(mlir::Type element, ArrayRef<int64_t> shape, const Fill &fill,
                               const Sizes &sizes, std::mt19937 &random);

// One family a file.
void addElementwise(Cases &cases);
void addCasts(Cases &cases);
void addMovement(Cases &cases);
void addIndexed(Cases &cases);
void addReductions(Cases &cases);
void addProducts(Cases &cases);
void addCut(Cases &cases);
void addIntegers(Cases &cases);
void addWindows(Cases &cases);
void addWinograd(Cases &cases);
void addNarrow(Cases &cases);
void addDepthwise(Cases &cases);
void addResize(Cases &cases);
void addControl(Cases &cases);
void addHosted(Cases &cases);
void addRoutines(Cases &cases);
void addGradients(Cases &cases);
void addGroups(Cases &cases);
void addAttention(Cases &cases);
void addMasks(Cases &cases);
void addRandom(Cases &cases);
void addRows(Cases &cases);
void addShort(Cases &cases);

} // namespace heddle::ops

#endif // HEDDLE_TEST_OPS_CASE_H
