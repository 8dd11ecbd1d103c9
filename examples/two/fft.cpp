// SPDX-License-Identifier: Apache-2.0
// Rows of 1,024 complex numbers are transformed (Fourier): by FFTW on one thread, on all threads
// and, where nvcc compiles this file, by cuFFT. The size is the number of rows.
//   ./fft --out=fft.json
#include <crossover/two.h>
#include <fftw3.h>
#include <omp.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#ifdef __CUDACC__
#include <cufft.h>
#endif

namespace two = crossover::two;

namespace {

constexpr int length = 1'024;
using Signal = std::vector<std::complex<float>>;

Signal noise(std::int64_t rows) {
  std::mt19937 random(1);  // the same numbers in each process
  std::uniform_real_distribution<float> any(-1, 1);
  Signal signal(static_cast<std::size_t>(rows * length));
  for (std::complex<float>& number : signal) {
    number = {any(random), any(random)};
  }
  return signal;
}

/// Its plan is made where its arrays are, before anything is timed.
template <bool on_all_threads>
class Fftw {
 public:
  explicit Fftw(const Signal& input) : from_(input.size()), to_(input.size()) {
    fftwf_plan_with_nthreads(on_all_threads ? omp_get_max_threads() : 1);
    const auto at = [](Signal& of) { return reinterpret_cast<fftwf_complex*>(of.data()); };
    const int rows = static_cast<int>(input.size()) / length;
    plan_ = fftwf_plan_many_dft(1, &length, rows, at(from_), nullptr, 1, length, at(to_), nullptr,
                                1, length, FFTW_FORWARD, FFTW_MEASURE);
    from_ = input;  // planning has overwritten both
  }
  Fftw(const Fftw&) = delete;
  Fftw& operator=(const Fftw&) = delete;
  ~Fftw() { fftwf_destroy_plan(plan_); }
  void run() { fftwf_execute(plan_); }
  void copy_out(Signal& result) { result = to_; }

 private:
  Signal from_, to_;
  fftwf_plan plan_;
};

#ifdef __CUDACC__
class Cufft {
 public:
  static constexpr bool keeps_input = true;

  Cufft(const Signal& input, cudaStream_t stream) : from_(input.size()), to_(input.size()) {
    const int rows = static_cast<int>(input.size()) / length;
    two::require(cufftPlan1d(&plan_, length, CUFFT_C2C, rows), "cuFFT");
    two::require(cufftSetStream(plan_, stream), "cuFFT");
  }
  ~Cufft() { cufftDestroy(plan_); }
  void copy_in(const Signal& input) { from_.copy_in(input); }
  void run() {
    const auto at = [](const auto& of) { return reinterpret_cast<cufftComplex*>(of.data()); };
    two::require(cufftExecC2C(plan_, at(from_), at(to_), CUFFT_FORWARD), "cuFFT");
  }
  void copy_out(Signal& result) { to_.copy_out(result); }

 private:
  two::CudaArray<Signal::value_type> from_, to_;
  cufftHandle plan_{};
};
#endif

}  // namespace

int main(int argc, char** argv) {
  fftwf_init_threads();
  two::Problem<Signal> fft{
      .name = "fft", .sizes = two::range(1, 4'096), .make = noise, .tolerance = 1e-5};
  fft.bytes = [](std::int64_t rows) {
    return 2.0 * sizeof(Signal::value_type) * length * static_cast<double>(rows);
  };
  fft.side<Fftw<false>>("FFTW, one thread", {});
  fft.side<Fftw<true>>("FFTW, all threads", {});
#ifdef __CUDACC__
  fft.side<Cufft>("cuFFT", two::cuda());
#endif
  return two::measure(argc, argv, fft);
}
