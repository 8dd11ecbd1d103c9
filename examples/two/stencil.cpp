// SPDX-License-Identifier: Apache-2.0
// A step of the heat equation in two dimensions: each number becomes the mean of its four
// neighbours.
//   ./stencil --out=stencil.json
#include <crossover/two.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace two = crossover::two;

namespace {

/// Square; its edge stays as it is.
struct Plate {
  std::int64_t width = 0;
  std::vector<float> heat;
};

Plate hot_in_the_middle(std::int64_t width) {
  Plate plate{.width = width, .heat = std::vector<float>(static_cast<std::size_t>(width * width))};
  plate.heat[plate.heat.size() / 2] = 1;
  return plate;
}

void step_row(const Plate& from, std::vector<float>& to, std::int64_t row) {
  const std::int64_t width = from.width;
  const float* const old = from.heat.data();
  for (std::int64_t i = row * width + 1; i < (row + 1) * width - 1; ++i) {
    to[static_cast<std::size_t>(i)] =
        0.25F * (old[i - width] + old[i + width] + old[i - 1] + old[i + 1]);
  }
}

void step(const Plate& from, std::vector<float>& to) {
  to.resize(from.heat.size());
  for (std::int64_t row = 1; row < from.width - 1; ++row) {
    step_row(from, to, row);
  }
}

void step_on_all_threads(const Plate& from, std::vector<float>& to) {
  to.resize(from.heat.size());
#pragma omp parallel for
  for (std::int64_t row = 1; row < from.width - 1; ++row) {
    step_row(from, to, row);
  }
}

#ifdef __CUDACC__
__global__ void step_on_gpu(const float* from, float* to, std::int64_t width) {
  const std::int64_t column = blockIdx.x * blockDim.x + threadIdx.x;
  const std::int64_t row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row > 0 && row < width - 1 && column > 0 && column < width - 1) {
    const std::int64_t i = row * width + column;
    to[i] = 0.25F * (from[i - width] + from[i + width] + from[i - 1] + from[i + 1]);
  }
}

class Gpu {
 public:
  static constexpr bool keeps_input = true;

  Gpu(const Plate& plate, cudaStream_t stream)
      : width_(plate.width), stream_(stream), from_(plate.heat.size()), to_(plate.heat.size()) {
    two::require(cudaMemset(to_.data(), 0, to_.bytes()));
  }
  void copy_in(const Plate& plate) { from_.copy_in(plate.heat); }
  void run() {
    const dim3 block(32, 8);
    const auto width = static_cast<unsigned>(width_);
    const dim3 grid((width + block.x - 1) / block.x, (width + block.y - 1) / block.y);
    step_on_gpu<<<grid, block, 0, stream_>>>(from_.data(), to_.data(), width_);
    two::require(cudaGetLastError());
  }
  void copy_out(std::vector<float>& to) { to_.copy_out(to); }

 private:
  std::int64_t width_;
  cudaStream_t stream_;
  two::CudaArray<float> from_, to_;
};
#endif

}  // namespace

int main(int argc, char** argv) {
  two::Problem<Plate, std::vector<float>> heat{.name = "heat",
                                               .sizes = two::range(64, 4'096, 2),
                                               .make = hot_in_the_middle,
                                               .tolerance = 1e-6};
  heat.side("one thread", step);
  heat.side("all threads", step_on_all_threads);
#ifdef __CUDACC__
  heat.side<Gpu>("CUDA", two::cuda());
#endif
  return two::measure(argc, argv, heat);
}
