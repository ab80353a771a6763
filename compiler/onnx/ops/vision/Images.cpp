// Images: files of images become tensors of pixels.

#include "compiler/onnx/Table.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static void importImageDecoder(Node &n) {
  Value x = n.in(0);
  std::string format = n.getText("pixel_format", "RGB");
  StringRef known =
      llvm::StringSwitch<StringRef>(format).Case("RGB", "rgb").Case("BGR", "bgr").Default("gray");
  if (!llvm::is_contained({"RGB", "BGR", "Grayscale"}, format))
    refuse("attribute 'pixel_format' is '" + format + "', but must be RGB, BGR or Grayscale");
  if (rankOf(x) != 1 || !elementOf(x).isUnsignedInteger(8))
    refuse("the input must be the bytes of a file, a vector of uint8, but is " +
           nameOf(elementOf(x)) + textOf(dimsOf(x)));
  DimVector pixels{n.freshSymbol("height"), n.freshSymbol("width"), Dim(known == "gray" ? 1 : 3)};
  n.set(
      n.typed<ImageDecodeOp>(n.tensor(pixels, elementOf(x)), {x}, {n.text("pixel_format", known)}));
}

OpRows imageRows() {
  static const OpRow rows[] = {
      {"ImageDecoder", "", 20, 27, importImageDecoder, false,
       "with ImageMagick's library, which is opened by the run; the first image of a file"},
  };
  return rows;
}

} // namespace heddle::onnx
