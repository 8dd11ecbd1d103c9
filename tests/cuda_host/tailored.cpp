// SPDX-License-Identifier: Apache-2.0
// Stands in for libraries/nvrtc_library.cpp: the same kernel, compiled with the tests for some
// networks.
#include "tailored.h"

#include <cstdint>
#include <utility>

#include "crossover/backend.h"
#include "kernels/tailored.cuh"
#include "launch.cuh"
#include "libraries/tailored_kernel.h"

namespace crossover::cuda {
namespace {

template <std::size_t place, bool keep>
struct Network {
  static constexpr tailored::Shape shape = [] {
    tailored::Shape of = tailored::networks[place];
    of.keep = keep;
    return of;
  }();
};

template <class Of>
void tailored_kernel(tailored::Arguments of) {
  tailored::train<Of>(of, dynamic_shared());
}

template <class Of>
class Kernel : public TailoredKernel {
 public:
  Kernel() { allow_shared_bytes(tailored_kernel<Of>, bytes); }
  void launch(cudaStream_t stream, const tailored::Arguments& arguments,
              int copies) const override {
    constexpr auto blocks = static_cast<unsigned>(Of::shape.blocks);
    const Grid grid{static_cast<unsigned>(copies) * blocks,
                    static_cast<unsigned>(Of::shape.threads), bytes};
    if constexpr (blocks > 1) {
      launch_clusters(tailored_kernel<Of>, grid, blocks, stream, arguments);
    } else {
      cuda::launch(tailored_kernel<Of>, grid, stream, arguments);
    }
  }

 private:
  static constexpr unsigned bytes = layout_of(Of::shape).floats * sizeof(float);
};

template <bool keep, std::size_t... places>
std::unique_ptr<TailoredKernel> find(const tailored::Shape& shape, std::index_sequence<places...>) {
  std::unique_ptr<TailoredKernel> found;
  const auto take = [&]<std::size_t place>() {
    if (Network<place, keep>::shape == shape) {
      found = std::make_unique<Kernel<Network<place, keep>>>();
    }
  };
  (take.template operator()<places>(), ...);
  return found;
}

}  // namespace

std::unique_ptr<TailoredKernel> make_tailored_kernel(const tailored::Shape& shape) {
  constexpr auto all = std::make_index_sequence<tailored::networks.size()>();
  constexpr auto kept = std::make_index_sequence<tailored::kept_networks>();
  std::unique_ptr<TailoredKernel> found =
      shape.keep ? find<true>(shape, kept) : find<false>(shape, all);
  if (found == nullptr) {
    throw Unsupported("the emulation has no NVRTC to compile a kernel for this network");
  }
  return found;
}

}  // namespace crossover::cuda
