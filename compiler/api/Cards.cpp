// Cards: the heddle_cards_* functions over compiler/cards.

#include "compiler/api/Options.h"
#include "compiler/api/Text.h"
#include "compiler/cards/Check.h"
#include "compiler/cards/Draft.h"
#include "compiler/cards/Explain.h"

using namespace heddle;

extern "C" {

heddle_status_t *heddle_cards_list(const char *schedules, heddle_text_t **json) {
  return textOf(json, [&] { return cards::list(foldersOf(schedules)); });
}

heddle_status_t *heddle_cards_show(const char *schedules, const char *name, heddle_text_t **card) {
  return textOf(card, [&] { return cards::show(foldersOf(schedules), name); });
}

heddle_status_t *heddle_cards_explain(const char *path, const heddle_compile_options_t *given,
                                      const char *group, heddle_text_t **json) {
  return textOf(json, [&]() -> llvm::Expected<std::string> {
    auto options = optionsOf(given);
    if (!options)
      return options.takeError();
    return cards::explain({path, std::nullopt}, *options, group ? group : "");
  });
}

heddle_status_t *heddle_cards_check(const char *path, int64_t count, uint32_t seed, int64_t seconds,
                                    heddle_text_t **json) {
  return textOf(json, [&]() -> llvm::Expected<std::string> {
    cards::CheckOptions options;
    if (count > 0)
      options.count = count;
    options.seed = seed;
    options.oneDnn = oneDnnFile();
    if (seconds > 0)
      options.seconds = seconds;
    auto proof = cards::check(path, options);
    if (!proof)
      return proof.takeError();
    return proof->json();
  });
}

heddle_status_t *heddle_cards_draft(const char *name, const char *path,
                                    const heddle_compile_options_t *given, const char *group,
                                    heddle_text_t **card) {
  return textOf(card, [&]() -> llvm::Expected<std::string> {
    auto options = optionsOf(given);
    if (!options)
      return options.takeError();
    return cards::draft(name, {path, std::nullopt}, *options, group ? group : "");
  });
}

} // extern "C"
