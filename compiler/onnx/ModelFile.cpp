// ModelFile: opening, recognising and parsing.

#include "compiler/onnx/ModelFile.h"

#include "compiler/onnx/Emitter.h"
#include "compiler/support/Files.h"
#include "compiler/support/Mapped.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

namespace heddle::onnx {

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// Names the kind of a file that is no model, by its first bytes.
static std::string fileKind(llvm::StringRef bytes) {
  struct Magic {
    size_t offset;
    llvm::StringRef text;
    const char *kind;
  };
  static const Magic magics[] = {
      {0, "PK\x03\x04", "a zip archive (a PyTorch or Keras checkpoint?)"},
      {0, "\x89HDF", "an HDF5 file (a Keras model?)"},
      {4, "TFL3", "a TensorFlow Lite model"},
      {4, "ORTM", "a model in ONNX Runtime's own format"},
      {0, "GGUF", "a GGUF model"},
      {0,
       "\x7f"
       "ELF",
       "an executable or shared library"},
      {0, "\x89PNG", "a PNG picture"},
      {0, "\xff\xd8\xff", "a JPEG picture"},
      {0, "%PDF", "a PDF document"},
      {0, "\x1f\x8b", "a gzip archive"},
      {0, "\x93NUMPY", "a NumPy array"},
      {0, "\x80\x02", "a Python pickle"},
      {0, "ML\xefR", "MLIR bytecode"},
      {0, "version https://git-lfs", "a Git LFS pointer, not the model itself"},
      {8, "{\"", "a safetensors file"},
      {0, "{", "a JSON text"},
      {0, "<", "an HTML or XML text"},
      {0, "module", "MLIR text"},
  };
  for (const Magic &magic : magics)
    if (bytes.size() > magic.offset && bytes.drop_front(magic.offset).starts_with(magic.text))
      return magic.kind;
  return "";
}

llvm::Expected<ModelFile> parseModel(llvm::ArrayRef<char> bytes, llvm::StringRef name,
                                     const ImportOptions &options) {
  auto refused = [&](const llvm::Twine &message, ErrorCode code = ErrorCode::Refused) {
    return makeError(code, name + ": error: " + message);
  };
  int64_t limit = std::min<int64_t>(options.maxBytes, INT32_MAX);
  if (bytes.empty())
    return refused("the file is empty, but an ONNX model was expected");
  if ((int64_t)bytes.size() > limit)
    return refused("the model has " + llvm::Twine(bytes.size()) + " bytes, but at most " +
                       llvm::Twine(limit) +
                       " are allowed\nnote: keep large tensors as external data",
                   ErrorCode::Limit);
  std::string kind = fileKind({bytes.data(), bytes.size()});
  ModelFile file;
  file.name = name.str();
  file.model = std::make_shared<::onnx::ModelProto>();
  google::protobuf::LogSilencer silence;
  bool parsed = kind.empty();
  if (parsed) {
    google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(bytes.data()),
                                                  static_cast<int>(bytes.size()));
    parsed = file.model->ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  }
  if (!kind.empty())
    return refused("this is not an ONNX model; it looks like " + kind);
  if (!parsed)
    return refused(
        "this is not an ONNX model: its " + llvm::Twine(bytes.size()) +
        " bytes are not a whole protobuf message\nnote: the file may be truncated or damaged, "
        "or its subgraphs nested deeper than protobuf allows (100)");
  if (!file.model->has_ir_version() || !file.model->has_graph())
    return refused(llvm::Twine("this is not an ONNX model: it has no ") +
                   (file.model->has_graph() ? "'ir_version'" : "'graph'"));
  return file;
}

static std::string keyOf(const ::onnx::FunctionProto &function) {
  std::string domain = function.domain() == "ai.onnx" ? "" : function.domain();
  return domain + ":" + function.name() + ":" + function.overload();
}

llvm::Error addFunctions(ModelFile &file, llvm::StringRef bytes, llvm::StringRef name) {
  auto refused = [&](const llvm::Twine &message) {
    return makeError(ErrorCode::Refused, name + ": error: " + message);
  };
  if (std::string kind = fileKind(bytes); !kind.empty())
    return refused("this is not a file of ONNX functions; it looks like " + kind);
  if (bytes.size() > INT32_MAX)
    return refused("the file has " + llvm::Twine(bytes.size()) + " bytes, which are too many");
  google::protobuf::LogSilencer silence;
  auto parse = [&](auto &message) {
    google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(bytes.data()),
                                                  static_cast<int>(bytes.size()));
    return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  };
  ::onnx::ModelProto library;
  if (!parse(library) || !library.has_ir_version()) { // or one function
    library.Clear();
    auto *function = library.add_functions();
    if (!parse(*function) || function->name().empty() || function->output_size() == 0)
      return refused("this is neither an ONNX model nor a FunctionProto");
  }
  if (library.functions_size() == 0)
    return refused("the model has no functions\nnote: a function is an entry of 'functions' of a "
                   "ModelProto, as onnx.helper.make_function makes it");
  llvm::StringSet<> known;
  for (const auto &function : file.model->functions())
    known.insert(keyOf(function));
  for (const auto &function : library.functions()) {
    if (!known.insert(keyOf(function)).second)
      return refused("function '" + function.name() + "' of domain '" + function.domain() +
                     "' is defined twice: the model, or another file, has it, too");
    *file.model->add_functions() = function; // the model owns what constants borrow
  }
  return llvm::Error::success();
}

llvm::Expected<ModelFile> openModel(llvm::StringRef name, const ImportOptions &options) {
  llvm::StringRef shortName = path::filename(name);
  fs::file_status status;
  if (auto error = fs::status(name, status))
    return makeError(ErrorCode::Usage, name + ": error: cannot read the model: " + error.message());
  if (std::string problem = support::irregularity(name); !problem.empty())
    return makeError(ErrorCode::Usage, name + ": error: cannot read the model: " + problem);
  auto buffer = llvm::MemoryBuffer::getFile(name, false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return makeError(ErrorCode::Usage,
                     name + ": error: cannot read the model: " + buffer.getError().message());
  llvm::StringRef bytes = (*buffer)->getBuffer();
  auto file = parseModel({bytes.data(), bytes.size()}, shortName, options);
  if (!file)
    return file.takeError();
  llvm::SmallString<256> folder;
  llvm::StringRef parent = path::parent_path(name);
  if (fs::real_path(parent.empty() ? "." : parent, folder))
    return makeError(ErrorCode::Refused, name + ": error: cannot resolve the model's folder");
  file->folder = folder.str().str();
  return file;
}

Mapping ModelFile::mapExternal(const std::string &location, int64_t maxBytes) {
  if (Mapping known = external[location])
    return known;
  if (folder.empty())
    refuse("external data '" + location + "' is needed, but the model was read from memory",
           "read the model from its file, or keep the tensors inside of it");
  llvm::StringRef text = location;
  bool leaves = text.empty() || path::is_absolute(text) || text.contains('\0');
  for (auto part = path::begin(text); part != path::end(text); ++part)
    leaves |= *part == "..";
  llvm::SmallString<256> joined(folder), real;
  path::append(joined, text);
  if (!leaves && fs::real_path(joined, real))
    refuse("external data '" + location + "' does not exist beside the model");
  // A symbolic link may lead outside, too.
  llvm::StringRef resolved = real;
  if (leaves || !(resolved.consume_front(folder) && (folder == "/" || resolved.starts_with("/"))))
    refuse("external data '" + location + "' lies outside of the model's folder",
           "the location must be a relative path that stays inside of the folder");
  if (!fs::is_regular_file(real))
    refuse("external data '" + location + "' is not a file");
  auto buffer = llvm::MemoryBuffer::getFile(real, false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    refuse("cannot read external data '" + location + "': " + buffer.getError().message());
  int64_t total = (*buffer)->getBufferSize();
  for (auto &[other, mapping] : external)
    total += mapping ? mapping->getBufferSize() : 0;
  if (total > maxBytes)
    throw Refusal{"external data is larger than the limit of " + std::to_string(maxBytes) +
                      " bytes",
                  "", ErrorCode::Limit};
  return external[location] = support::shareFile(std::move(*buffer));
}

} // namespace heddle::onnx
