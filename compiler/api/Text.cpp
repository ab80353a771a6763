// Text: see Text.h.

#include "compiler/api/Text.h"

struct heddle_text {
  std::string text;
};

heddle_status_t *heddle::textOf(heddle_text_t **result,
                                llvm::function_ref<llvm::Expected<std::string>()> make) {
  *result = nullptr;
  return guarded([&]() -> llvm::Error {
    auto text = make();
    if (!text)
      return text.takeError();
    *result = new heddle_text{std::move(*text)};
    return llvm::Error::success();
  });
}

extern "C" {

const char *heddle_text_str(const heddle_text_t *text) { return text->text.c_str(); }

void heddle_text_destroy(heddle_text_t *text) { delete text; }

} // extern "C"
