// Forest: an ensemble of decision trees as flat lists, and the walk through all trees at once.
#ifndef HEDDLE_ONNX_FOREST_H
#define HEDDLE_ONNX_FOREST_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// How a node chooses its branch; numbered as TreeEnsemble of ai.onnx.ml 5 does.
enum class Branch { LessEqual, Less, GreaterEqual, Greater, Equal, NotEqual, Member };
enum class Aggregate { Average, Sum, Min, Max };

struct Forest {
  Ints features, whenTrue, whenFalse, roots; // children and roots are positions in the lists
  std::vector<Branch> branches;              // arbitrary for leaves
  std::vector<double> thresholds;
  std::vector<std::vector<double>> members; // sets of nodes that ask for one, else empty
  std::vector<bool> tracksMissing;          // whether what is not a number goes the true way
  int64_t height = 0;
  // Weights of the leaves: [nodes, targets].
  int64_t targets = 1;
  std::vector<double> weights;
  std::vector<bool> hasWeight;

  size_t size() const { return features.size(); }
  bool isLeaf(int64_t place) const { return whenTrue[place] == place; }
  /// Sets the children of an inner node; refuses a node that is its own child.
  void setChildren(int64_t place, int64_t ifTrue, int64_t ifFalse);
  /// Appends a node; a leaf is its own child.
  int64_t addNode(int64_t feature, Branch branch, double threshold, bool tracks);
  /// A weight for each node and target.
  void makeRoom();
  void addWeight(int64_t node, int64_t target, double weight);
  /// Checks the features (of -1: any number) and that roots reach every node, none through itself;
  /// finds the height.
  void finish(int64_t featureCount);
};

/// The weights of the leaves that rows of x reach, put together: [n, targets].
Value evaluate(Node &n, const Forest &forest, Value x, Aggregate aggregate);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_FOREST_H
