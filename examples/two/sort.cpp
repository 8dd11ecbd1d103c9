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
/// It reads one array and writes another, so that its input stays as it is.
class Cub {
 public:
  static constexpr bool keeps_input = true;

  Cub(const Numbers& input, cudaStream_t stream)
      : stream_(stream),
        input_(input.size()),
        sorted_(input.size()),
        scratch_(sort(nullptr, 0)) {}  // which says how much it needs

  void copy_in(const Numbers& input) { input_.copy_in(input); }
  void run() { sort(scratch_.data(), scratch_.size()); }
  void copy_out(Numbers& result) { sorted_.copy_out(result); }

 private:
  std::size_t sort(void* scratch, std::size_t bytes) const {
    constexpr int first_bit = 0;
    constexpr int end_bit = 8 * sizeof(float);
    two::require(cub::DeviceRadixSort::SortKeys(scratch, bytes, input_.data(), sorted_.data(),
                                                input_.size(), first_bit, end_bit, stream_));
    return bytes;
  }

  cudaStream_t stream_;
  two::CudaArray<float> input_, sorted_;
  two::CudaArray<char> scratch_;
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
