// Call: a group that a function of a library computes, in one task of the thread of the run.
//
// The task writes a frame with the memory, sizes and strides of each operand, as oneDNN sees them
// (the service `library`); the runtime keeps what it prepared for these sizes. Views cost nothing:
// a transposed operand, channels last or rows that are seen as one dimension are strides. What the
// function cannot do follows in a phase of its own, in place.

#include "compiler/lower/Schedule.h"
#include "compiler/mechanism/foreign/Calls.h"

using namespace mlir;

namespace heddle::lower {

using mechanism::LibraryCall;

namespace {
struct Operand {
  Value tensor;          // in memory; or, when null,
  std::vector<char> own; // bytes of its own
  DimVector dims, strides;
  bool isConstant() const { return !tensor || tensor.getDefiningOp<graph::ConstantOp>(); }
};

class CallKernel {
public:
  CallKernel(KernelBuilder &kernel, Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule) {}

  LogicalResult prepare() {
    mechanism::Fit fit;
    std::string why;
    auto read = mechanism::readCall(*schedule.mechanism, mechanism::opsOf(*group), fit, why);
    if (!read)
      return failure();
    call = *read;
    return success();
  }

  void emit() {
    Value output = outputsOf(group).front();
    // Ops after the result read each element where they write it.
    bool isInPlace = graph::storageOf(output) == graph::storageOf(call.result) &&
                     graph::dimsOf(output) == graph::dimsOf(call.result);
    int64_t temporary = -1;
    if (!isInPlace)
      temporary = kernel.addTemporary(graph::elementCount(graph::dimsOf(call.result)) * Dim(4));
    auto memory = [&] { return isInPlace ? kernel.pointer(output) : kernel.temporary(temporary); };
    describe();
    kernel.beginPhase();
    writeTask(memory);
    kernel.endLonePhase();
    if (output == call.result)
      return;
    emitPointwise(kernel, group, schedule, [&](Elements &e) {
      e.bind(call.result, [this, memory, &e](ArrayRef<Index> place) {
        return e.read(graph::storageOf(call.result), memory(), e.sizesOf(call.result), place);
      });
    });
  }

private:
  /// Row-major.
  static DimVector stridesOf(ArrayRef<Dim> dims) {
    DimVector strides(dims.size());
    Dim stride(1);
    for (size_t i = dims.size(); i-- > 0;) {
      strides[i] = stride;
      stride = stride * dims[i];
    }
    return strides;
  }

  Operand plain(Value tensor, DimVector dims) { return {tensor, {}, dims, stridesOf(dims)}; }

  /// The operand with dims and strides in another order.
  static Operand permuted(const Operand &from, ArrayRef<int64_t> order) {
    Operand result = from;
    for (auto [i, source] : llvm::enumerate(order)) {
      result.dims[i] = from.dims[source];
      result.strides[i] = from.strides[source];
    }
    return result;
  }

  /// An operand that is repeated into the result: 1 for each dimension that it lacks.
  Operand repeated(Value tensor) {
    size_t rank = graph::rankOf(call.result);
    DimVector dims(rank - graph::rankOf(tensor), Dim(1));
    dims.append(graph::dimsOf(tensor));
    if (auto constant = tensor.getDefiningOp<graph::ConstantOp>())
      if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
          dense && dense.isSplat() && !isa<DenseResourceElementsAttr>(constant.getValue())) {
        DimVector ones(rank, Dim(1));
        return {
            {}, bytesOf(dense.getSplatValue<APFloat>().convertToFloat(), 1), ones, stridesOf(ones)};
      }
    return plain(tensor, dims);
  }

  static std::vector<char> bytesOf(float value, int64_t count) {
    std::vector<float> values(count, value);
    auto *bytes = reinterpret_cast<const char *>(values.data());
    return std::vector<char>(bytes, bytes + count * sizeof(float));
  }

  void describe() {
    made.library = schedule.mechanism->library.str();
    made.card = schedule.card;
    made.group = schedule.group;
    made.real = call.epsilon;
    for (const LibraryCall::Post &post : call.posts)
      made.posts.push_back(postOf(post.kind));
    if (isa_and_nonnull<graph::MatmulOp>(call.root))
      describeMatmul();
    else if (auto conv = dyn_cast_or_null<graph::ConvOp>(call.root))
      describeConvolution(conv);
    else
      describeNormalization();
    made.operands = operands.size();
    for (auto [i, operand] : llvm::enumerate(operands))
      made.constants |= int64_t(i > 0 && operand.isConstant()) << i;
  }

  static program::Post postOf(LibraryCall::Post::Kind kind) {
    using Kind = LibraryCall::Post::Kind;
    switch (kind) {
    case Kind::Add:
      return program::Post::Add;
    case Kind::Sub:
      return program::Post::Sub;
    case Kind::Mul:
      return program::Post::Mul;
    case Kind::Div:
      return program::Post::Div;
    case Kind::Gelu:
      return program::Post::Gelu;
    }
    llvm_unreachable("all kinds are above");
  }

  void addPosts() {
    for (const LibraryCall::Post &post : call.posts)
      if (post.operand)
        operands.push_back(repeated(post.operand));
  }

  void describeMatmul() {
    made.function = program::LibraryFunction::Matmul;
    auto dimsOf = [](Value value) { return graph::dimsOf(value); };
    operands.push_back(plain(call.result, dimsOf(call.result)));
    operands.push_back(plain(call.reads[0], dimsOf(call.reads[0])));
    Operand b = plain(call.reads[1], dimsOf(call.reads[1]));
    operands.push_back(call.order.empty() ? b : permuted(b, call.order));
    addPosts();
    joinRows();
  }

  /// Batches that share one right operand are rows of one product of two dimensions.
  void joinRows() {
    size_t rank = graph::rankOf(call.result);
    auto isOne = [](const Dim &dim) { return dim.isConstant(1); };
    auto batchOf = [&](const Operand &operand) {
      return ArrayRef<Dim>(operand.dims).take_front(rank - 2);
    };
    DimVector whole = operands[0].dims;
    bool isShared =
        llvm::all_of(batchOf(operands[2]), isOne) && batchOf(operands[1]) == batchOf(operands[0]);
    for (const Operand &operand : ArrayRef<Operand>(operands).drop_front(3)) {
      ArrayRef<Dim> rows = ArrayRef<Dim>(operand.dims).take_front(rank - 1);
      isShared &= llvm::all_of(rows, isOne) || rows == ArrayRef<Dim>(whole).take_front(rank - 1);
    }
    if (rank == 2 || !isShared)
      return;
    for (auto [i, operand] : llvm::enumerate(operands)) {
      Dim rows(1);
      for (const Dim &dim : ArrayRef<Dim>(operand.dims).drop_back())
        rows = rows * dim;
      DimVector dims = {rows, operand.dims.back()};
      DimVector strides = stridesOf(dims);
      if (i == 2)
        strides = {operand.strides[rank - 2], operand.strides[rank - 1]};
      operand.dims = dims;
      operand.strides = strides;
    }
  }

  void describeConvolution(graph::ConvOp conv) {
    made.function = program::LibraryFunction::Convolution;
    int64_t rank = graph::rankOf(call.result);
    SmallVector<int64_t> channelsFirst = {0, rank - 1};
    for (int64_t d = 1; d + 1 < rank; ++d) {
      channelsFirst.push_back(d);
      size_t space = d - 1;
      made.numbers.insert(made.numbers.end(), {conv.getStrides()[space], conv.getLow()[space],
                                               conv.getHigh()[space], conv.getDilations()[space]});
    }
    operands.push_back(plain(call.result, graph::dimsOf(call.result)));
    operands.push_back(plain(conv.getX(), graph::dimsOf(conv.getX())));
    DimVector w = graph::dimsOf(conv.getW());
    DimVector grouped = {Dim(conv.getGroups()), w[0].floorDiv(Dim(conv.getGroups()))};
    grouped.append(w.begin() + 1, w.end());
    operands.push_back(plain(conv.getW(), grouped));
    addPosts();
    for (auto [i, operand] : llvm::enumerate(operands))
      if (i != 2)
        operand = permuted(operand, channelsFirst);
  }

  void describeNormalization() {
    made.function = program::LibraryFunction::LayerNorm;
    DimVector x = graph::dimsOf(call.reads[0]);
    Dim rows = graph::elementCount(ArrayRef<Dim>(x).drop_back(call.axes));
    Dim columns = graph::elementCount(ArrayRef<Dim>(x).take_back(call.axes));
    operands.push_back(plain(call.result, {rows, columns}));
    operands.push_back(plain(call.reads[0], {rows, columns}));
    for (size_t i : {1, 2}) {
      Operand vector = plain(call.reads[i], {columns});
      if (!call.reads[i])
        vector.own = bytesOf(i == 1 ? 1 : 0, *columns.constant());
      operands.push_back(std::move(vector));
    }
  }

  void writeTask(llvm::function_ref<Value()> result) {
    Code &code = kernel.code();
    Type i64 = code.b.getI64Type();
    SmallVector<Value> words;
    for (auto [i, operand] : llvm::enumerate(operands)) {
      Value memory = i == 0           ? result()
                     : operand.tensor ? kernel.pointer(operand.tensor)
                                      : kernel.data(kernel.addData(std::move(operand.own)));
      words.push_back(code.b.create<program::WordOp>(code.loc, memory));
      words.push_back(code.number(operand.dims.size()));
      for (const DimVector &sizes : {operand.dims, operand.strides})
        for (const Dim &size : sizes)
          words.push_back(kernel.dim(size));
    }
    std::string text = "group '" + schedule.group + "': oneDNN, as card '" + schedule.card +
                       "' calls it, failed with its status %lld";
    words.insert(words.begin(), {kernel.message(text), kernel.libraryCall(std::move(made))});
    Value frame = code.b.create<program::ArrayOp>(code.loc, words.size());
    for (auto [i, word] : llvm::enumerate(words))
      code.store(i64, word, frame, code.number(i));
    Value run = kernel.call();
    Value services = code.b.create<program::AreaOp>(code.loc, run, program::Area::Services);
    code.b.create<program::ServiceOp>(code.loc, program::Service::Library, services, run, frame);
  }

  KernelBuilder &kernel;
  Block *group;
  const Schedule &schedule;
  LibraryCall call;
  program::LibraryCall made;
  std::vector<Operand> operands;
};
} // namespace

LogicalResult emitCall(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  return carryOut<CallKernel>(kernel, group, schedule);
}

} // namespace heddle::lower
