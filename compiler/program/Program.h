// Program: what lower hands to a target: code in the dialects program, scf, arith,
// math and vector, and the data that becomes the executable's descriptor
// (runtime/executable/abi.h).
#ifndef HEDDLE_PROGRAM_PROGRAM_H
#define HEDDLE_PROGRAM_PROGRAM_H

#include "compiler/Prelude.h"

namespace heddle::program {

/// The value for a size that is known only at run time.
inline constexpr int64_t kDynamic = -1;

/// Kinds of inputs and outputs, how their elements stand for the model's values, what the bytes of
/// a pixel are, functions of libraries and what they do to their results: numbered as in
/// runtime/executable/abi.h, which says what each means.
enum class IoKind : int32_t { Tensor, Sequence, Optional, OptionalSequence, AnyRank };
enum class Encoding : int32_t { Dense = 0, Map = 2, IntMap = 3 };
enum class Pixels : int64_t { Rgb, Bgr, Gray };
enum class LibraryFunction : int32_t { Matmul, Convolution, LayerNorm };
enum class Post : int64_t { Add, Sub, Mul, Div, Gelu };

/// One dimension of an input or output, as heddle_io_dim_t.
struct IoDim {
  int64_t value;  // -1 if not constant
  int64_t symbol; // index into Program::symbols, or -1
  std::string text;
};

struct Io {
  std::string name;
  int32_t dtype; // onnx.TensorProto.DataType
  std::vector<IoDim> dims;
  Encoding encoding = Encoding::Dense;
  std::vector<std::string> labels;
  IoKind kind = IoKind::Tensor;
  int32_t tensorRank = -1; // of a list's tensors
  int32_t shares = -1;     // of an output: the input whose memory it may have; of an input that
                           // the run writes: its own number
};

/// Constant data at 64-aligned offsets of one blob. Pieces borrow their bytes (from the model's
/// mapped file or the MLIR context) or own them; equal bytes are one piece. A copy shares the
/// bytes: programs of one model for several CPUs begin with what those before them have, so that
/// equal weights are stored once.
struct Weights {
  struct Piece {
    int64_t offset;
    llvm::ArrayRef<char> bytes;
  };
  std::vector<Piece> pieces;
  std::vector<std::shared_ptr<std::vector<char>>> owned;
  int64_t size = 0;
  int64_t usedBytes = 0;                     // of the pieces that were asked of this copy
  std::multimap<uint64_t, size_t> byContent; // hash: piece

  /// Returns the offset. The bytes must outlive this.
  int64_t borrow(llvm::ArrayRef<char> bytes);
  int64_t own(std::vector<char> bytes);
  /// A copy for the next program: the same pieces, none of them used.
  Weights shared() const;

private:
  const Piece *find(llvm::ArrayRef<char> bytes, uint64_t hash) const;
  int64_t add(llvm::ArrayRef<char> bytes, uint64_t hash);
};

/// A kernel that is a function of a library, as heddle_library_call_t.
struct LibraryCall {
  std::string library, card, group;
  LibraryFunction function = LibraryFunction::Matmul;
  int32_t operands = 0;
  std::vector<int64_t> numbers;
  std::vector<Post> posts;
  double real = 0;
  int64_t constants = 0; // bit i: operand i is a weight
};

/// A kernel that is written in C or C++. Its functions `heddle_NAME` are `prefix` + NAME in the
/// program, which defines those that it only declares.
struct Source {
  std::string path, prefix;
  std::string header, code;        // what precedes the file's own text
  std::vector<std::string> wanted; // functions that it has to define
  std::string bitcode;             // once it is compiled
};

/// A buffer of the arena, for reports: a result of a kernel, or memory that it needs meanwhile.
struct ArenaBuffer {
  int64_t kernel;                // index into Program::kernels
  bool isTemporary;              // else a result
  int64_t index;                 // of the result or temporary
  std::string bytes;             // "64", "batch*768": the symbols' sizes decide
  int64_t typicalBytes;          // as they typically are
  std::optional<int64_t> offset; // where it does not depend on them
  int64_t first, last;           // kernels between which it matters
};

/// One form of the code of a device's kernels, as heddle_device_image_t.
struct DeviceImage {
  std::string chip, bytes;
  bool isText = true;
};

/// A kernel of a device, as heddle_device_kernel_t.
struct DeviceKernel {
  std::string name, group;
  int64_t words = 1, threads = 0, sharedBytes = 0;
};

/// Kernels of a device and their code, as heddle_device_t.
struct Device {
  std::string space;
  std::vector<DeviceImage> images;
  std::vector<DeviceKernel> kernels;
  bool mayFail = false;
};

/// Blocks of rows that a ragged model's batch may run as, as heddle_executable_t.
struct RowBlocks {
  int32_t symbol, work; // indices into Program::symbols
  int64_t bytes;        // of the arena for each thread; 0: they are not wanted
};

/// A launch over all rows of a ragged model, for reports: the tasks of one row and their work, as
/// expressions in the size of a row.
struct RowLaunch {
  int64_t kernel; // index into Program::kernels
  std::string tasks, work;
};
/// Parts into which such a launch cuts the work of all rows: many more than there are workers, so
/// that shares are fine enough. Workers have neighbouring parts, as many each.
inline constexpr int64_t kRowParts = 1024;

/// The module holds `func.func` kernels (`(!program.ptr args, i64 begin, i64 end, !program.ptr
/// scratch)`, private), and public functions as abi.h wants them,
/// `heddle_program_sizes(!program.ptr symbols, !program.ptr arena_bytes, !program.ptr output_dims,
/// !program.ptr values) -> i32`, `heddle_program_run(!program.ptr call) -> i32` and, if values of
/// inputs are sizes, `heddle_program_bind(!program.ptr call) -> i32`.
struct Program {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string model;
  std::vector<Io> inputs, outputs;
  std::vector<std::string> symbols, messages, kernels, strings;
  /// Spaces of memory beside the host's, for kernels of devices. heddle_program_sizes writes the
  /// bytes of their arenas, in this order, after those of the host's.
  std::vector<std::string> spaces;
  /// Code for them, in this order, once their functions are out of the module.
  std::vector<Device> devices;
  Weights weights;
  std::vector<std::vector<std::string>> functions; // of each kernel, in the order of its phases
  std::vector<ArenaBuffer> buffers;
  int64_t arenaBytes = 0; // of all buffers, with typical sizes
  std::vector<LibraryCall> calls;
  std::vector<Source> sources;
  RowBlocks rowBlocks = {0, 0, 0};
  std::vector<RowLaunch> rowLaunches;
  bool bindsValues = false; // there is a heddle_program_bind
  bool isProfiled = false;  // it says to the runtime where each kernel begins and ends
  // AddressSanitizer looks at each access, and no tensor shares memory with another.
  bool isSanitized = false;
  double flops = 0;
  int64_t launches = 0; // of parallel regions; those in branches and loops count once
};

} // namespace heddle::program

#endif // HEDDLE_PROGRAM_PROGRAM_H
