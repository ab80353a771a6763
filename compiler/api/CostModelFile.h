// CostModelFile: a cost model that `heddle cost train` wrote and `heddle compile` compiled.
#ifndef HEDDLE_API_COSTMODELFILE_H
#define HEDDLE_API_COSTMODELFILE_H

#include "compiler/learn/Model.h"

namespace heddle {

/// Loads the artefact and checks which features it has learned.
llvm::Expected<std::unique_ptr<learn::Model>> loadCostModel(llvm::StringRef path);

} // namespace heddle

#endif // HEDDLE_API_COSTMODELFILE_H
