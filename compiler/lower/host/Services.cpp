// Services: the frames of ops on lists, strings and images.
//
// A result of one word is read where the frame lies: a list's memory is word 0 of its frame.

#include "compiler/lower/host/Services.h"

using namespace mlir;

namespace heddle::lower {

/// The word that a list's memory holds; 0 once the run has failed.
Value Services::handleOf(Value list) {
  Type i64 = builder.getI64Type();
  Value held = memory.pointerOf(list);
  return code.choose(
      host.isFine(), i64, [&] { return Values{code.load(i64, held, code.number(0))}; },
      [&] { return Values{code.number(0)}; })[0];
}

void Services::addTensor(SmallVectorImpl<Value> &frame, Value tensor) {
  frame.push_back(memory.addressOf(tensor));
  frame.push_back(code.number(graph::rankOf(tensor)));
  for (const Dim &size : graph::dimsOf(tensor))
    frame.push_back(sizes.dim(size));
}

Value Services::positionOf(Value position, int64_t otherwise) {
  return position ? memory.readInteger(position, 0) : code.number(otherwise);
}

/// The tensor whose data is word 0 of the frame, and whose sizes are words from `first` on, but for
/// trailing ones that are `known`.
void Services::bindMade(Value result, Value frame, int64_t first, ArrayRef<Value> known) {
  Type i64 = builder.getI64Type();
  Value address = code.load(i64, frame, code.number(0));
  memory.pointers[result] = builder.create<program::PointerOp>(code.loc, address);
  SmallVector<Value> words;
  for (int64_t i = 0, told = graph::rankOf(result) - known.size(); i < told; ++i)
    words.push_back(code.load(i64, frame, code.number(first + i)));
  words.append(known.begin(), known.end());
  sizes.bindDims(result, words);
}

void Services::write(Operation *op) {
  if (isa<graph::RunSeedOp>(op))
    memory.pointers[op->getResult(0)] = host.area(program::Area::Seed);
  else if (auto decode = dyn_cast<graph::ImageDecodeOp>(op))
    writeImageDecode(decode);
  else
    op->hasTrait<graph::OnStrings>() ? writeStringOp(op) : writeListOp(op);
}

static constexpr StringRef kPosition = "position %lld is outside of a sequence of %lld tensors";
static constexpr StringRef kRank =
    "a tensor of the sequence has rank %lld, but the model says %lld";

void Services::writeListOp(Operation *op) {
  Value zero = code.number(0);
  SmallVector<Value> frame{zero};
  auto dtypeOf = [&](Value tensor) {
    return code.number(graph::onnxTypeOf(graph::elementOf(tensor)));
  };
  auto zeros = [&](int64_t count) { frame.append(count, code.number(0)); };
  TypeSwitch<Operation *>(op)
      .Case([&](graph::ListMakeOp make) {
        bool isAbsent =
            make.getXs().empty() && graph::listOf(make.getResult()).getKind() != "sequence";
        frame.append({code.number(isAbsent), code.number(make.getXs().size())});
        for (Value x : make.getXs()) {
          frame.push_back(dtypeOf(x));
          addTensor(frame, x);
        }
        memory.pointers[make.getResult()] = host.callOn(program::Service::ListMake, frame);
      })
      .Case([&](graph::ListInsertOp insert) {
        frame.append({host.messages({kPosition}), handleOf(insert.getList()),
                      positionOf(insert.getPosition(), INT64_MAX), dtypeOf(insert.getX())});
        addTensor(frame, insert.getX());
        memory.pointers[insert.getResult()] = host.callOn(program::Service::ListInsert, frame);
      })
      .Case([&](graph::ListEraseOp erase) {
        frame.append({host.messages({kPosition}), handleOf(erase.getList()),
                      positionOf(erase.getPosition(), -1)});
        memory.pointers[erase.getResult()] = host.callOn(program::Service::ListErase, frame);
      })
      .Case([&](graph::ListAtOp at) {
        int64_t rank = graph::rankOf(at.getResult());
        bool isOptional = graph::listOf(at.getList()).getKind() == "optional";
        frame.append({host.messages({isOptional ? "the optional is absent" : kPosition, kRank}),
                      handleOf(at.getList()), positionOf(at.getPosition(), 0), code.number(rank)});
        zeros(rank);
        bindMade(at.getResult(), host.callOn(program::Service::ListAt, frame), 5);
      })
      .Case([&](graph::ListLengthOp length) {
        frame.push_back(handleOf(length.getList()));
        memory.pointers[length.getResult()] = host.callOn(program::Service::ListLength, frame);
      })
      .Case([&](graph::ListRankOp rank) {
        frame.push_back(handleOf(rank.getList()));
        memory.pointers[rank.getResult()] = host.callOn(program::Service::ListRank, frame);
      })
      .Case([&](graph::ListConcatOp concat) {
        int64_t rank = graph::rankOf(concat.getResult());
        frame.append({host.messages({"the sequence is empty", kRank,
                                     "sizes %lld and %lld of tensors to be joined differ"}),
                      handleOf(concat.getList()), code.number(concat.getAxis()),
                      code.number(concat.getNewAxis()), code.number(rank)});
        zeros(rank);
        bindMade(concat.getResult(), host.callOn(program::Service::ListConcat, frame), 6);
      })
      .Case([&](graph::ListSplitOp split) {
        Value parts = split.getSizes();
        bool isVector = parts && graph::rankOf(parts) == 1;
        frame.append({host.messages({"sizes of %lld do not split a size of %lld"}),
                      code.number(split.getAxis()), code.number(split.getKeepDims()),
                      parts ? memory.addressOf(parts) : zero,
                      isVector ? sizes.dim(graph::dimsOf(parts)[0]) : code.number(-1),
                      dtypeOf(split.getX())});
        addTensor(frame, split.getX());
        memory.pointers[split.getResult()] = host.callOn(program::Service::ListSplit, frame);
      })
      .Case([&](graph::ListCastOp cast) {
        bool mayBeAbsent = graph::listOf(cast.getResult()).getKind() != "sequence";
        frame.append({host.messages({"the optional is absent"}), handleOf(cast.getList()),
                      code.number(mayBeAbsent)});
        memory.pointers[cast.getResult()] = host.callOn(program::Service::ListCast, frame);
      });
}

void Services::writeStringOp(Operation *op) {
  Value zero = code.number(0), x = op->getOperand(0);
  Value count = sizes.dim(graph::elementCount(graph::dimsOf(x)));
  Type i64 = builder.getI64Type();
  TypeSwitch<Operation *>(op)
      .Case([&](graph::StringConcatOp concat) {
        host.callOn(program::Service::StringConcat,
                    {count, memory.addressOf(x), memory.addressOf(concat.getY()),
                     memory.addressOf(concat.getResult())});
      })
      .Case([&](graph::StringSplitOp split) {
        Value delimiter = split.getDelimiter();
        bool isScanner = graph::rankOf(delimiter) == 2;
        Value frame = host.callOn(program::Service::StringSplit,
                                  {zero, zero, count, memory.addressOf(x),
                                   memory.addressOf(delimiter), code.number(split.getMost()),
                                   memory.addressOf(split.getCounts()), code.number(isScanner)});
        SmallVector<Value> words;
        for (const Dim &size : graph::dimsOf(x))
          words.push_back(sizes.dim(size));
        words.push_back(code.load(i64, frame, code.number(1)));
        sizes.bindDims(split.getPieces(), words);
        Value address = code.load(i64, frame, code.number(0));
        memory.pointers[split.getPieces()] = builder.create<program::PointerOp>(code.loc, address);
      })
      .Case([&](graph::StringNormalizeOp normalize) {
        Value stopwords = normalize.getStopwords();
        int64_t letterCase = llvm::StringSwitch<int64_t>(normalize.getLetterCase())
                                 .Case("lower", 1)
                                 .Case("upper", 2)
                                 .Default(0);
        Value frame = host.callOn(program::Service::StringNormalize,
                                  {zero, zero, count, memory.addressOf(x),
                                   sizes.dim(graph::elementCount(graph::dimsOf(stopwords))),
                                   memory.addressOf(stopwords), code.number(letterCase),
                                   code.number(normalize.getCaseSensitive())});
        Value address = code.load(i64, frame, code.number(0));
        Value kept = code.load(i64, frame, code.number(1));
        SmallVector<Value> words(graph::rankOf(x) - 1, code.number(1));
        words.push_back(kept);
        sizes.bindDims(normalize.getResult(), words);
        memory.pointers[normalize.getResult()] =
            builder.create<program::PointerOp>(code.loc, address);
      })
      .Case([&](graph::StringMatchOp match) {
        host.callOn(program::Service::StringMatch,
                    {count, memory.addressOf(x), memory.addressOf(match.getTransitions()),
                     memory.addressOf(match.getResult())});
      })
      .Case([&](graph::StringCastOp cast) {
        auto dtypeOf = [&](Value tensor) {
          return code.number(graph::onnxTypeOf(graph::elementOf(tensor)));
        };
        host.callOn(program::Service::StringCast,
                    {host.messages({"string number %lld is no number"}), count, dtypeOf(x),
                     memory.addressOf(x), dtypeOf(cast.getResult()),
                     memory.addressOf(cast.getResult())});
      });
}

void Services::writeImageDecode(graph::ImageDecodeOp op) {
  Value zero = code.number(0);
  auto format = llvm::StringSwitch<program::Pixels>(op.getPixelFormat())
                    .Case("bgr", program::Pixels::Bgr)
                    .Case("gray", program::Pixels::Gray)
                    .Default(program::Pixels::Rgb);
  Value first =
      host.messages({"images are read by ImageMagick, whose library "
                     "'libMagickWand-6.Q16.so.6' is not on this machine; install Debian's "
                     "'libmagickwand-6.q16-6', or name the library's file in "
                     "HEDDLE_MAGICKWAND",
                     "its %lld bytes are no image of the formats BMP, JPEG, JPEG 2000, "
                     "PNG, PNM, TIFF and WebP"});
  Value frame = host.callOn(program::Service::ImageDecode,
                            {zero, zero, zero, first, sizes.dim(graph::dimsOf(op.getX())[0]),
                             memory.addressOf(op.getX()), code.number(int64_t(format))});
  bindMade(op.getResult(), frame, 1, code.number(op.getPixelFormat() == "gray" ? 1 : 3));
}

} // namespace heddle::lower
