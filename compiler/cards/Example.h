// Example: a group of a model as the @example of a card.
#ifndef HEDDLE_CARDS_EXAMPLE_H
#define HEDDLE_CARDS_EXAMPLE_H

#include "compiler/graph/Graph.h"

namespace heddle::cards {

/// The group's ops as the text of `func.func @example`, indented. Small constants are in it;
/// larger ones are arguments that are `heddle.constant`, with the range of their numbers where they
/// are integers.
std::string exampleOf(graph::GroupOp group);

} // namespace heddle::cards

#endif // HEDDLE_CARDS_EXAMPLE_H
