// Routines: an op whose algorithm is one of runtime/routine becomes a call with one frame:
// messages, results, attributes in alphabetical order, operands; of trees their scans.

#include "compiler/lower/host/Services.h"
#include "compiler/lower/program/ForestScans.h"

using namespace mlir;

namespace heddle::lower {

namespace {
struct Routine {
  program::Service service;
  SmallVector<std::string, 1> messages;
};
} // namespace

/// Messages are in the order of the outcomes of runtime/library/custom.h.
static Routine customRoutine(graph::CustomOp op) {
  std::vector<char> storage;
  auto constant = op.getAbout().getDefiningOp<graph::ConstantOp>();
  ArrayRef<char> text = graph::constantBytes(constant.getValue(), storage);
  SmallVector<StringRef> about;
  StringRef(text.data(), text.size()).split(about, '\0');
  std::string library; // in a format
  for (char c : about[0])
    library += c == '%' ? "%%" : std::string(1, c);
  std::string missing = library.empty()
                            ? "its op is not registered in this process (heddle_custom_op_register)"
                            : "its op is not in '" + library +
                                  "', or that library cannot be loaded, nor one of its name where "
                                  "the system looks for libraries";
  return {program::Service::Custom,
          {missing, "the shape function of its op returns %lld",
           "the shape function of its op gives result %lld another rank or element type than when "
           "it was compiled, or a size that cannot be: %lld",
           "the compute function of its op returns %lld",
           "the compute function of its op writes beyond the end of result %lld"}};
}

static Routine routineOf(Operation *op) {
  return TypeSwitch<Operation *, Routine>(op)
      .Case([](graph::TopkOp) {
        return Routine{program::Service::Topk,
                       {"%lld elements are asked for, but there are only %lld"}};
      })
      .Case([](graph::CustomOp custom) { return customRoutine(custom); })
      .Case([](graph::CumsumOp) { return Routine{program::Service::Cumsum, {}}; })
      .Case([](graph::NonzeroOp) { return Routine{program::Service::Nonzero, {}}; })
      .Case([](graph::UniqueOp) { return Routine{program::Service::Unique, {}}; })
      .Case([](graph::SuppressOp) { return Routine{program::Service::Suppress, {}}; })
      .Case([](graph::ForestOp) { return Routine{program::Service::Forest, {}}; })
      .Case([](graph::FourierOp) {
        return Routine{program::Service::Fourier,
                       {"a transform of length %lld has no %lld frequencies"}};
      });
}

/// Words of an attribute: integers, truth values and sizes.
static SmallVector<Dim> wordsOf(Attribute attr) {
  if (auto sizes = dyn_cast<graph::DimsAttr>(attr))
    return SmallVector<Dim>(graph::dimsOf(sizes));
  if (auto flag = dyn_cast<BoolAttr>(attr))
    return {Dim(flag.getValue())};
  return {Dim(cast<IntegerAttr>(attr).getInt())};
}

/// The address of the scans of trees; 0 if all are walked.
Value Routines::scansOf(graph::ForestOp op) {
  if (!graph::storageOf(op.getX()).isF32())
    return host.code.number(0);
  std::vector<char> scans =
      forestScans(*graph::constantIntegers(op.getNodes()), *graph::constantIntegers(op.getRoots()));
  Value place = host.weightsAt(host.program.weights.own(std::move(scans)));
  return host.entry.create<program::WordOp>(host.code.loc, place);
}

void Routines::addTensor(SmallVectorImpl<Value> &frame, Value tensor, Value address) {
  Code &code = host.code;
  frame.push_back(address);
  frame.push_back(code.number(graph::onnxTypeOf(graph::elementOf(tensor))));
  frame.push_back(code.number(graph::rankOf(tensor)));
  for (const Dim &size : graph::dimsOf(tensor))
    frame.push_back(sizes.dim(size));
}

void Routines::write(Operation *op) {
  Code &code = host.code;
  OpBuilder &builder = host.builder;
  Routine routine = routineOf(op);
  SmallVector<StringRef> texts(routine.messages.begin(), routine.messages.end());
  SmallVector<Value> frame = {host.messages(texts)};
  if (isa<graph::CustomOp>(op))
    frame.append({code.number(op->getNumResults()), code.number(op->getNumOperands())});
  SmallVector<std::pair<Value, int64_t>> made;
  for (Value result : op->getResults()) {
    bool isMade = Storage::isFound(result);
    if (isMade)
      made.emplace_back(result, frame.size());
    addTensor(frame, result, isMade ? code.number(0) : memory.addressOf(result));
  }
  SmallVector<StringRef> names;
  for (StringAttr name : op->getName().getAttributeNames())
    names.push_back(name);
  llvm::sort(names);
  for (StringRef name : names)
    for (const Dim &word : wordsOf(op->getAttr(name)))
      frame.push_back(sizes.dim(word));
  for (Value operand : op->getOperands())
    addTensor(frame, operand, memory.addressOf(operand));
  if (auto forest = dyn_cast<graph::ForestOp>(op))
    frame.push_back(scansOf(forest));
  Value written = host.callOn(routine.service, frame);
  Type i64 = builder.getI64Type();
  for (auto [result, place] : made) {
    Value data = code.load(i64, written, code.number(place));
    memory.pointers[result] = builder.create<program::PointerOp>(code.loc, data);
    SmallVector<Value> words;
    for (int64_t i = 0; i < graph::rankOf(result); ++i)
      words.push_back(code.load(i64, written, code.number(place + 3 + i)));
    sizes.bindDims(result, words);
  }
}

} // namespace heddle::lower
