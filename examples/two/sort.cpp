// SPDX-License-Identifier: Apache-2.0
// Numbers are sorted: by one thread, by all threads and, where nvcc compiles this file, by CUB.
//   ./sort --out=sort.json
#include <crossover/two.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#ifdef _OPENMP
#include <parallel/algorithm>
#endif
#ifdef __CUDACC__
#include <cub/device/device_radix_sort.cuh>
#endif

namespace two = crossover::two;

namespace {

using Numbers = std::vector<float>;

Numbers random_numbers(std::int64_t size) {
  std::mt19937 random(1);  // the same numbers in each process
  std::uniform_real_distribution<float> any;
  Numbers numbers(static_cast<std::size_t>(size));
  for (float& number : numbers) {
    number = any(random);
  }
  return numbers;
}

#ifdef __CUDACC__
/// Memory of the GPU.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes(bytes) { two::require(cudaMalloc(&at_, bytes)); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { cudaFree(at_); }
  [[nodiscard]] float* numbers() const { return static_cast<float*>(at_); }
  [[nodiscard]] void* get() const { return at_; }

  const std::size_t bytes;

 private:
  void* at_ = nullptr;
};

/// It reads one array and writes another, so that its input stays as it is.
class Cub {
 public:
  static constexpr bool keeps_input = true;

  explicit Cub(const Numbers& input)
      : count_(input.size()),
        input_(count_ * sizeof(float)),
        sorted_(count_ * sizeof(float)),
        scratch_(scratch_bytes(count_)) {}

  /// From memory as it is. Another class could copy through a buffer of cudaMallocHost (pinned).
  void copy_in(const Numbers& input) {
    two::require(cudaMemcpy(input_.get(), input.data(), input_.bytes, cudaMemcpyHostToDevice));
  }
  void run() {
    std::size_t bytes = scratch_.bytes;
    two::require(cub::DeviceRadixSort::SortKeys(scratch_.get(), bytes, input_.numbers(),
                                                sorted_.numbers(), count_));
  }
  void copy_out(Numbers& result) {
    result.resize(count_);
    two::require(cudaMemcpy(result.data(), sorted_.get(), sorted_.bytes, cudaMemcpyDeviceToHost));
  }

 private:
  static std::size_t scratch_bytes(std::size_t count) {
    std::size_t bytes = 0;
    float* const none = nullptr;
    two::require(cub::DeviceRadixSort::SortKeys(nullptr, bytes, none, none, count));
    return bytes;
  }

  std::size_t count_;
  Buffer input_, sorted_, scratch_;
};
#endif

}  // namespace

int main(int argc, char** argv) {
  two::Problem<Numbers> sort{
      .name = "sort", .sizes = two::range(1'000, 4'000'000), .make = random_numbers};
  sort.side("std::sort", [](Numbers& numbers) { std::sort(numbers.begin(), numbers.end()); });
#ifdef _OPENMP
  sort.side("all threads",
            [](Numbers& numbers) { __gnu_parallel::sort(numbers.begin(), numbers.end()); });
#endif
#ifdef __CUDACC__
  sort.side<Cub>("CUB", two::cuda());
#endif
  return two::measure(argc, argv, sort);
}
