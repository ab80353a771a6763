// Images: files of images as pixels. Formats are not ours to define, so the oracle asks the library
// that a run asks.

#include "compiler/reference/Families.h"

#include "runtime/library/images.h"

using namespace mlir;

namespace heddle::reference {

Results compute(graph::ImageDecodeOp op, const Call &call) {
  ArrayRef<char> bytes = call[0].bytes();
  heddle_image_t *image = nullptr;
  int64_t height = 0, width = 0;
  auto status = heddle_image_open(bytes.data(), bytes.size(), &image, &height, &width);
  if (status == HEDDLE_IMAGE_NO_LIBRARY)
    return call.error("there is no library that reads images");
  if (status == HEDDLE_IMAGE_DAMAGED)
    return call.error("its " + Twine(bytes.size()) + " bytes are no image");
  int64_t format = llvm::StringSwitch<int64_t>(op.getPixelFormat())
                       .Case("bgr", HEDDLE_PIXELS_BGR)
                       .Case("gray", HEDDLE_PIXELS_GRAY)
                       .Default(HEDDLE_PIXELS_RGB);
  std::unique_ptr<heddle_image_t, decltype(&heddle_image_close)> owned(image, heddle_image_close);
  auto result = call.allocate({height, width, format == HEDDLE_PIXELS_GRAY ? 1 : 3});
  if (!result)
    return result.takeError();
  if (heddle_image_pixels(image, format, reinterpret_cast<uint8_t *>(result->data())))
    return call.error("the pixels of its image cannot be read");
  return single(std::move(*result));
}

} // namespace heddle::reference
