// Fit: how far a set of ops is what a lowering form carries out.
#ifndef HEDDLE_LOOP_FIT_H
#define HEDDLE_LOOP_FIT_H

namespace heddle::loop {

/// Partial: not yet, but with producers of its ops added it may be.
enum class Fit { No, Partial, Full };

} // namespace heddle::loop

#endif // HEDDLE_LOOP_FIT_H
