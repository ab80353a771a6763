// cases_test: which cases there are. No op of the graph dialect may be in none, and a part of them
// has each op: for a target whose tests are slow.

#include "test/ops/case.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <gtest/gtest.h>

using namespace mlir;

namespace heddle::ops {

/// Ops that are in no case, and why.
static const std::map<StringRef, StringRef> kNotCompiled = {
    {"graph.group", "is what partition makes"},
};

namespace {

/// Names of the ops in the case's graph, one for each op.
std::vector<std::string> opsOf(const Case &test, MLIRContext &context) {
  Model model(context);
  test.build(model);
  model.finish();
  std::vector<std::string> names;
  model.module->walk([&](Operation *op) {
    if (isa<graph::GraphDialect>(op->getDialect()))
      names.push_back(op->getName().getStringRef().str());
  });
  return names;
}

} // namespace

Cases allCases() {
  Cases cases;
  for (auto add :
       {addElementwise, addCasts,    addMovement, addIndexed,  addReductions, addProducts,
        addCut,         addIntegers, addWindows,  addWinograd, addNarrow,     addDepthwise,
        addResize,      addControl,  addHosted,   addRoutines, addGradients,  addGroups,
        addAttention,   addMasks,    addRandom,   addRows,     addShort})
    add(cases);
  return cases;
}

Cases smallestCases() {
  Cases all = allCases(), wanted;
  struct Smallest {
    size_t place, ops;
  };
  std::map<std::string, Smallest> found; // by op
  for (size_t i = 0; i < all.size(); ++i) {
    MLIRContext context(MLIRContext::Threading::DISABLED);
    std::vector<std::string> names = opsOf(all[i], context);
    for (const std::string &name : names) {
      Smallest &smallest = found.try_emplace(name, Smallest{i, names.size()}).first->second;
      if (names.size() < smallest.ops)
        smallest = {i, names.size()};
    }
  }
  std::set<size_t> places;
  for (auto &[name, smallest] : found)
    places.insert(smallest.place);
  for (size_t place : places)
    wanted.push_back(all[place]);
  return wanted;
}

TEST(Cases, EveryOpIsInOne) {
  std::set<std::string> seen;
  std::vector<std::string> registered;
  for (const Case &test : allCases()) {
    MLIRContext context(MLIRContext::Threading::DISABLED);
    for (const std::string &name : opsOf(test, context))
      seen.insert(name);
    if (registered.empty())
      for (RegisteredOperationName name : context.getRegisteredOperations())
        if (name.getDialectNamespace() == "graph")
          registered.push_back(name.getStringRef().str());
  }
  for (const std::string &name : registered)
    EXPECT_NE(seen.contains(name), kNotCompiled.count(name) > 0) << name;
}

} // namespace heddle::ops
