// SPDX-License-Identifier: Apache-2.0
// What tests of the backend on the emulation share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "crossover/backend.h"
#include "crossover/verify.h"
#include "support.h"

namespace crossover::test {

constexpr unsigned all_epilogues = ~0U;  ///< as Device::refused_epilogues

/// The emulated GPU as it is set now.
inline std::unique_ptr<Backend> gpu() {
  FoundBackend made = make_cuda_backend();
  EXPECT_EQ(made.reason, "");
  return std::move(made.backend);
}

const auto executions = testing::Values(Execution::eager, Execution::graph, Execution::graph_epoch);

inline std::string name_of(Placement placement) {
  switch (placement) {
    case Placement::resident:
      return "resident";
    case Placement::pageable:
      return "pageable";
    case Placement::pinned:
      return "pinned";
    case Placement::pinned_async:
      return "pinned_async";
  }
  return "";
}

/// What a life ends with: the exception's kind and sentence, or nothing.
struct End {
  std::string kind, sentence;
};

template <class Life>
End end_of(const Life& life) {
  try {
    life();
    return {};
  } catch (const OutOfMemory& error) {
    return {"OutOfMemory", error.what()};
  } catch (const DeviceFailed& error) {
    return {"DeviceFailed", error.what()};
  } catch (const Unsupported& error) {
    return {"Unsupported", error.what()};
  } catch (const Mismatch& error) {
    return {"Mismatch", error.what()};
  } catch (const std::exception& error) {
    return {"exception", error.what()};
  }
}

/// Gradients that are added up over two steps: products that read what they write.
inline Training accumulating() {
  return {
      fuse(training_epoch(residual_model(),
                          {.rows = 23, .batch = 5, .optimizer = AdamWOptions{}, .accumulate = 2})),
      uniform_rows({5}, 23, 3)};
}

}  // namespace crossover::test
