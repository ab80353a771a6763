// Reader: walks the nodes of graphs, subgraphs and functions, and collects every problem on the
// way.
//
// A node that is refused leaves its results without value ("poisoned"); nodes that need them are
// then passed over in silence, so that each problem is told once and all are told together.
#ifndef HEDDLE_ONNX_READER_H
#define HEDDLE_ONNX_READER_H

#include "compiler/onnx/ModelFile.h"
#include "compiler/onnx/Tensor.h"
#include "compiler/onnx/ranks/Versions.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"

#include <set>

namespace heddle::onnx {

using Opsets = std::map<std::string, int64_t>;
using AttributeMap = std::map<std::string, const proto::AttributeProto *>;

/// Names of one graph or function body.
struct Scope {
  const Scope *parent = nullptr; // the graph around a subgraph
  const Opsets *opsets = nullptr;
  const AttributeMap *attributes = nullptr; // the function call's, if inside of one
  int64_t depth = 0;
  llvm::StringMap<Value> values;      // null: the node that makes it was refused
  llvm::StringSet<> absent;           // inputs that a call of the function leaves out
  llvm::StringMap<std::string> later; // results of nodes not yet read: the node's name
  llvm::StringMap<const proto::TypeProto *> declared; // declared types of the model's values
};

/// An input of the model that is a map: its keys, which stand for it, and their values.
struct MapInput {
  Value keys, values;
};

/// An input that a run extends where it lies. Numbers of int8 have scales, one for each vector
/// along their last axis; others have none.
struct Buffer {
  Value numbers, scales;
};

/// Thrown when something below was refused and already told.
struct Poisoned {};
/// Thrown when a limit ends the whole import.
struct Stopped {};
/// Thrown at the first problem of a version that may turn out to be none (Versions.cpp).
struct NoVersion {};

class Problems {
public:
  explicit Problems(std::string file) : file(std::move(file)) {}
  void add(llvm::StringRef where, const Refusal &refusal);
  bool any() const { return !lines.empty(); }
  size_t count() const { return total; }
  /// The first line that `before` has not.
  llvm::StringRef firstAfter(const Problems &before) const {
    return lines.size() > before.lines.size() ? llvm::StringRef(lines[before.lines.size()]) : "";
  }
  llvm::Error take() const;

private:
  std::string file;
  std::vector<std::string> lines;
  size_t total = 0;
  ErrorCode code = ErrorCode::Refused;
};

class Reader {
public:
  Reader(mlir::OpBuilder &builder, ModelFile &file, const ImportOptions &options,
         Problems &problems);

  /// Checks the versions that a model or function imports.
  Opsets readOpsets(const google::protobuf::RepeatedPtrField<proto::OperatorSetIdProto> &imports);
  void readInitializers(const proto::GraphProto &graph, Scope &scope);
  void readNodes(const google::protobuf::RepeatedPtrField<proto::NodeProto> &nodes, Scope &scope);
  using Step = std::function<void(Scope &)>;
  /// The steps of readNodes, one for each node.
  std::vector<Step> stepsOf(const google::protobuf::RepeatedPtrField<proto::NodeProto> &nodes,
                            Scope &scope);
  /// The values of a subgraph, built at the builder's place. Throws Poisoned.
  llvm::SmallVector<Value> readSubgraph(const proto::GraphProto &graph, const Scope &parent,
                                        llvm::ArrayRef<Value> inputs);
  /// The value of a name, looked up outward. Throws Refusal or Poisoned.
  Value lookup(llvm::StringRef name, const Scope &scope);
  void define(llvm::StringRef name, Value value, Scope &scope);

  // Versions of the main graph (Versions.cpp).
  struct Outputs {
    llvm::SmallVector<Value> values;
    llvm::SmallVector<mlir::Attribute> attributes;
  };
  using Finish = std::function<Outputs(Scope &)>;
  /// Takes the steps of the main graph, and then what it gives.
  Outputs readSteps(llvm::ArrayRef<Step> steps, Scope &scope, const Finish &finish);
  std::optional<bool> answered(Emitter &e, const Question &question);
  /// The answer in the version that is read. If there can be no versions it is `likely`, which is
  /// checked at run time, or refused.
  bool ask(Emitter &e, const Question &question, std::optional<bool> likely = {});

  mlir::ElementsAttr readTensor(const proto::TensorProto &tensor);
  /// Remembers the types that a graph or function declares.
  void readDeclared(const google::protobuf::RepeatedPtrField<proto::ValueInfoProto> &values,
                    Scope &scope);
  /// The type of a list; null for others. Refuses lists of elements other than tensors.
  Type listType(const proto::TypeProto &type);

  mlir::OpBuilder &builder;
  ModelFile &file;
  const ImportOptions &options;
  Problems &problems;
  std::string diagnostics;
  llvm::DenseMap<Value, LabelsPtr> labels;
  llvm::DenseMap<Value, MapInput> maps; // indexed by the values of their keys
  /// Buffers by the pasts in them, and the nodes that extend them.
  llvm::DenseMap<Value, Buffer> buffers;
  llvm::DenseSet<const proto::NodeProto *> extenders;
  StringTable strings;
  /// Updated running statistics of a model that trains, by the constants that hold the current
  /// ones.
  llvm::MapVector<mlir::Operation *, Value> statistics;

private:
  void readNode(const proto::NodeProto &message, Scope &scope);
  void importNode(const proto::NodeProto &message, Scope &scope);
  void callFunction(const proto::FunctionProto &function, Node &node);
  void poison(const proto::NodeProto &message, Scope &scope);
  [[noreturn]] void stop(llvm::StringRef where, const llvm::Twine &message);

  Outputs readVersions(const Question &question, llvm::ArrayRef<Step> steps, const Scope &scope,
                       const Finish &finish);
  using Key = std::pair<std::string, const void *>;
  Key keyOf(const Question &question) const;
  Dim withoutOnes(const Dim &size) const;
  void answer(const Question &question, bool answer);
  bool isAskable(const Question &question) const;
  /// The run fails where the answer is another one.
  void require(Emitter &e, const Question &question, bool answer, llvm::StringRef why);
  void undo(mlir::Block *block, mlir::Operation *last);

  struct Answer {
    bool is;
    bool isOnly = false; // the run has to have it, since with another one there is `why`
    std::string why = {};
    bool isSaid = false; // before what is read now
  };
  std::map<Key, Answer> answers;
  std::set<std::string, std::less<>> ones; // sizes that are 1 in the version that is read
  int64_t versions = 1;
  int64_t tried = 0;     // questions of which two versions were read
  bool isTrying = false; // a version is read that may turn out to be none
  struct {
    mlir::Block *block = nullptr;
    mlir::Operation *last = nullptr; // the block's last op before the step
    int64_t symbols = 0;             // fresh ones, before the step
  } step;
  mlir::ScopedDiagnosticHandler handler;
  std::map<std::string, const proto::FunctionProto *> functions;
  int64_t nodeCount = 0;
};

std::string labelOf(const proto::NodeProto &node); // "node 'conv_12' (Conv)"
std::string nodeName(const proto::NodeProto &node);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_READER_H
