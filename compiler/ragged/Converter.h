// Converter: the state of one conversion, and its parts.
#ifndef HEDDLE_RAGGED_CONVERTER_H
#define HEDDLE_RAGGED_CONVERTER_H

#include "compiler/graph/edit/Build.h"
#include "compiler/graph/ragged/Ragged.h"
#include "compiler/ragged/Forms.h"
#include "compiler/support/Error.h"

namespace heddle::ragged {

using graph::Build;
using llvm::ArrayRef;
using llvm::Twine;
using mlir::Block;
using mlir::BlockArgument;
using mlir::OpBuilder;
using mlir::Operation;
using mlir::OpOperand;
using mlir::Value;

class Converter {
public:
  explicit Converter(graph::RowLengthsOp lengths)
      : lengths(lengths), names{lengths.getOf().str(), lengths.getSize().str()},
        known(graph::symbolsOf(lengths->getBlock()->getArgumentTypes())),
        builder(lengths->getBlock()->getTerminator()) {}

  llvm::Error run();

private:
  DimVector dimsOf(Value value) { return graph::dimsOf(value); }

  /// Values that the whole model has with padding, and that are made without.
  bool isRagged(Value value) { return ragged.contains(value); }

  void refuse(Operation *op, const Twine &why);
  /// Refuses, and returns a null value.
  Value refused(Operation *op, const Twine &why);

  /// Whether the value, cut along `size`, is that of a smaller `size`.
  bool keepsPrefix(Value value);

  void convert(Operation *op);

  /// Whether a reshape keeps the order of elements along the two sizes.
  bool keepsOrder(Operation *op);

  bool isTimeMajor(Value value);

  void clone(Operation *op, bool isOfTokens);

  Value firstRagged(Operation *op);

  void note(Value padded, Value made, bool isOfTokens);

  /// The value as one long row; null if it was refused.
  Value asTokens(Value value, Operation *reader);

  /// The value with sizes of rows; null if it was refused.
  Value asRows(Value value, Operation *reader);

  /// A padded value without its padding.
  Value cut(Value value, Operation *reader);

  std::string nameOf(Value value);

  /// The value as each row reads it whole.
  Value plain(Value value, Operation *reader);

  /// A number or a vector without either size, spread to these sizes at once; else null.
  Value ofPlain(Value value, ArrayRef<Dim> wanted, Build &build);

  /// A mask that is one side of a diagonal, or numbers that are chosen by such masks, made of the
  /// positions in a row; else null.
  Value ofPositions(Value value, ArrayRef<Dim> wanted, Build &build, int depth = 8);

  /// Spreads a value that depends on the length of the row.
  void broadcastOfRows(graph::BroadcastOp op);

  /// [of, sizes of x]: x of each row, where x follows from sizes and constants; else null.
  Value ofLength(Value x, Operation *reader);

  /// [of]: an expression in the two sizes, of each row; null if it is no sum of products.
  Value ofLength(const Dim &dim, Build &build);

  /// Converts a transpose of one dimension with another that is not beside it, or to time first:
  /// through [of, size(of), the factor of `of`, the rest] and back.
  void exchange(graph::TransposeOp op);

  // Scan.cpp: the padded form, right up to the end of each row.
  Value wholeOf(Value value);
  Value asWhole(Value value, Operation *reader);
  void noteWhole(Value padded, Value made);
  /// Whether the op moves padded values, with both sizes staying as they are.
  bool movesWhole(Operation *op);
  void cloneWhole(Operation *op);
  /// The reason why a recurrence is none of rows; "" if it is one.
  std::string whyNoScan(graph::ScanOp op);
  void convertScan(graph::ScanOp op);

  // Results.cpp
  void checkPlainResult(Value value, Operation *reader);

  /// Makes a result of the model padded or packed.
  void setResult(OpOperand &result);

  /// The value with its rows one after the other; null if it was refused.
  Value packed(Value value, Operation *reader);

  /// The result [of + 1]: where each row begins, and where the last one ends.
  void addOffsets(mlir::func::ReturnOp results);

  /// The value with zeros beyond each row; null if it was refused.
  Value padded(Value value, Operation *reader);

  Value padTo(Build &build, Value x, ArrayRef<Dim> dims);

  void eraseDead(Block *block);

  graph::RowLengthsOp lengths;
  const Names names;
  const llvm::StringSet<> known; // sizes, from the beginning of a run
  OpBuilder builder;
  std::string problem;
  llvm::DenseSet<Value> ragged;         // values of the padded model
  llvm::DenseSet<Value> replaced;       // made of rows, but without their size
  llvm::DenseSet<Value> fusedTimeMajor; // with both sizes in one dimension
  llvm::DenseMap<Value, Value> tokens, rows, wholes;
  llvm::DenseMap<Value, bool> prefixes;
  llvm::DenseSet<Operation *> superseded; // replaced by ops on ragged tensors
};
} // namespace heddle::ragged

#endif // HEDDLE_RAGGED_CONVERTER_H
