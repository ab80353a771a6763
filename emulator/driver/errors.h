// Errors: results of driver functions that the emulator gives, with their names.
#pragma once

namespace heddle::emulator {

enum Result : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  NoBinaryForGpu = 209,
  InvalidPtx = 218,
  UnsupportedPtxVersion = 222,
  InvalidHandle = 400,
  NotFound = 500,
  NotReady = 600,
  HostMemoryAlreadyRegistered = 712,
  HostMemoryNotRegistered = 713,
  CaptureUnsupported = 900,
  CaptureInvalidated = 901,
  CaptureMerge = 902,
  CaptureUnmatched = 903,
  CaptureUnjoined = 904,
  CaptureImplicit = 906,
  CapturedEvent = 907,
  CaptureWrongThread = 908,
  GraphUpdateFailure = 910
};

/// Name and words of a result; null for one that no driver has.
const char *nameOf(int result);
const char *wordsOf(int result);

} // namespace heddle::emulator
