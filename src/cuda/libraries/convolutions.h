// SPDX-License-Identifier: Apache-2.0
// By which of its library's plans a program convolves.
#pragma once

#include <map>
#include <memory>

#include "algorithms.h"
#include "convolution_library.h"
#include "crossover/backend.h"

namespace crossover::cuda {

class Convolutions {
 public:
  explicit Convolutions(std::unique_ptr<ConvolutionLibrary> library)
      : library_(std::move(library)),
        plans_("cuDNN", [this](const ConvolutionForm& form) { return library_->plans(form); }) {}

  /// Whether a plan is left for the form. Throws Unsupported where there is no library.
  [[nodiscard]] bool supports(const ConvolutionForm& form) { return !plans_.left(form).empty(); }

  /// Takes for the form the library's best guess that runs, or the fastest of all that do. Runs
  /// them on these operands, which it writes to like the convolution itself. Does nothing for a
  /// form that it has chosen for. Throws NoneRuns.
  void choose(const ConvolutionForm& form, const ConvolutionOperands& operands, cudaStream_t stream,
              ConvolutionChoice how);

  /// The plan that was chosen.
  [[nodiscard]] std::shared_ptr<const ConvolutionPlan> chosen(const ConvolutionForm& form) const {
    return chosen_.at(form);
  }

 private:
  std::unique_ptr<ConvolutionLibrary> library_;
  Algorithms<ConvolutionForm, ConvolutionPlan> plans_;
  std::map<ConvolutionForm, std::shared_ptr<const ConvolutionPlan>> chosen_;
};

}  // namespace crossover::cuda
