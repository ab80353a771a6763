// CutOut: a group, with others before it where asked, as a program of its own, to be tried, timed
// or named apart from its model.
#ifndef HEDDLE_GRAPH_EDIT_CUTOUT_H
#define HEDDLE_GRAPH_EDIT_CUTOUT_H

#include "compiler/graph/Graph.h"

namespace heddle::graph {

struct CutOut {
  mlir::OwningOpRef<mlir::ModuleOp> module; // one func @main around copies of the groups
  llvm::SmallVector<mlir::Value> outside;   // the value for each argument of @main

  mlir::func::FuncOp main() { return module->lookupSymbol<mlir::func::FuncOp>("main"); }
  /// The last one.
  GroupOp group();
};

/// The results of the last group are the program's. Values that the groups read from outside become
/// arguments, or constants if `constantOf` gives a value. Types may name symbols that no argument
/// is alone a size of.
CutOut cutOut(llvm::ArrayRef<GroupOp> groups,
              llvm::function_ref<mlir::ElementsAttr(mlir::Value outside)> constantOf);

/// The value of a graph.constant, else null: for cutOut, to keep the model's own constants.
mlir::ElementsAttr ownConstant(mlir::Value value);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_EDIT_CUTOUT_H
