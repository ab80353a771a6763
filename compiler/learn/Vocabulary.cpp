// Vocabulary: see Vocabulary.h. A test compares the lists with the dialect and the mechanisms.

#include "compiler/learn/Vocabulary.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using llvm::StringRef;

namespace heddle::learn {

static llvm::SmallVector<StringRef> wordsOf(StringRef text) {
  llvm::SmallVector<StringRef> words;
  text.split(words, ' ');
  return words;
}

Words opNames() {
  static const llvm::SmallVector<StringRef> names = wordsOf(
      "other input abs acos acosh add and argmax argmin asin asinh atan atanh bind_sizes "
      "bit_and bit_not bit_or bit_xor bitcast broadcast cast ceil concat constant conv "
      "conv_filter_gradient conv_transpose cos cosh cumsum custom div dynamic_broadcast "
      "dynamic_reshape dynamic_slice equal erf exp expm1 floor forest fourier gather "
      "gather_elements gather_nd greater greater_equal group if image_decode iota is_inf "
      "is_nan less less_equal list_at list_cast list_concat list_erase list_insert "
      "list_length list_make list_rank list_split log log1p lookup loop matmul max min mod mul neg "
      "nonzero not not_equal or pad pool pow range reduce_max reduce_min reduce_prod "
      "reduce_sum reshape resize reverse_sequence round row_lengths run_seed scan "
      "scatter_elements scatter_nd select shift_left shift_right sigmoid sign sin sinh sizes "
      "slice sqrt string_cast string_concat string_match string_normalize string_split sub "
      "suppress tan tanh topk transpose trunc unique unpool xor yield");
  return names;
}

Words mechanismNames() {
  static const llvm::SmallVector<StringRef> names = wordsOf(
      "other attention contraction filter_gradient narrow place pointwise rows serial stitch "
      "window winograd onednn.matmul onednn.convolution onednn.layer_norm kernel.product "
      "kernel.rows kernel.nest attention_gradient");
  return names;
}

Words knobNames() {
  static const llvm::SmallVector<StringRef> names =
      wordsOf("m n panels tiles rows chunk pixels tile late parts chunks strips turned");
  return names;
}

size_t indexOf(Words names, StringRef name) {
  const StringRef *found = llvm::find(names, name);
  return found == names.end() ? 0 : found - names.begin();
}

} // namespace heddle::learn
