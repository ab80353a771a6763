// Report: see Report.h.

#include "compiler/pipeline/Report.h"

#include "compiler/graph/Graph.h"
#include "compiler/pipeline/MemoryLimit.h"
#include "compiler/simplify/Passes.h"
#include "compiler/support/Json.h"

using namespace mlir;

namespace heddle {

Json feedbackJson(const Compiled &compiled) {
  auto feedback = Json::array();
  for (const Feedback &each : compiled.feedback)
    feedback.push_back({{"group", each.group}, {"step", each.step}, {"why", each.why}});
  return feedback;
}

Json unfoldedJson(const Compiled &compiled) {
  auto unfolded = Json::array();
  ModuleOp module = *compiled.graph; // a handle: reading changes nothing
  auto list = module->getAttrOfType<ArrayAttr>(simplify::kUnfolded);
  for (Attribute entry : list ? list.getValue() : ArrayRef<Attribute>()) {
    auto each = cast<DictionaryAttr>(entry);
    auto text = [&](StringRef name) { return each.getAs<StringAttr>(name).str(); };
    unfolded.push_back({{"node", text("node")}, {"op", text("op")}, {"why", text("why")}});
  }
  return unfolded;
}

static Json variantsJson(const Compiled &compiled) {
  auto variants = Json::array();
  auto add = [&](const Compiled &variant) {
    variants.push_back({{"target", variant.target->name},
                        {"groups", variant.program.kernels.size()},
                        {"code_bytes", variant.code ? variant.code->bytes : 0},
                        {"weights_bytes", variant.program.weights.usedBytes}});
  };
  add(compiled);
  for (const std::unique_ptr<Compiled> &variant : compiled.variants)
    add(*variant);
  return variants;
}

std::string reportOf(const Compiled &compiled, const Json &seconds) {
  const program::Program &program = compiled.program;
  Json report;
  report["model"] = program.model;
  report["target"] = compiled.target->name;
  report["seconds"] = seconds;
  report["feedback"] = feedbackJson(compiled);
  report["unfolded"] = unfoldedJson(compiled);
  if (const target::Code *code = compiled.code.get()) {
    report["groups"] = program.kernels.size();
    report["launches"] = program.launches;
    auto pointwise = Json::array();
    for (auto &[group, mechanism] : compiled.simplified)
      pointwise.push_back({{"group", group}, {"planned", mechanism}});
    report["pointwise_instead"] = pointwise;
    report["weights_bytes"] = program.weights.size;
    ModuleOp module = *compiled.graph; // a handle: reading changes nothing
    MemoryNeed memory = memoryOf(module.lookupSymbol<func::FuncOp>("main"), program);
    report["memory"] = {{"inputs", memory.inputs},
                        {"outputs", memory.outputs},
                        {"weights", memory.weights},
                        {"between_kernels", memory.arena},
                        {"total", memory.total()}};
    report["objects"] = {{"count", code->parts}, {"from_cache", code->fromCache}};
  }
  if (!compiled.costJson.empty())
    report["cost_model"] = parseJson(compiled.costJson);
  if (!compiled.variants.empty())
    report["variants"] = variantsJson(compiled);
  return report.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace heddle
