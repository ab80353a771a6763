// Handles: the C API's handles, each destroyed with its owner.
#ifndef HEDDLE_TOOLS_HEDDLE_HANDLES_H
#define HEDDLE_TOOLS_HEDDLE_HANDLES_H

#include "heddle/compiler.h"

#include <memory>

namespace heddle::cli {

template <auto destroy> struct Destroy {
  template <typename T> void operator()(T *handle) const { destroy(handle); }
};

using Compiled = std::unique_ptr<heddle_compiled_t, Destroy<heddle_compiled_destroy>>;
using Text = std::unique_ptr<heddle_text_t, Destroy<heddle_text_destroy>>;
using Module = std::unique_ptr<heddle_module_t, Destroy<heddle_module_destroy>>;
using Session = std::unique_ptr<heddle_session_t, Destroy<heddle_session_destroy>>;

} // namespace heddle::cli

#endif
