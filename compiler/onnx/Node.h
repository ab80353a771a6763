// Node: one ONNX node while it is imported: its attributes, operands and results, and the ops it
// makes.
#ifndef HEDDLE_ONNX_NODE_H
#define HEDDLE_ONNX_NODE_H

#include "compiler/onnx/Emitter.h"

// Types of onnx.pb.h, which few files need and which is slow to read.
namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
class TensorProto;
} // namespace onnx

namespace heddle::onnx {

namespace proto = ::onnx;
class Reader;
struct Scope;

/// The keys of maps whose values are the columns of a tensor.
struct Labels {
  llvm::SmallVector<mlir::Attribute> values; // StringAttr or IntegerAttr
  std::string encoding = "map";
};
using LabelsPtr = std::shared_ptr<const Labels>;

class Node : public Emitter {
public:
  Node(Reader &reader, Scope &scope, const proto::NodeProto &message, int64_t opset,
       mlir::Location location);

  llvm::StringRef op() const;

  // Operands and results.
  size_t inputs() const { return operands.size(); }
  bool has(size_t i) const { return i < operands.size() && operands[i]; }
  Value in(size_t i) const;                                                 // refused when missing
  Value optional(size_t i) const { return has(i) ? operands[i] : Value(); } // null when missing
  /// Operand i, refused if it is no vector; messages call it `name`.
  Value vector(size_t i, llvm::StringRef name) const;
  size_t outputs() const;
  bool wants(size_t i) const;
  void set(Value value) { set(0, value); }
  void set(size_t i, Value value);

  // Attributes; a wrong type is refused, and so are counts and places beyond 2^31.
  const proto::AttributeProto *attribute(llvm::StringRef name) const;
  bool hasAttribute(llvm::StringRef name) const { return attribute(name) != nullptr; }
  int64_t getInt(llvm::StringRef name, int64_t otherwise) const;
  double getFloat(llvm::StringRef name, double otherwise) const;
  std::string getText(llvm::StringRef name, llvm::StringRef otherwise) const;
  std::optional<Ints> getInts(llvm::StringRef name) const;
  Ints getInts(llvm::StringRef name, Ints otherwise) const;
  std::vector<double> getFloats(llvm::StringRef name) const;
  std::vector<std::string> getTexts(llvm::StringRef name) const;
  const proto::GraphProto &getGraph(llvm::StringRef name) const;
  /// The element type that an attribute with a TensorProto::DataType names.
  Type getElement(llvm::StringRef name, Type otherwise) const;

  /// A constant vector of an attribute that is a list of numbers, strings, or a tensor; null
  /// without.
  Value constantFrom(llvm::StringRef name);
  Value stringConstant(llvm::ArrayRef<std::string> texts); // 1-D
  /// The rank that the model declares for output i, or for the tensors of a list.
  std::optional<int64_t> declaredRank(size_t i) const;

  /// An axis counted from 0; refused when outside of [-rank, rank).
  int64_t axis(int64_t value, int64_t rank) const;
  Ints axes(Ints values, int64_t rank) const;
  /// Integers from operand `i` where it is given, else from the attribute; those of an operand must
  /// be known at compile time.
  std::optional<Ints> intsFrom(size_t i, llvm::StringRef name) const;
  /// Size expressions that operand i holds, if they follow from shapes alone.
  std::optional<DimVector> sizesFrom(size_t i) const;
  /// Whether operand i is given, and not known when the model is compiled.
  bool isLate(size_t i) const { return has(i) && !shapeValue(operands[i]); }
  /// Numbers that operand i holds, when it is a constant of a floating-point type.
  std::optional<std::vector<double>> floatsFrom(size_t i) const;
  /// Operand i, aligned as `axis` of opsets below 7 says.
  Value legacyAligned(size_t i) const;

  Reader &reader;
  Scope &scope;
  const proto::NodeProto &message;
  const int64_t opset; // version of the node's domain
  std::vector<Value> operands, results;
  std::vector<LabelsPtr> resultLabels;
  LabelsPtr labels(size_t i) const;
};

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_NODE_H
