// Cache: the heddle_cache_* functions over compiler/cache.

#include "compiler/api/Options.h"
#include "compiler/api/Text.h"
#include "compiler/support/Json.h"

using namespace heddle;

static std::string describe(const cache::Cache *cache, cache::Usage usage) {
  Json json = {
      {"path", cache ? cache->path() : ""}, {"entries", usage.entries}, {"bytes", usage.bytes}};
  if (std::string complaint = cache ? cache->complaint() : ""; !complaint.empty())
    json["not_used"] = complaint;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

extern "C" {

heddle_status_t *heddle_cache_usage(const char *folder, heddle_text_t **json) {
  return textOf(json, [&]() -> llvm::Expected<std::string> {
    auto cache = cacheOf(folder, 0);
    return describe(cache.get(), cache ? cache->usage() : cache::Usage());
  });
}

heddle_status_t *heddle_cache_shrink(const char *folder, int64_t bytes, heddle_text_t **json) {
  return textOf(json, [&]() -> llvm::Expected<std::string> {
    auto cache = cacheOf(folder, 0);
    if (bytes < 0)
      return makeError(ErrorCode::Usage, "error: " + llvm::Twine(bytes) +
                                             " bytes cannot be left, but 0 and more can");
    return describe(cache.get(), cache ? cache->shrink(bytes) : cache::Usage());
  });
}

} // extern "C"
