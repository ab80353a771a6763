// HostServices: ops on lists, strings and images become calls of the runtime's services, each with
// a frame of 64-bit words on the stack (enum heddle_service of abi.h).
//
// A result of one word is read where the frame lies: a list's memory is word 0 of its frame.

#include "compiler/lower/program/Host.h"

using namespace mlir;

namespace heddle::lower {

/// The word that a list's memory holds; 0 once the run has failed.
Value Host::handleOf(Value list) {
  Type i64 = builder.getI64Type();
  Value memory = pointerOf(list);
  return code->choose(
      isFine(), i64, [&] { return Values{code->load(i64, memory, code->number(0))}; },
      [&] { return Values{code->number(0)}; })[0];
}

Value Host::addressOf(Value tensor) {
  return builder.create<program::WordOp>(code->loc, pointerOf(tensor));
}

void Host::addTensor(SmallVectorImpl<Value> &frame, Value tensor) {
  frame.push_back(addressOf(tensor));
  frame.push_back(code->number(graph::rankOf(tensor)));
  for (const Dim &size : graph::dimsOf(tensor))
    frame.push_back(dim(size));
}

Value Host::positionOf(Value position, int64_t otherwise) {
  return position ? readInteger(position, 0) : code->number(otherwise);
}

/// The number of the first of the messages of the op that is being written.
Value Host::messages(ArrayRef<StringRef> texts) {
  int64_t first = program.messages.size();
  for (StringRef text : texts)
    program.messages.push_back(node + text.str());
  return code->number(first);
}

/// Calls a service unless the run has failed: then what would be results stays as given. Returns
/// the frame.
Value Host::callOn(program::Service service, ArrayRef<Value> words) {
  Type i64 = builder.getI64Type();
  Value frame = entry.create<program::ArrayOp>(code->loc, words.size());
  for (auto [i, word] : llvm::enumerate(words))
    code->store(i64, word, frame, code->number(i));
  Value services = area(program::Area::Services);
  code->when(isFine(), [&] {
    builder.create<program::ServiceOp>(code->loc, service, services, call, frame);
  });
  return frame;
}

/// The tensor whose data is word 0 of the frame, and whose sizes are words from `sizes` on, but for
/// trailing ones that are `known`.
void Host::bindMade(Value result, Value frame, int64_t sizes, ArrayRef<Value> known) {
  Type i64 = builder.getI64Type();
  Value address = code->load(i64, frame, code->number(0));
  pointers[result] = builder.create<program::PointerOp>(code->loc, address);
  SmallVector<Value> words;
  for (int64_t i = 0, told = graph::rankOf(result) - known.size(); i < told; ++i)
    words.push_back(code->load(i64, frame, code->number(sizes + i)));
  words.append(known.begin(), known.end());
  bindDims(result, words);
}

void Host::writeHosted(Operation *op) {
  if (isa<graph::RunSeedOp>(op))
    pointers[op->getResult(0)] = area(program::Area::Seed);
  else if (auto decode = dyn_cast<graph::ImageDecodeOp>(op))
    writeImageDecode(decode);
  else
    op->hasTrait<graph::OnStrings>() ? writeStringOp(op) : writeListOp(op);
}

static constexpr StringRef kPosition = "position %lld is outside of a sequence of %lld tensors";
static constexpr StringRef kRank =
    "a tensor of the sequence has rank %lld, but the model says %lld";

void Host::writeListOp(Operation *op) {
  Value zero = code->number(0);
  SmallVector<Value> frame{zero};
  auto dtypeOf = [&](Value tensor) {
    return code->number(graph::onnxTypeOf(graph::elementOf(tensor)));
  };
  auto zeros = [&](int64_t count) { frame.append(count, code->number(0)); };
  TypeSwitch<Operation *>(op)
      .Case([&](graph::ListMakeOp make) {
        bool isAbsent =
            make.getXs().empty() && graph::listOf(make.getResult()).getKind() != "sequence";
        frame.append({code->number(isAbsent), code->number(make.getXs().size())});
        for (Value x : make.getXs()) {
          frame.push_back(dtypeOf(x));
          addTensor(frame, x);
        }
        pointers[make.getResult()] = callOn(program::Service::ListMake, frame);
      })
      .Case([&](graph::ListInsertOp insert) {
        frame.append({messages({kPosition}), handleOf(insert.getList()),
                      positionOf(insert.getPosition(), INT64_MAX), dtypeOf(insert.getX())});
        addTensor(frame, insert.getX());
        pointers[insert.getResult()] = callOn(program::Service::ListInsert, frame);
      })
      .Case([&](graph::ListEraseOp erase) {
        frame.append({messages({kPosition}), handleOf(erase.getList()),
                      positionOf(erase.getPosition(), -1)});
        pointers[erase.getResult()] = callOn(program::Service::ListErase, frame);
      })
      .Case([&](graph::ListAtOp at) {
        int64_t rank = graph::rankOf(at.getResult());
        bool isOptional = graph::listOf(at.getList()).getKind() == "optional";
        frame.append({messages({isOptional ? "the optional is absent" : kPosition, kRank}),
                      handleOf(at.getList()), positionOf(at.getPosition(), 0), code->number(rank)});
        zeros(rank);
        bindMade(at.getResult(), callOn(program::Service::ListAt, frame), 5);
      })
      .Case([&](graph::ListLengthOp length) {
        frame.push_back(handleOf(length.getList()));
        pointers[length.getResult()] = callOn(program::Service::ListLength, frame);
      })
      .Case([&](graph::ListRankOp rank) {
        frame.push_back(handleOf(rank.getList()));
        pointers[rank.getResult()] = callOn(program::Service::ListRank, frame);
      })
      .Case([&](graph::ListConcatOp concat) {
        int64_t rank = graph::rankOf(concat.getResult());
        frame.append({messages({"the sequence is empty", kRank,
                                "sizes %lld and %lld of tensors to be joined differ"}),
                      handleOf(concat.getList()), code->number(concat.getAxis()),
                      code->number(concat.getNewAxis()), code->number(rank)});
        zeros(rank);
        bindMade(concat.getResult(), callOn(program::Service::ListConcat, frame), 6);
      })
      .Case([&](graph::ListSplitOp split) {
        Value sizes = split.getSizes();
        bool isVector = sizes && graph::rankOf(sizes) == 1;
        frame.append(
            {messages({"sizes of %lld do not split a size of %lld"}), code->number(split.getAxis()),
             code->number(split.getKeepDims()), sizes ? addressOf(sizes) : zero,
             isVector ? dim(graph::dimsOf(sizes)[0]) : code->number(-1), dtypeOf(split.getX())});
        addTensor(frame, split.getX());
        pointers[split.getResult()] = callOn(program::Service::ListSplit, frame);
      })
      .Case([&](graph::ListCastOp cast) {
        bool mayBeAbsent = graph::listOf(cast.getResult()).getKind() != "sequence";
        frame.append({messages({"the optional is absent"}), handleOf(cast.getList()),
                      code->number(mayBeAbsent)});
        pointers[cast.getResult()] = callOn(program::Service::ListCast, frame);
      });
}

void Host::writeStringOp(Operation *op) {
  Value zero = code->number(0), x = op->getOperand(0);
  Value count = dim(graph::elementCount(graph::dimsOf(x)));
  Type i64 = builder.getI64Type();
  TypeSwitch<Operation *>(op)
      .Case([&](graph::StringConcatOp concat) {
        callOn(program::Service::StringConcat,
               {count, addressOf(x), addressOf(concat.getY()), addressOf(concat.getResult())});
      })
      .Case([&](graph::StringSplitOp split) {
        Value delimiter = split.getDelimiter();
        bool isScanner = graph::rankOf(delimiter) == 2;
        Value frame = callOn(program::Service::StringSplit,
                             {zero, zero, count, addressOf(x), addressOf(delimiter),
                              code->number(split.getMost()), addressOf(split.getCounts()),
                              code->number(isScanner)});
        SmallVector<Value> sizes;
        for (const Dim &size : graph::dimsOf(x))
          sizes.push_back(dim(size));
        sizes.push_back(code->load(i64, frame, code->number(1)));
        bindDims(split.getPieces(), sizes);
        Value address = code->load(i64, frame, code->number(0));
        pointers[split.getPieces()] = builder.create<program::PointerOp>(code->loc, address);
      })
      .Case([&](graph::StringNormalizeOp normalize) {
        Value stopwords = normalize.getStopwords();
        int64_t letterCase = llvm::StringSwitch<int64_t>(normalize.getLetterCase())
                                 .Case("lower", 1)
                                 .Case("upper", 2)
                                 .Default(0);
        Value frame =
            callOn(program::Service::StringNormalize,
                   {zero, zero, count, addressOf(x),
                    dim(graph::elementCount(graph::dimsOf(stopwords))), addressOf(stopwords),
                    code->number(letterCase), code->number(normalize.getCaseSensitive())});
        Value address = code->load(i64, frame, code->number(0));
        Value kept = code->load(i64, frame, code->number(1));
        SmallVector<Value> sizes(graph::rankOf(x) - 1, code->number(1));
        sizes.push_back(kept);
        bindDims(normalize.getResult(), sizes);
        pointers[normalize.getResult()] = builder.create<program::PointerOp>(code->loc, address);
      })
      .Case([&](graph::StringMatchOp match) {
        callOn(
            program::Service::StringMatch,
            {count, addressOf(x), addressOf(match.getTransitions()), addressOf(match.getResult())});
      })
      .Case([&](graph::StringCastOp cast) {
        auto dtypeOf = [&](Value tensor) {
          return code->number(graph::onnxTypeOf(graph::elementOf(tensor)));
        };
        callOn(program::Service::StringCast,
               {messages({"string number %lld is no number"}), count, dtypeOf(x), addressOf(x),
                dtypeOf(cast.getResult()), addressOf(cast.getResult())});
      });
}

void Host::writeImageDecode(graph::ImageDecodeOp op) {
  Value zero = code->number(0);
  auto format = llvm::StringSwitch<program::Pixels>(op.getPixelFormat())
                    .Case("bgr", program::Pixels::Bgr)
                    .Case("gray", program::Pixels::Gray)
                    .Default(program::Pixels::Rgb);
  Value first = messages({"images are read by ImageMagick, whose library "
                          "'libMagickWand-6.Q16.so.6' is not on this machine; install Debian's "
                          "'libmagickwand-6.q16-6', or name the library's file in "
                          "HEDDLE_MAGICKWAND",
                          "its %lld bytes are no image of the formats BMP, JPEG, JPEG 2000, "
                          "PNG, PNM, TIFF and WebP"});
  Value frame = callOn(program::Service::ImageDecode,
                       {zero, zero, zero, first, dim(graph::dimsOf(op.getX())[0]),
                        addressOf(op.getX()), code->number(int64_t(format))});
  bindMade(op.getResult(), frame, 1, code->number(op.getPixelFormat() == "gray" ? 1 : 3));
}

} // namespace heddle::lower
