// Artefact: objects, descriptor and weights linked to a shared library or to one object.

#include "compiler/target/cpu/artefact/Artefact.h"

#include "compiler/cache/Digest.h"
#include "compiler/program/Identifier.h"
#include "compiler/support/Files.h"
#include "compiler/support/Mapped.h"
#include "compiler/target/cpu/artefact/Descriptor.h"
#include "compiler/target/cpu/artefact/Linker.h"
#include "compiler/target/cpu/artefact/WeightsObject.h"

#include "runtime/executable/digest.h"

#include "llvm/ObjCopy/CommonConfig.h"
#include "llvm/ObjCopy/ELF/ELFConfig.h"
#include "llvm/ObjCopy/ELF/ELFObjcopy.h"
#include "llvm/Object/ELFObjectFile.h"

#include <cerrno>

namespace heddle::cpu {

using support::Workplace;
using support::writeError;

namespace {

int saveBytes(llvm::StringRef bytes, const std::string &path) {
  support::FileWriter writer(path);
  writer.write(bytes);
  return writer.close();
}

/// A descriptor and its objects as files; `prefix` parts those of variants.
llvm::Expected<std::vector<std::string>> saveObjects(const llvm::MemoryBuffer &descriptor,
                                                     const Objects &objects,
                                                     const std::string &prefix,
                                                     const Workplace &place, llvm::StringRef path) {
  std::vector<std::string> files;
  auto save = [&](llvm::StringRef bytes, const std::string &name) {
    files.push_back(place.file(prefix + name));
    return saveBytes(bytes, files.back());
  };
  if (int failure = save(descriptor.getBuffer(), "descriptor.o"))
    return writeError(path, failure);
  for (size_t i = 0; i < objects.size(); ++i)
    if (int failure = save(objects[i]->getBuffer(), "part" + std::to_string(i) + ".o"))
      return writeError(path, failure);
  return files;
}

/// Hides all symbols but the entries, so that several models or variants in one program do not
/// meet. `entry`, if there is one, becomes a symbol that only the next link sees.
llvm::Error hideSymbols(const std::string &file, const std::string &entry, llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer)
    return writeError(path, buffer.getError().value());
  auto object = llvm::object::ObjectFile::createELFObjectFile(**buffer);
  if (!object)
    return object.takeError();
  llvm::objcopy::ELFConfig hidden;
  hidden.LocalizeHidden = true;
  if (!entry.empty()) {
    llvm::objcopy::NameMatcher matcher;
    auto pattern = llvm::objcopy::NameOrPattern::create(entry, llvm::objcopy::MatchStyle::Literal,
                                                        [](llvm::Error error) { return error; });
    if (!pattern)
      return pattern.takeError();
    if (llvm::Error error = matcher.addMatcher(std::move(pattern)))
      return error;
    hidden.SymbolsToSetVisibility.emplace_back(std::move(matcher), llvm::ELF::STV_HIDDEN);
  }
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  if (llvm::Error error = llvm::objcopy::elf::executeObjcopyOnBinary(
          llvm::objcopy::CommonConfig(), hidden,
          *llvm::cast<llvm::object::ELFObjectFileBase>(object->get()), stream))
    return error;
  int failure = saveBytes(llvm::StringRef(bytes.data(), bytes.size()), file);
  return failure ? writeError(path, failure) : llvm::Error::success();
}

/// Joins several objects to one whose entries alone other objects see.
llvm::Error joinObjects(const std::vector<std::string> &files, const std::string &entry,
                        const std::string &joined, llvm::StringRef path) {
  std::vector<std::string> arguments = {"-r", "-o", joined};
  llvm::append_range(arguments, files);
  if (llvm::Error error = runLinker(arguments, path))
    return error;
  return hideSymbols(joined, entry, path);
}

/// The files that all kinds of artefact are linked from. The functions of each variant have the
/// same names, so each is joined to an object of its own first.
llvm::Expected<std::vector<std::string>> saveProgram(const program::Program &program,
                                                     const Target &target, const Objects &objects,
                                                     const ArtefactOptions &options,
                                                     const Workplace &place, llvm::StringRef path) {
  std::vector<std::string> variants, names;
  for (const Variant &variant : options.variants) {
    std::string name = variantSymbol(*variant.program, *variant.target);
    auto descriptor = emitVariantDescriptor(*variant.program, *variant.target);
    if (!descriptor)
      return descriptor.takeError();
    auto files = saveObjects(**descriptor, *variant.objects, name + ".", place, path);
    if (!files)
      return files.takeError();
    names.push_back(name);
    variants.push_back(place.file(name + ".o"));
    if (llvm::Error error = joinObjects(*files, name, variants.back(), path))
      return std::move(error);
  }
  auto descriptor = emitDescriptor(program, target, options.kind == "so", names);
  if (!descriptor)
    return descriptor.takeError();
  auto files = saveObjects(**descriptor, objects, "", place, path);
  if (files)
    llvm::append_range(*files, variants);
  return files;
}

llvm::Error linkObject(const std::vector<std::string> &files, const std::string &weights,
                       const Workplace &place, llvm::StringRef path) {
  std::string code = place.file("code.o");
  if (llvm::Error error = joinObjects(files, "", code, path))
    return error;
  return runLinker({"-r", "-o", place.file("artefact"), code, weights}, path);
}

/// The C library and its mathematics, for the linker. Libraries of another architecture need not be
/// on this machine: empty libraries of their names stand in for them.
llvm::Expected<std::vector<std::string>>
systemLibraries(const Target &target, const Workplace &place, llvm::StringRef path) {
  std::vector<std::string> libraries;
  if (target.isOwnArchitecture()) {
    for (const char *name : {"libm.so.6", "libc.so.6"})
      if (std::string library = pathOfLoaded(name); !library.empty())
        libraries.push_back(library);
    return libraries;
  }
  llvm::LLVMContext context;
  llvm::Module nothing("empty", context);
  auto object = emitData(nothing, target);
  if (!object)
    return object.takeError();
  std::string empty = place.file("empty.o");
  if (int failure = saveBytes((*object)->getBuffer(), empty))
    return writeError(path, failure);
  for (const char *name : {"libm.so.6", "libc.so.6"}) {
    libraries.push_back(place.file(name));
    if (llvm::Error error =
            runLinker({"-shared", "-soname", name, "-o", libraries.back(), empty}, path))
      return std::move(error);
  }
  return libraries;
}

struct LinkOptions {
  const ArtefactOptions &given;
  std::string buildId, script; // of the order of sections, or ""
};

llvm::Error linkLibrary(std::vector<std::string> files, const std::string &weights,
                        const Target &target, const LinkOptions &options, const Workplace &place,
                        llvm::StringRef path) {
  std::vector<std::string> arguments = {"-shared",
                                        "-o",
                                        place.file("artefact"),
                                        "--gc-sections",
                                        "-Bsymbolic",
                                        "--build-id=0x" + options.buildId,
                                        "-z",
                                        "now",
                                        "-z",
                                        target.isOwnArchitecture() ? "defs" : "undefs"};
  llvm::append_range(arguments, files);
  arguments.push_back(weights);
  if (!options.script.empty())
    arguments.insert(arguments.end(), {"-T", options.script});
  if (!options.given.archives.empty()) {
    arguments.push_back("--whole-archive");
    llvm::append_range(arguments, options.given.archives);
    arguments.push_back("--no-whole-archive");
  }
  if (target.isOwnArchitecture())
    arguments.push_back("--as-needed");
  auto libraries = systemLibraries(target, place, path);
  if (!libraries)
    return libraries.takeError();
  llvm::append_range(arguments, *libraries);
  return runLinker(arguments, path);
}

/// Build ID of the code, for all CPUs, and of the weights.
std::string buildIdOf(const program::Program &program, const Objects &objects,
                      const std::vector<Variant> &variants) {
  std::string digests;
  auto add = [&](llvm::StringRef bytes) { digests += cache::hexOf(cache::digestOf(bytes)); };
  for (const auto &object : objects)
    add(object->getBuffer());
  for (const Variant &variant : variants)
    for (const auto &object : *variant.objects)
      add(object->getBuffer());
  for (const program::Weights::Piece &piece : program.weights.pieces) {
    digests += std::to_string(piece.offset) + " ";
    add({piece.bytes.data(), piece.bytes.size()});
    support::letPagesGo(piece.bytes);
  }
  return cache::hexOf(cache::digestOf(digests));
}

/// Links without the weights, and writes them to where the linker has left a hole: gigabytes are
/// written once. False if the linker leaves none.
llvm::Expected<bool> linkAroundHole(const program::Program &program, const Target &target,
                                    const std::vector<std::string> &files,
                                    const std::string &weights, LinkOptions options,
                                    const Workplace &place, llvm::StringRef path) {
  if (!hasLLVMLinker())
    return false;
  options.script = place.file("layout");
  // A linker that meets the limit of a file in a hole says so as a crash.
  int failure = support::probeSize(place.file("artefact"), program.weights.size);
  if (!failure)
    failure = saveBytes(layoutWithHole(), options.script);
  if (!failure)
    failure = writeWeightsObject(program.weights, weightsSymbol(program), target.isArm(), weights,
                                 Data::Later);
  if (failure)
    return writeError(path, failure);
  if (llvm::Error error = linkLibrary(files, weights, target, options, place, path))
    return std::move(error);
  bool isFilled = false;
  failure = fillHole(program.weights, place.file("artefact"), isFilled);
  if (failure)
    return writeError(path, failure);
  return isFilled;
}

/// A shared library ends with its digest; an object file goes to a linker, which would drop it.
llvm::Error publish(Workplace &place, bool isLibrary, llvm::StringRef path) {
  if (int failure = isLibrary ? heddle_digest_append(place.file("artefact").c_str()) : 0)
    return writeError(path, failure);
  return place.publish("artefact");
}

llvm::Error writeBinary(const program::Program &program, const Target &target,
                        const Objects &objects, const ArtefactOptions &given,
                        llvm::StringRef path) {
  auto place = Workplace::beside(path);
  if (!place)
    return place.takeError();
  LinkOptions options{given, "", ""};
  bool isLibrary = given.kind == "so";
  auto files = saveProgram(program, target, objects, given, **place, path);
  if (!files)
    return files.takeError();
  std::string weights = (*place)->file("weights.o"), symbol = weightsSymbol(program);
  if (isLibrary)
    options.buildId = buildIdOf(program, objects, given.variants);
  if (isLibrary && !target.isArm()) { // the layout is that of x86-64's large sections
    auto isDone = linkAroundHole(program, target, *files, weights, options, **place, path);
    if (!isDone)
      return isDone.takeError();
    if (*isDone)
      return publish(**place, isLibrary, path);
  }
  if (int failure = writeWeightsObject(program.weights, symbol, target.isArm(), weights))
    return writeError(path, failure);
  if (llvm::Error error = isLibrary ? linkLibrary(*files, weights, target, options, **place, path)
                                    : linkObject(*files, weights, **place, path))
    return error;
  return publish(**place, isLibrary, path);
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

std::string headerOf(const program::Program &program) {
  std::string name = program::identifierOf(program),
              guard = "HEDDLE_MODEL_" + llvm::StringRef(name).upper() + "_H";
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "/* " << name << ": a model compiled by heddle.\n";
  auto list = [&](const char *what, const std::vector<program::Io> &ios) {
    for (const program::Io &io : ios) {
      out << " * " << what << ' ' << commentText(io.name) << ": " << dtypeName(io.dtype) << '[';
      llvm::interleave(
          io.dims, out, [&](const program::IoDim &dim) { out << commentText(dim.text); }, ", ");
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

llvm::Error writeArtefact(const program::Program &program, const Target &target,
                          const Objects &objects, const ArtefactOptions &options,
                          llvm::StringRef path) {
  if (options.kind == "so" || options.kind == "o")
    return writeBinary(program, target, objects, options, path);
  if (options.kind == "h")
    return support::writeFile(path, headerOf(program));
  if (options.kind != "ll" && options.kind != "asm")
    return makeError(ErrorCode::Usage, "error: unknown kind of artefact '" + options.kind +
                                           "'\nnote: known: so, o, h, ll, asm");
  auto text = emitText(program, target, options.optLevel,
                       options.kind == "ll" ? TextKind::LLVM : TextKind::Assembly);
  if (!text)
    return text.takeError();
  return support::writeFile(path, *text);
}

} // namespace heddle::cpu
