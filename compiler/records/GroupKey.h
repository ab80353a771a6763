// GroupKey: what makes two groups the same work, so that what was measured of one holds for the
// other.
#ifndef HEDDLE_RECORDS_GROUPKEY_H
#define HEDDLE_RECORDS_GROUPKEY_H

#include "compiler/graph/Graph.h"

namespace heddle::records {

struct GroupKey {
  std::string hash; // "sha256:..." of `text`
  std::string text; // ops, types with extents, kind; no names, no values of constants
  std::vector<std::string> symbols; // the model's names of the sizes that are in it as $0, $1...
};

/// Equal for groups that compile to the same loops: equal ops in equal order with equal attributes
/// and types, the same operands constant, sizes equal as numbers or as expressions of symbols in
/// the order in which they occur. The group's choice does not enter it.
GroupKey keyOf(graph::GroupOp group);

/// Gives the group of a key's text the attribute `mechanism`, in place of the word that texts have.
void readWords(graph::GroupOp group);

/// GroupKey::hash of a text.
std::string hashOf(llvm::StringRef text);

} // namespace heddle::records

#endif // HEDDLE_RECORDS_GROUPKEY_H
