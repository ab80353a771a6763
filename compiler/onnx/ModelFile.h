// ModelFile: the bytes of a model and of its external data, mapped, and the parsed protobuf
// message.
//
// Constants point into these bytes. Each constant's blob holds a share, so that the mapping lives
// exactly as long as a constant that needs it.
#ifndef HEDDLE_ONNX_MODEL_FILE_H
#define HEDDLE_ONNX_MODEL_FILE_H

#include "compiler/onnx/Importer.h"

#include "onnx.pb.h"

namespace llvm {
class MemoryBuffer;
}

namespace heddle::onnx {

using Mapping = std::shared_ptr<llvm::MemoryBuffer>;

struct ModelFile {
  std::string name;   // as in messages: the file's name without its folder
  std::string folder; // empty when the model came from memory
  std::shared_ptr<::onnx::ModelProto> model;
  std::map<std::string, Mapping> external;

  /// Maps a file that external data names; `path` is relative to the model's folder and must stay
  /// inside. Throws Refusal.
  Mapping mapExternal(const std::string &path, int64_t maxBytes);
};

llvm::Expected<ModelFile> openModel(llvm::StringRef path, const ImportOptions &options);
llvm::Expected<ModelFile> parseModel(llvm::ArrayRef<char> bytes, llvm::StringRef name,
                                     const ImportOptions &options);

/// Adds the functions of a file, an ONNX model or one FunctionProto, to those of the model. Refused
/// where it has none, or one that is there already.
llvm::Error addFunctions(ModelFile &file, llvm::StringRef bytes, llvm::StringRef name);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_MODEL_FILE_H
