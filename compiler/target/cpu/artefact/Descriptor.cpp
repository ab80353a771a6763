// Descriptor: constants laid out as abi.h says, field by field in its order.

#include "compiler/target/cpu/artefact/Descriptor.h"

#include "compiler/program/Identifier.h"

#include "runtime/executable/abi.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace heddle::cpu {
namespace {

using llvm::Constant;

static_assert(program::kDynamic == HEDDLE_DYNAMIC);
static_assert(int(program::IoKind::Tensor) == HEDDLE_IO_TENSOR &&
              int(program::IoKind::Sequence) == HEDDLE_IO_SEQUENCE &&
              int(program::IoKind::Optional) == HEDDLE_IO_OPTIONAL &&
              int(program::IoKind::OptionalSequence) == HEDDLE_IO_OPTIONAL_SEQUENCE &&
              int(program::IoKind::AnyRank) == HEDDLE_IO_ANY_RANK);
static_assert(int(program::Encoding::Dense) == HEDDLE_ENCODING_DENSE &&
              int(program::Encoding::Map) == HEDDLE_ENCODING_MAP &&
              int(program::Encoding::IntMap) == HEDDLE_ENCODING_INT_MAP);
static_assert(int(program::Pixels::Rgb) == HEDDLE_PIXELS_RGB &&
              int(program::Pixels::Bgr) == HEDDLE_PIXELS_BGR &&
              int(program::Pixels::Gray) == HEDDLE_PIXELS_GRAY);
static_assert(int(program::LibraryFunction::Matmul) == HEDDLE_FUNCTION_MATMUL &&
              int(program::LibraryFunction::Convolution) == HEDDLE_FUNCTION_CONVOLUTION &&
              int(program::LibraryFunction::LayerNorm) == HEDDLE_FUNCTION_LAYER_NORM);
static_assert(int(program::Post::Add) == HEDDLE_POST_ADD &&
              int(program::Post::Sub) == HEDDLE_POST_SUB &&
              int(program::Post::Mul) == HEDDLE_POST_MUL &&
              int(program::Post::Div) == HEDDLE_POST_DIV &&
              int(program::Post::Gelu) == HEDDLE_POST_GELU);

class DescriptorBuilder {
public:
  explicit DescriptorBuilder(llvm::Module &module)
      : module(module), context(module.getContext()), pointer(llvm::PointerType::get(context, 0)) {}

  Constant *i32(int64_t value) { return number(32, value); }
  Constant *i64(int64_t value) { return number(64, value); }
  Constant *null() { return llvm::ConstantPointerNull::get(pointer); }

  /// Stores equal texts once.
  Constant *text(const std::string &value) {
    Constant *&known = texts[value];
    if (!known)
      known = store(llvm::ConstantDataArray::getString(context, value), ".text");
    return known;
  }
  Constant *textsOf(const std::vector<std::string> &values) {
    std::vector<Constant *> pointers;
    for (const std::string &value : values)
      pointers.push_back(text(value));
    return arrayOf(pointers);
  }
  Constant *stringsOf(const std::vector<std::string> &values) {
    std::vector<Constant *> rows;
    for (const std::string &value : values)
      rows.push_back(structure({text(value), i64(value.size())}));
    return arrayOf(rows);
  }
  template <typename Number> Constant *numbersOf(const std::vector<Number> &values) {
    std::vector<Constant *> numbers;
    for (Number value : values)
      numbers.push_back(i64(int64_t(value)));
    return arrayOf(numbers);
  }
  Constant *real(double value) {
    return llvm::ConstantFP::get(llvm::Type::getDoubleTy(context), value);
  }
  Constant *callsOf(const std::vector<program::LibraryCall> &calls) {
    std::vector<Constant *> rows;
    for (const program::LibraryCall &call : calls)
      rows.push_back(structure(
          {text(call.library), text(call.card), text(call.group), i32(int32_t(call.function)),
           i32(call.operands), i32(call.numbers.size()), i32(call.posts.size()),
           numbersOf(call.numbers), numbersOf(call.posts), real(call.real), i64(call.constants)}));
    return arrayOf(rows);
  }
  Constant *devicesOf(const std::vector<program::Device> &devices) {
    std::vector<Constant *> rows;
    for (const program::Device &device : devices) {
      std::vector<Constant *> images, kernels;
      for (const program::DeviceImage &image : device.images)
        images.push_back(structure({text(image.chip), text(image.bytes),
                                    i64(image.bytes.size() + image.isText), i32(image.isText)}));
      for (const program::DeviceKernel &kernel : device.kernels)
        kernels.push_back(structure({text(kernel.name), text(kernel.group), i32(kernel.words),
                                     i32(kernel.threads), i64(kernel.sharedBytes)}));
      rows.push_back(structure({text(device.space), arrayOf(images), i64(images.size()),
                                arrayOf(kernels), i64(kernels.size()), i32(device.mayFail)}));
    }
    return arrayOf(rows);
  }
  Constant *arrayOf(llvm::ArrayRef<Constant *> values) {
    if (values.empty())
      return null();
    auto *type = llvm::ArrayType::get(values.front()->getType(), values.size());
    return store(llvm::ConstantArray::get(type, values), ".array");
  }
  /// Padding goes where C would put it.
  Constant *structure(llvm::ArrayRef<Constant *> fields) {
    return llvm::ConstantStruct::getAnon(context, fields);
  }
  Constant *ios(const std::vector<program::Io> &values) {
    std::vector<Constant *> rows;
    for (const program::Io &io : values) {
      std::vector<Constant *> dims;
      for (const program::IoDim &dim : io.dims)
        dims.push_back(structure({i64(dim.value), i64(dim.symbol), text(dim.text)}));
      rows.push_back(
          structure({text(io.name), i32(io.dtype), i32(io.dims.size()), arrayOf(dims),
                     i32(int32_t(io.encoding)), i32(io.labels.size()), textsOf(io.labels),
                     i32(int32_t(io.kind)), i32(io.tensorRank), i32(io.shares)}));
    }
    return arrayOf(rows);
  }
  Constant *external(const std::string &name) {
    auto *global = new llvm::GlobalVariable(module, llvm::Type::getInt8Ty(context), true,
                                            llvm::GlobalValue::ExternalLinkage, nullptr, name);
    global->setVisibility(llvm::GlobalValue::HiddenVisibility);
    return global;
  }

  llvm::Module &module;
  llvm::LLVMContext &context;
  llvm::PointerType *pointer;

private:
  Constant *number(unsigned bits, int64_t value) {
    return llvm::ConstantInt::get(llvm::IntegerType::get(context, bits), value, true);
  }
  Constant *store(Constant *value, const char *name) {
    return new llvm::GlobalVariable(module, value->getType(), true,
                                    llvm::GlobalValue::PrivateLinkage, value, name);
  }
  std::map<std::string, Constant *> texts;
};

std::string joined(const std::vector<std::string> &words) {
  return llvm::join(words.begin(), words.end(), ",");
}

} // namespace

std::string entrySymbol(const program::Program &program) {
  return program::identifierOf(program) + "_executable";
}

std::string weightsSymbol(const program::Program &program) {
  return program::identifierOf(program) + "_weights";
}

/// The CPU and the devices that a form is for.
static std::string formName(const program::Program &program, const Target &target) {
  std::string name = target.name;
  for (const program::Device &device : program.devices)
    for (const program::DeviceImage &image : device.images)
      name += "+" + image.chip;
  return name;
}

std::string variantSymbol(const program::Program &program, const Target &target) {
  std::string name = program::identifierOf(program) + "_for_" + formName(program, target);
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  return name;
}

/// heddle_executable_t; `variants` is its table of that many forms, or null.
static Constant *executableOf(DescriptorBuilder &b, const program::Program &program,
                              const Target &target, Constant *variants, size_t variantCount) {
  return b.structure({
      b.i32(HEDDLE_EXECUTABLE_MAGIC),
      b.i32(HEDDLE_ABI_VERSION),
      b.text(llvm::sys::path::stem(program.model).str()),
      b.text("heddle 0.1.0"),
      b.text(formName(program, target)),
      b.text(joined(target.required)),
      b.i32(program.inputs.size()),
      b.i32(program.outputs.size()),
      b.i32(program.symbols.size()),
      b.i32(program.messages.size()),
      b.ios(program.inputs),
      b.ios(program.outputs),
      b.textsOf(program.symbols),
      b.textsOf(program.messages),
      b.external(weightsSymbol(program)),
      b.i64(program.weights.size),
      program.bindsValues ? b.external("heddle_program_bind") : b.null(),
      b.external("heddle_program_sizes"),
      b.external("heddle_program_run"),
      b.textsOf(program.kernels),
      b.i64(program.kernels.size()),
      b.real(program.flops),
      b.stringsOf(program.strings),
      b.i64(program.strings.size()),
      b.callsOf(program.calls),
      b.i64(program.calls.size()),
      b.i32(program.rowBlocks.symbol),
      b.i32(program.rowBlocks.work),
      b.i64(program.rowBlocks.bytes),
      variants,
      b.i64(variantCount),
      b.i32(target.keepsSubnormals),
      b.devicesOf(program.devices),
      b.i64(program.devices.size()),
  });
}

static llvm::GlobalVariable *define(llvm::Module &module, Constant *value, llvm::StringRef name,
                                    bool isVisible) {
  auto *global = new llvm::GlobalVariable(module, value->getType(), true,
                                          llvm::GlobalValue::ExternalLinkage, value, name);
  global->setAlignment(llvm::Align(8));
  global->setVisibility(isVisible ? llvm::GlobalValue::DefaultVisibility
                                  : llvm::GlobalValue::HiddenVisibility);
  return global;
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
emitDescriptor(const program::Program &program, const Target &target, bool exportGeneric,
               const std::vector<std::string> &variants) {
  llvm::LLVMContext context;
  llvm::Module module("descriptor", context);
  DescriptorBuilder b(module);
  std::vector<Constant *> forms;
  llvm::GlobalVariable *self = nullptr; // the first of its own table
  if (!variants.empty()) {
    self = new llvm::GlobalVariable(module, llvm::Type::getInt8Ty(context), true,
                                    llvm::GlobalValue::ExternalLinkage, nullptr, "");
    forms.push_back(self);
  }
  for (const std::string &name : variants)
    forms.push_back(b.external(name));
  Constant *value = executableOf(b, program, target, b.arrayOf(forms), forms.size());
  llvm::GlobalVariable *generic = define(module, value, HEDDLE_ENTRY_SYMBOL, exportGeneric);
  if (self) {
    self->replaceAllUsesWith(generic);
    self->eraseFromParent();
  }
  if (entrySymbol(program) != HEDDLE_ENTRY_SYMBOL)
    llvm::GlobalAlias::create(value->getType(), 0, llvm::GlobalValue::ExternalLinkage,
                              entrySymbol(program), generic, &module);
  return emitData(module, target);
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
emitVariantDescriptor(const program::Program &program, const Target &target) {
  llvm::LLVMContext context;
  llvm::Module module("descriptor", context);
  DescriptorBuilder b(module);
  define(module, executableOf(b, program, target, b.null(), 0), variantSymbol(program, target),
         /*isVisible=*/true);
  return emitData(module, target);
}

} // namespace heddle::cpu
