// c_program: see c_program.h.

#include "test/ops/c_program.h"

#include "compiler/graph/Graph.h"
#include "compiler/target/c/Interface.h"

#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace heddle::ops {

namespace {
/// The file's own struct, whose dims are as many as its largest rank, and then the result's place.
struct Head {
  void *data;
  int64_t bytes;
  int32_t dtype, rank;
};

/// Bytes for sizes known only at run time: as much as no case needs.
constexpr int64_t kMore = 1 << 20;
} // namespace

std::string CProgram::make(const program::Program &program, const std::string &source,
                           std::unique_ptr<CProgram> &made) {
  char folder[] = "/tmp/heddle-ops-c-XXXXXX";
  if (!mkdtemp(folder))
    return "cannot make a folder";
  std::string base = folder, file = base + "/model.c";
  std::ofstream(file) << source;
  const char *given = std::getenv("HEDDLE_OPS_CC");
  std::string compiler = given ? given : "cc -std=c99 -pedantic -Wall -Wextra -Werror -O0";
  std::string command = compiler + " -fPIC -shared -o " + base + "/model.so " + file + " -lm 2> " +
                        base + "/messages";
  bool isCompiled = std::system(command.c_str()) == 0;
  std::stringstream messages;
  messages << std::ifstream(base + "/messages").rdbuf();
  made = std::make_unique<CProgram>();
  if (isCompiled)
    made->library = dlopen((base + "/model.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  for (const char *name : {"/model.c", "/model.so", "/messages"})
    unlink((base + name).c_str());
  rmdir(folder);
  if (!isCompiled)
    return "the C compiler refuses the file: " + messages.str().substr(0, 2000);
  if (!made->library)
    return dlerror();
  made->outputs = program.outputs;
  for (const auto *ios : {&program.inputs, &program.outputs})
    for (const program::Io &io : *ios)
      made->maxRank = std::max(made->maxRank, io.dims.size());
  made->arenaBytes = reinterpret_cast<Bytes>(dlsym(made->library, "model__arena_bytes"));
  made->runModel = reinterpret_cast<Run>(dlsym(made->library, "model__run_seeded"));
  return made->arenaBytes && made->runModel ? "" : "it does not define its functions";
}

CProgram::~CProgram() {
  if (library)
    dlclose(library);
}

std::string CProgram::run(llvm::ArrayRef<heddle_tensor_t> inputs,
                          llvm::ArrayRef<heddle_tensor_t> places, uint64_t seed,
                          std::vector<CResult> &results) {
  size_t words = sizeof(Head) / 8 + maxRank + 1;
  std::vector<int64_t> ins(words * inputs.size() + 1), outs(words * outputs.size() + 1);
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto *head = reinterpret_cast<Head *>(&ins[i * words]);
    *head = {input.data, input.bytes, input.dtype, input.rank};
    std::copy_n(input.dims, input.rank, &ins[i * words + sizeof(Head) / 8]);
  }
  for (auto [i, place] : llvm::enumerate(places))
    *reinterpret_cast<Head *>(&outs[i * words]) = {place.data, place.bytes, 0, 0};
  char message[512] = "";
  int64_t bytes = 0;
  if (arenaBytes(ins.data(), outs.data(), &bytes, message))
    return message;
  std::vector<char> arena(bytes);
  if (runModel(ins.data(), outs.data(), arena.data(), bytes, seed, message)) {
    if (!llvm::StringRef(message).contains("known only at run time"))
      return message;
    arena.assign(bytes + kMore, 0);
    message[0] = 0;
    if (runModel(ins.data(), outs.data(), arena.data(), bytes + kMore, seed, message))
      return message;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto *head = reinterpret_cast<Head *>(&outs[i * words]);
    CResult result;
    result.dtype = head->dtype;
    const int64_t *dims = &outs[i * words + sizeof(Head) / 8];
    result.shape.assign(dims, dims + head->rank);
    int64_t count = reference::countOf(result.shape) * c::elementTypeOf(head->dtype)->bytes;
    auto *data = reinterpret_cast<const char *>(outs[(i + 1) * words - 1]);
    result.bytes.assign(data, data + count);
    results.push_back(std::move(result));
  }
  return "";
}

} // namespace heddle::ops
