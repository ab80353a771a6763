// Artefact: objects, descriptor and weights linked to a shared library or to one object.

#include "compiler/target/cpu/Artefact.h"

#include "compiler/cache/Digest.h"
#include "compiler/target/cpu/Descriptor.h"
#include "compiler/target/cpu/Files.h"
#include "compiler/target/cpu/Linker.h"
#include "compiler/target/cpu/WeightsObject.h"

#include "llvm/ObjCopy/CommonConfig.h"
#include "llvm/ObjCopy/ELF/ELFConfig.h"
#include "llvm/ObjCopy/ELF/ELFObjcopy.h"
#include "llvm/Object/ELFObjectFile.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>

namespace heddle::cpu {
namespace {

int saveBytes(llvm::StringRef bytes, const std::string &path) {
  FileWriter writer(path);
  writer.write(bytes);
  return writer.close();
}

/// The shared library of this process that holds `function`: it is on the machine even where
/// development packages are not.
std::string libraryOf(void *function) {
  Dl_info info;
  return dladdr(function, &info) && info.dli_fname ? info.dli_fname : "";
}

/// The files that all kinds of artefact are linked from.
llvm::Expected<std::vector<std::string>> saveObjects(const target::Program &program,
                                                     const Target &target, const Objects &objects,
                                                     bool exportGeneric, const Workplace &place,
                                                     llvm::StringRef path) {
  std::vector<std::string> files;
  auto save = [&](llvm::StringRef bytes, const std::string &name) {
    files.push_back(place.file(name));
    return saveBytes(bytes, files.back());
  };
  auto descriptor = emitDescriptor(program, target, exportGeneric);
  if (!descriptor)
    return descriptor.takeError();
  if (int failure = save((*descriptor)->getBuffer(), "descriptor.o"))
    return writeError(path, failure);
  for (size_t i = 0; i < objects.size(); ++i)
    if (int failure = save(objects[i]->getBuffer(), "part" + std::to_string(i) + ".o"))
      return writeError(path, failure);
  return files;
}

/// Of several models in one program, only the entries may meet.
llvm::Error hideSymbols(const std::string &file, llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer)
    return writeError(path, buffer.getError().value());
  auto object = llvm::object::ObjectFile::createELFObjectFile(**buffer);
  if (!object)
    return object.takeError();
  llvm::objcopy::ELFConfig hidden;
  hidden.LocalizeHidden = true;
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  if (llvm::Error error = llvm::objcopy::elf::executeObjcopyOnBinary(
          llvm::objcopy::CommonConfig(), hidden,
          *llvm::cast<llvm::object::ELFObjectFileBase>(object->get()), stream))
    return error;
  int failure = saveBytes(llvm::StringRef(bytes.data(), bytes.size()), file);
  return failure ? writeError(path, failure) : llvm::Error::success();
}

llvm::Error linkObject(std::vector<std::string> files, const std::string &weights,
                       const Workplace &place, llvm::StringRef path) {
  std::string code = place.file("code.o");
  std::vector<std::string> arguments = {"-r", "-o", code};
  llvm::append_range(arguments, files);
  if (llvm::Error error = runLinker(arguments, path))
    return error;
  if (llvm::Error error = hideSymbols(code, path))
    return error;
  return runLinker({"-r", "-o", place.file("artefact"), code, weights}, path);
}

struct LinkOptions {
  const ArtefactOptions &given;
  std::string buildId, script; // of the order of sections, or ""
};

llvm::Error linkLibrary(std::vector<std::string> files, const std::string &weights,
                        const LinkOptions &options, const Workplace &place, llvm::StringRef path) {
  std::vector<std::string> arguments = {"-shared",
                                        "-o",
                                        place.file("artefact"),
                                        "--gc-sections",
                                        "-Bsymbolic",
                                        "--build-id=0x" + options.buildId,
                                        "-z",
                                        "now",
                                        "-z",
                                        "defs"};
  llvm::append_range(arguments, files);
  arguments.push_back(weights);
  if (!options.script.empty())
    arguments.insert(arguments.end(), {"-T", options.script});
  if (!options.given.archives.empty()) {
    arguments.push_back("--whole-archive");
    llvm::append_range(arguments, options.given.archives);
    arguments.push_back("--no-whole-archive");
  }
  llvm::append_range(arguments, options.given.libraries);
  arguments.push_back("--as-needed");
  double (*mathFunction)(double) = std::cbrt;
  for (void *function : {reinterpret_cast<void *>(mathFunction),
                         reinterpret_cast<void *>(static_cast<void *(*)(size_t)>(std::malloc))})
    if (std::string library = libraryOf(function); !library.empty())
      arguments.push_back(library);
  return runLinker(arguments, path);
}

/// Of the code and of the weights.
std::string buildIdOf(const target::Program &program, const Objects &objects) {
  std::string digests;
  auto add = [&](llvm::StringRef bytes) { digests += cache::hexOf(cache::digestOf(bytes)); };
  for (const auto &object : objects)
    add(object->getBuffer());
  for (const target::Weights::Piece &piece : program.weights.pieces) {
    digests += std::to_string(piece.offset) + " ";
    add({piece.bytes.data(), piece.bytes.size()});
  }
  return cache::hexOf(cache::digestOf(digests));
}

/// Links without the weights, and writes them to where the linker has left a hole: gigabytes are
/// written once. False where the linker leaves none.
llvm::Expected<bool> linkAroundHole(const target::Program &program,
                                    const std::vector<std::string> &files,
                                    const std::string &weights, LinkOptions options,
                                    const Workplace &place, llvm::StringRef path) {
  if (!hasLLVMLinker())
    return false;
  options.script = place.file("layout");
  // A linker that meets the limit of a file in a hole says so as a crash.
  int failure = probeSize(place.file("artefact"), program.weights.size);
  if (!failure)
    failure = saveBytes(layoutWithHole(), options.script);
  if (!failure)
    failure = writeWeightsObject(program.weights, weightsSymbol(program), weights, Data::Later);
  if (failure)
    return writeError(path, failure);
  if (llvm::Error error = linkLibrary(files, weights, options, place, path))
    return std::move(error);
  bool isFilled = false;
  failure = fillHole(program.weights, place.file("artefact"), isFilled);
  if (failure)
    return writeError(path, failure);
  return isFilled;
}

llvm::Error writeBinary(const target::Program &program, const Target &target,
                        const Objects &objects, const ArtefactOptions &given,
                        llvm::StringRef path) {
  auto place = Workplace::beside(path);
  if (!place)
    return place.takeError();
  LinkOptions options{given, "", ""};
  bool isLibrary = given.kind == "so";
  auto files = saveObjects(program, target, objects, isLibrary, **place, path);
  if (!files)
    return files.takeError();
  std::string weights = (*place)->file("weights.o"), symbol = weightsSymbol(program);
  if (isLibrary) {
    options.buildId = buildIdOf(program, objects);
    auto isDone = linkAroundHole(program, *files, weights, options, **place, path);
    if (!isDone)
      return isDone.takeError();
    if (*isDone)
      return (*place)->publish("artefact");
  }
  if (int failure = writeWeightsObject(program.weights, symbol, weights))
    return writeError(path, failure);
  if (llvm::Error error = isLibrary ? linkLibrary(*files, weights, options, **place, path)
                                    : linkObject(*files, weights, **place, path))
    return error;
  return (*place)->publish("artefact");
}

const char *dtypeName(int32_t dtype) {
  static const char *const names[] = {
      "undefined",      "float32",    "uint8",          "int8",       "uint16",   "int16",
      "int32",          "int64",      "string",         "bool",       "float16",  "float64",
      "uint32",         "uint64",     "complex64",      "complex128", "bfloat16", "float8e4m3fn",
      "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4"};
  return dtype >= 0 && dtype < int32_t(std::size(names)) ? names[dtype] : "other";
}

/// Safe inside a C comment.
std::string commentText(llvm::StringRef text) {
  std::string result;
  for (char c : text)
    result += (c == '*' || c == '\n' || c == '\\') ? '.' : c;
  return result;
}

} // namespace

std::string headerOf(const target::Program &program) {
  std::string name = identifierOf(program),
              guard = "HEDDLE_" + llvm::StringRef(name).upper() + "_H";
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "/* " << name << ": a model compiled by heddle.\n";
  auto list = [&](const char *what, const std::vector<target::Io> &ios) {
    for (const target::Io &io : ios) {
      out << " * " << what << ' ' << commentText(io.name) << ": " << dtypeName(io.dtype) << '[';
      llvm::interleave(
          io.dims, out, [&](const target::IoDim &dim) { out << commentText(dim.text); }, ", ");
      out << "]\n";
    }
  };
  list("input ", program.inputs);
  list("output", program.outputs);
  out << " */\n#ifndef " << guard << "\n#define " << guard
      << "\n\n#include \"heddle/runtime.h\"\n\n"
      << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
      << "extern const heddle_executable_t " << entrySymbol(program) << ";\n"
      << "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return out.str();
}

llvm::Error writeArtefact(const target::Program &program, const Target &target,
                          const Objects &objects, const ArtefactOptions &options,
                          llvm::StringRef path) {
  if (options.kind == "so" || options.kind == "o")
    return writeBinary(program, target, objects, options, path);
  if (options.kind == "h")
    return writeFile(path, headerOf(program));
  if (options.kind != "ll" && options.kind != "asm")
    return makeError(ErrorCode::Usage, "error: unknown kind of artefact '" + options.kind +
                                           "'\nnote: known: so, o, h, ll, asm");
  auto text = emitText(program, target, options.optLevel,
                       options.kind == "ll" ? TextKind::LLVM : TextKind::Assembly);
  if (!text)
    return text.takeError();
  return writeFile(path, *text);
}

} // namespace heddle::cpu
