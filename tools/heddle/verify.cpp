// heddle verify: whether artefacts are, byte for byte, as compiled.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/model.h"
#include "tools/heddle/table.h"

#include <iostream>

namespace heddle::cli {

namespace {
struct Options {
  std::vector<std::string> paths;
  bool isJson = false;
};
} // namespace

/// All files are looked at; the worst says how it ends.
static int run(const Options &options) {
  Json files = Json::array();
  int code = HEDDLE_OK;
  for (const std::string &path : options.paths) {
    try {
      check(heddle_module_verify(path.c_str()));
      files.push_back({{"path", path}, {"whole", true}});
      if (!options.isJson)
        print(path + ": whole\n");
    } catch (const Failure &failure) {
      code = std::max<int>(code, failure.code);
      files.push_back({{"path", path}, {"whole", false}, {"error", failure.what()}});
      std::cerr << failure.what() << "\n";
    }
  }
  if (options.isJson)
    print(Json{{"files", files}});
  return code;
}

Run addVerify(Parser app) {
  auto options = std::make_shared<Options>();
  app.add("ARTEFACT", &options->paths, "files that 'heddle compile' has written").required();
  app.addJson(&options->isJson);
  return [options] { return run(*options); };
}

} // namespace heddle::cli
