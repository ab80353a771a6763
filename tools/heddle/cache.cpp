// heddle cache: what earlier compilations have left for later ones.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/model.h"
#include "tools/heddle/table.h"

namespace heddle::cli {

namespace {
struct Options {
  std::optional<std::string> folder;
  std::optional<int64_t> left; // bytes that may stay
  bool isCleared = false, isJson = false;
};
} // namespace

static int run(const Options &options) {
  const char *folder = options.folder ? options.folder->c_str() : nullptr;
  heddle_text_t *made = nullptr;
  if (options.isCleared || options.left)
    check(heddle_cache_shrink(folder, options.left.value_or(0), &made));
  else
    check(heddle_cache_usage(folder, &made));
  Text text(made);
  Json usage = parseJson(heddle_text_str(text.get()));
  if (options.isJson) {
    print(usage);
    return HEDDLE_OK;
  }
  std::string path = usage.at("path");
  if (path.empty())
    print(std::string("there is no cache: HEDDLE_CACHE is empty, or there is no home\n"));
  else if (usage.contains("not_used"))
    print(path + " is not used: " + usage.at("not_used").get<std::string>() +
          "\nnote: only a folder that is this user's own can be trusted; HEDDLE_CACHE names "
          "another one\n");
  else
    print(path + "  " + usage.at("entries").dump() + " entries, " + formatBytes(usage.at("bytes")) +
          "\n");
  return HEDDLE_OK;
}

Run addCache(Parser app) {
  auto options = std::make_shared<Options>();
  addCacheOption(app, &options->folder);
  app.addFlag("--clear", &options->isCleared, "remove all entries");
  app.add("--shrink", &options->left,
          "remove what was not used for the longest time, until "
          "so much is left")
      .notNegative()
      .type("BYTES")
      .excludes("--clear");
  app.addJson(&options->isJson);
  return [options] { return run(*options); };
}

} // namespace heddle::cli
