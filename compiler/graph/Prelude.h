// Prelude.h: the precompiled header of the graph and of the stages that use it.
#ifndef HEDDLE_GRAPH_PRELUDE_H
#define HEDDLE_GRAPH_PRELUDE_H

#include "compiler/graph/Graph.h"

#include <nlohmann/json.hpp>

#endif // HEDDLE_GRAPH_PRELUDE_H
