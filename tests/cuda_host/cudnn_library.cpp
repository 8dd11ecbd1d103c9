// SPDX-License-Identifier: Apache-2.0
// In the place of src/cuda/libraries/cudnn_library.cpp: convolutions as forms.h defines
// them, summed in double and rounded once. What cuDNN has for which shape, only hardware shows.
#include "libraries/library.h"

#include <string>
#include <utility>
#include <vector>

#include "crossover/backend.h"
#include "cudnn_plan.h"
#include "numbers.h"

namespace cuda_host {
namespace {

using crossover::Type;
using crossover::cuda::Arrangement;
using crossover::cuda::CalledConvolution;
using crossover::cuda::ConvolutionForm;
using crossover::cuda::ConvolutionPass;
using crossover::cuda::Layout;

cudaDataType_t data_type(Type type) {
  return type == Type::bf16 ? CUDA_R_16BF : type == Type::f16 ? CUDA_R_16F : CUDA_R_32F;
}

/// Input channels.
std::int64_t of_group(const ConvolutionForm& f) { return f.in / f.groups; }

struct Extents {
  std::int64_t x, w, y;
};
Extents extents_of(const ConvolutionForm& f) {
  return {.x = f.batch * f.height * f.width * f.in,
          .w = f.out * f.size.product() * of_group(f),
          .y = f.batch * f.positions_down * f.positions_across * f.out};
}

/// Where the elements of a channels-last tensor lie in the form's layout: all are summed in that
/// one.
class Places {
 public:
  Places(const ConvolutionForm& f, std::int64_t channels, std::int64_t pixels)
      : arrangement_(f.layout == Layout::plain ? Arrangement{channels, pixels} : Arrangement{}) {}
  [[nodiscard]] std::int64_t at(std::int64_t i) const {
    return arrangement_.is_plain() ? i : plain_index(i, arrangement_);
  }

 private:
  Arrangement arrangement_;
};

CUDA_HOST_CHECKED_BEFORE std::vector<double> read(const void* from, std::int64_t count,
                                                  const Places& places, Type type, bool tf32) {
  const Numbers numbers(from, data_type(type));
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = numbers.get(places.at(i));
    values[static_cast<std::size_t>(i)] = tf32 ? to_tf32(value) : value;
  }
  return values;
}

/// to += factor x, both [count].
CUDA_HOST_CHECKED_BEFORE void add(double* to, double factor, const double* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] += factor * x[i];
  }
}

CUDA_HOST_CHECKED_BEFORE double dot(const double* a, const double* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

/// meet(x, w, y) for the places of the products of all input channels of a group with one of the
/// output: the first of x, the first of w, and y.
template <class Meet>
void for_each_pixel(const ConvolutionForm& f, const Meet& meet) {
  for (std::int64_t n = 0; n < f.batch; ++n) {
    for (std::int64_t down = 0; down < f.positions_down; ++down) {
      for (std::int64_t across = 0; across < f.positions_across; ++across) {
        for (std::int64_t r = 0; r < f.size.down; ++r) {
          for (std::int64_t s = 0; s < f.size.across; ++s) {
            const std::int64_t row = down * f.stride.down - f.padding.down + r * f.dilation.down;
            const std::int64_t column =
                across * f.stride.across - f.padding.across + s * f.dilation.across;
            if (row < 0 || row >= f.height || column < 0 || column >= f.width) {
              continue;
            }
            for (std::int64_t o = 0; o < f.out; ++o) {
              const std::int64_t group = o / (f.out / f.groups);
              meet(((n * f.height + row) * f.width + column) * f.in + group * of_group(f),
                   ((o * f.size.down + r) * f.size.across + s) * of_group(f),
                   ((n * f.positions_down + down) * f.positions_across + across) * f.out + o);
            }
          }
        }
      }
    }
  }
}

void convolve(const CalledConvolution& of, bool tf32) {
  const ConvolutionForm& f = of.form;
  const Extents extents = extents_of(f);
  std::vector<double> sums;
  void* result = nullptr;
  const Places x_places(f, f.in, f.height * f.width);
  const Places w_places(f, of_group(f), f.size.product());
  const Places y_places(f, f.out, f.positions_down * f.positions_across);
  const Places* places = &y_places;
  const auto x = [&] { return read(of.x, extents.x, x_places, f.type, tf32); };
  const auto w = [&] { return read(of.w, extents.w, w_places, f.type, tf32); };
  const auto y = [&] { return read(of.y, extents.y, y_places, f.type, tf32); };
  switch (f.pass) {
    case ConvolutionPass::forward:
      result = of.y;
      sums.resize(static_cast<std::size_t>(extents.y));
      for_each_pixel(f, [&, x = x(), w = w()](auto i, auto j, auto k) {
        sums[static_cast<std::size_t>(k)] += dot(x.data() + i, w.data() + j, of_group(f));
      });
      break;
    case ConvolutionPass::dx:
      result = of.x;
      places = &x_places;
      sums.resize(static_cast<std::size_t>(extents.x));
      for_each_pixel(f, [&, w = w(), y = y()](auto i, auto j, auto k) {
        add(sums.data() + i, y[static_cast<std::size_t>(k)], w.data() + j, of_group(f));
      });
      break;
    case ConvolutionPass::dw:
      result = of.w;
      places = &w_places;
      sums.resize(static_cast<std::size_t>(extents.w));
      for_each_pixel(f, [&, x = x(), y = y()](auto i, auto j, auto k) {
        add(sums.data() + j, y[static_cast<std::size_t>(k)], x.data() + i, of_group(f));
      });
      break;
  }
  const Numbers bias(of.bias, data_type(f.type));
  const Numbers to(result, data_type(f.result));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    double value = sums[i] + (f.bias ? bias.get(static_cast<std::int64_t>(i) % f.out) : 0.0);
    value = f.relu && value < 0 ? 0 : value;
    to.set(places->at(static_cast<std::int64_t>(i)), value);
  }
}

std::vector<Range> ranges_of(const CalledConvolution& of) {
  const ConvolutionForm& form = of.form;
  const Extents extents = extents_of(form);
  const auto range = [&](const char* name, const void* from, std::int64_t count,
                         ConvolutionPass writes) {
    const bool written = form.pass == writes;
    return Range{
        name, from,
        static_cast<std::size_t>(count * crossover::bytes(written ? form.result : form.type)),
        written};
  };
  std::vector<Range> ranges{range("x", of.x, extents.x, ConvolutionPass::dx),
                            range("w", of.w, extents.w, ConvolutionPass::dw),
                            range("y", of.y, extents.y, ConvolutionPass::forward)};
  if (form.bias) {
    ranges.push_back({"the bias", of.bias,
                      static_cast<std::size_t>(form.out * crossover::bytes(form.type)), false});
  }
  return ranges;
}

class HostCudnn : public crossover::cuda::ConvolutionLibrary {
 public:
  explicit HostCudnn(crossover::Precision precision)
      : tf32_(precision == crossover::Precision::tf32) {}

  [[nodiscard]] int algorithms(const ConvolutionForm& form) override {
    CROSSOVER_CUDA_CHECK(enter("cudnnPlans"));
    if (!state().device.no_cudnn.empty()) {
      throw crossover::Unsupported(state().device.no_cudnn);
    }
    const bool is_fused = form.bias || form.relu;
    const bool fits = form.alignment >= crossover::bytes(form.type) &&
                      (form.pass == ConvolutionPass::forward || !is_fused);
    const bool refused = is_fused && state().device.refuses_fused_convolutions;
    return fits && !refused ? static_cast<int>(cuda_host::plans.size()) : 0;
  }

  [[nodiscard]] std::unique_ptr<crossover::cuda::PreparedConvolution> make(
      const CalledConvolution& /*of*/, int algorithm) override {
    CROSSOVER_CUDA_CHECK(enter("cudnnMake"));
    const Emulated<CalledConvolution> emulated{"convolution", ranges_of, convolve};
    return std::make_unique<HostPlan<CalledConvolution>>(
        emulated, static_cast<std::size_t>(algorithm), tf32_);
  }

 private:
  bool tf32_;
};

}  // namespace
}  // namespace cuda_host

namespace crossover::cuda {

std::string cudnn_version() { return "emulated"; }

std::string nvrtc_version() { return "emulated"; }

std::unique_ptr<ConvolutionLibrary> make_cudnn_library(Precision precision,
                                                       std::int64_t /*memory_bytes*/) {
  return std::make_unique<cuda_host::HostCudnn>(precision);
}

}  // namespace crossover::cuda
