// Explain: which cards there are, and for a model's groups which were offered, refused and chosen.
#ifndef HEDDLE_CARDS_EXPLAIN_H
#define HEDDLE_CARDS_EXPLAIN_H

#include "compiler/pipeline/Pipeline.h"
#include "compiler/warehouse/Warehouse.h"

namespace heddle::cards {

/// All cards in the order in which a chooser sees them, as JSON.
llvm::Expected<std::string> list(llvm::ArrayRef<std::string> folders);

/// The text of the card of this name.
llvm::Expected<std::string> show(llvm::ArrayRef<std::string> folders, llvm::StringRef name);

/// Lists as JSON, for each group of the model or the one that is named, every card in order,
/// offered or why it was refused, and the one that was chosen.
llvm::Expected<std::string> explain(const ModelSource &source, const CompileOptions &options,
                                    llvm::StringRef group);

/// The model up to its plan.
llvm::Expected<std::unique_ptr<Compiled>> planOf(const ModelSource &source, CompileOptions options);

/// The group of this name, with the nearest one in the error.
llvm::Expected<graph::GroupOp> findGroup(mlir::ModuleOp module, llvm::StringRef model,
                                         llvm::StringRef name);

} // namespace heddle::cards

#endif // HEDDLE_CARDS_EXPLAIN_H
