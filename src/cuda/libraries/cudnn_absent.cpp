// SPDX-License-Identifier: Apache-2.0
// In the place of cudnn_library.cpp in a build without cuDNN.
#include "crossover/backend.h"
#include "library.h"

namespace crossover::cuda {
namespace {

class NoCudnn : public ConvolutionLibrary {
 public:
  [[nodiscard]] int algorithms(const ConvolutionForm& /*form*/) override {
    throw Unsupported("this build has no cuDNN: " CROSSOVER_NO_CUDNN);
  }
  [[nodiscard]] std::unique_ptr<PreparedConvolution> make(const CalledConvolution& of,
                                                          int /*algorithm*/) override {
    static_cast<void>(algorithms(of.form));
    return nullptr;
  }
};

class NoSdpa : public SdpaLibrary {
 public:
  [[nodiscard]] int algorithms(const SdpaForm& /*form*/) override { return 0; }
  [[nodiscard]] std::unique_ptr<PreparedSdpa> make(const CalledSdpa& /*of*/,
                                                   int /*algorithm*/) override {
    throw Unsupported("this build has no cuDNN: " CROSSOVER_NO_CUDNN);
  }
};

}  // namespace

std::string cudnn_version() { return ""; }

std::string nvrtc_version() { return ""; }

std::unique_ptr<ConvolutionLibrary> make_cudnn_library(Precision /*precision*/,
                                                       std::int64_t /*memory_bytes*/) {
  return std::make_unique<NoCudnn>();
}

std::unique_ptr<SdpaLibrary> make_sdpa_library(Precision /*precision*/,
                                               std::int64_t /*memory_bytes*/) {
  return std::make_unique<NoSdpa>();
}

}  // namespace crossover::cuda
