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

}  // namespace

std::string cudnn_version() { return ""; }

std::unique_ptr<ConvolutionLibrary> make_cudnn_library(Precision /*precision*/,
                                                       std::int64_t /*workspace_bytes*/) {
  return std::make_unique<NoCudnn>();
}

}  // namespace crossover::cuda
