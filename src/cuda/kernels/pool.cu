// SPDX-License-Identifier: Apache-2.0
#include "../plan/launches/pool.h"

#include <type_traits>

#include "../base/site.h"
#include "convert.cuh"
#include "grid.cuh"

namespace crossover::cuda {
namespace {

/// A Pooling in 32 bits: a GPU divides these several times faster.
struct Slide32 {
  int extent, positions;  // rows or columns of the image, and of the result
  int size, stride, padding;
};
struct Window32 {
  int channels;
  Slide32 down, across;
  PoolKind kind;
};

Window32 in_32_bits(const Pooling& p) {
  return {.channels = static_cast<int>(p.channels),
          .down = {.extent = static_cast<int>(p.height),
                   .positions = static_cast<int>(p.positions_down),
                   .size = static_cast<int>(p.size.down),
                   .stride = static_cast<int>(p.stride.down),
                   .padding = static_cast<int>(p.padding.down)},
          .across = {.extent = static_cast<int>(p.width),
                     .positions = static_cast<int>(p.positions_across),
                     .size = static_cast<int>(p.size.across),
                     .stride = static_cast<int>(p.stride.across),
                     .padding = static_cast<int>(p.padding.across)},
          .kind = p.kind};
}

/// Where an element of images is.
struct Place {
  int image, row, column, channel;
};
/// The coordinate in the last of the dimensions that `rest` counts through; the others are left.
__device__ int take(unsigned& rest, int extent) {
  const auto whole = static_cast<unsigned>(extent);
  const unsigned taken = rest % whole;
  rest /= whole;
  return static_cast<int>(taken);
}

template <Layout layout>
__device__ Place place_of(std::int64_t i, int rows, int columns, int channels) {
  auto rest = static_cast<unsigned>(i);
  Place place{};
  if constexpr (layout == Layout::channels_last) {
    place.channel = take(rest, channels);
  }
  place.column = take(rest, columns);
  place.row = take(rest, rows);
  if constexpr (layout == Layout::plain) {
    place.channel = take(rest, channels);
  }
  place.image = static_cast<int>(rest);
  return place;
}

/// The element of the same image and channel in another row and column.
template <Layout layout>
__device__ std::int64_t at(const Place& p, int row, int column, int rows, int columns,
                           int channels) {
  const std::int64_t image = p.image;
  return layout == Layout::plain ? ((image * channels + p.channel) * rows + row) * columns + column
                                 : ((image * rows + row) * columns + column) * channels + p.channel;
}

/// [first, last) of an extent.
struct Span32 {
  int first, last;
};
/// The part of a window that lies in the image.
__device__ Span32 inside(int position, const Slide32& s) {
  const int begin = position * s.stride - s.padding;
  return {begin > 0 ? begin : 0, begin + s.size < s.extent ? begin + s.size : s.extent};
}
/// The windows that hold a row or column.
__device__ Span32 holders(int place, const Slide32& s) {
  const int padded = place + s.padding;
  const int first = padded < s.size ? 0 : (padded - s.size) / s.stride + 1;
  const int last = padded / s.stride + 1;
  return {first, last < s.positions ? last : s.positions};
}
/// Of a window: the place of one of the image's rows or columns.
__device__ int place_in(int position, int at, const Slide32& s) {
  return at - (position * s.stride - s.padding);
}
/// How many rows or columns of a window lie in the image or the padding around it.
__device__ int positions_in(int position, const Slide32& s) {
  const int begin = position * s.stride - s.padding;
  const int end = s.extent + s.padding;
  return (begin + s.size < end ? begin + s.size : end) - begin;
}

template <Layout layout>
__device__ Place result_place(std::int64_t i, const Window32& w) {
  return place_of<layout>(i, w.down.positions, w.across.positions, w.channels);
}
template <Layout layout>
__device__ Place image_place(std::int64_t i, const Window32& w) {
  return place_of<layout>(i, w.down.extent, w.across.extent, w.channels);
}
template <Layout layout>
__device__ std::int64_t at_result(const Place& p, int row, int column, const Window32& w) {
  return at<layout>(p, row, column, w.down.positions, w.across.positions, w.channels);
}
template <Layout layout>
__device__ std::int64_t at_image(const Place& p, int row, int column, const Window32& w) {
  return at<layout>(p, row, column, w.down.extent, w.across.extent, w.channels);
}

/// What the sum of a window is divided by.
__device__ float divisor(int row, int column, const Window32& w) {
  return w.kind == PoolKind::sum
             ? 1.0F
             : static_cast<float>(positions_in(row, w.down) * positions_in(column, w.across));
}

template <bool is_max, Layout layout, class T>
__global__ void pool_kernel(const T* x, T* y, std::uint8_t* where, std::int64_t count, Window32 w) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const Place place = result_place<layout>(i, w);
    const Span32 rows = inside(place.row, w.down);
    const Span32 columns = inside(place.column, w.across);
    float found = 0;
    int which = -1;
    for (int row = rows.first; row < rows.last; ++row) {
      for (int column = columns.first; column < columns.last; ++column) {
        const float value = widen(x[at_image<layout>(place, row, column, w)]);
        if constexpr (!is_max) {
          found += value;
        } else if (which < 0 || value > found) {
          found = value;
          which = place_in(place.row, row, w.down) * w.across.size +
                  place_in(place.column, column, w.across);
        }
      }
    }
    if constexpr (is_max) {
      y[i] = narrow<T>(found);
      where[i] = static_cast<std::uint8_t>(which);
    } else {
      y[i] = narrow<T>(found / divisor(place.row, place.column, w));
    }
  }
}

template <bool is_max, Layout layout, class T>
__global__ void pool_grad_kernel(const T* made, const std::uint8_t* where, const T* dy, T* dx,
                                 std::int64_t count, Window32 w, Activation x_activation) {
  const auto times_factor = [=](float gradient, std::int64_t at) {
    return x_activation == Activation::identity
               ? gradient
               : times_derivative_from_result(x_activation, gradient, widen(made[at]));
  };
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const Place place = image_place<layout>(i, w);
    const Span32 down = holders(place.row, w.down);
    const Span32 across = holders(place.column, w.across);
    float sum = 0;
    for (int row = down.first; row < down.last; ++row) {
      for (int column = across.first; column < across.last; ++column) {
        const std::int64_t from = at_result<layout>(place, row, column, w);
        if constexpr (is_max) {
          const int own = place_in(row, place.row, w.down) * w.across.size +
                          place_in(column, place.column, w.across);
          if (where[from] == own) {
            sum += times_factor(widen(dy[from]), from);
          }
        } else {
          sum += widen(dy[from]) / divisor(row, column, w);
        }
      }
    }
    dx[i] = narrow<T>(is_max ? sum : times_factor(sum, i));
  }
}

template <class T>
__global__ void global_average_pool_kernel(const T* x, T* y, std::int64_t batch,
                                           std::int64_t pixels, std::int64_t channels,
                                           Layout layout) {
  const bool is_plain = layout == Layout::plain;
  const std::int64_t count = batch * channels;
  const std::int64_t apart = is_plain ? 1 : channels;
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t first =
        is_plain ? i * pixels : i / channels * pixels * channels + i % channels;
    float sum = 0;
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      sum += widen(x[first + pixel * apart]);
    }
    y[i] = narrow<T>(sum / static_cast<float>(pixels));
  }
}

template <class T>
__global__ void global_average_pool_grad_kernel(const T* dy, T* dx, std::int64_t count,
                                                std::int64_t pixels, std::int64_t channels,
                                                Layout layout) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t from =
        layout == Layout::plain ? i / pixels : i / (pixels * channels) * channels + i % channels;
    dx[i] = narrow<T>(widen(dy[from]) / static_cast<float>(pixels));
  }
}

struct Resampled32 {
  int channels;
  ResampledAxis<int> down, across;
};

template <bool transposed, Layout layout, class T>
__global__ void resample_kernel(const T* x, T* y, std::int64_t count, Resampled32 of) {
  const ResampledAxis<int>& down = of.down;
  const ResampledAxis<int>& across = of.across;
  const int rows = transposed ? down.from : down.to;
  const int columns = transposed ? across.from : across.to;
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const Place own = place_of<layout>(i, rows, columns, of.channels);
    const auto in_rows = transposed ? down.readers_of(own.row) : down.read_by(own.row);
    const auto in_columns = transposed ? across.readers_of(own.column) : across.read_by(own.column);
    float sum = 0;
    for (int row = in_rows.begin; row < in_rows.end; ++row) {
      const float of_row =
          transposed ? down.share<float>(own.row, row) : down.share<float>(row, own.row);
      for (int column = in_columns.begin; column < in_columns.end; ++column) {
        const float of_column = transposed ? across.share<float>(own.column, column)
                                           : across.share<float>(column, own.column);
        const std::int64_t from = at<layout>(own, row, column, transposed ? down.to : down.from,
                                             transposed ? across.to : across.from, of.channels);
        sum += widen(x[from]) * (of_row * of_column);
      }
    }
    y[i] = narrow<T>(sum);
  }
}

std::int64_t results(const Pooling& p) {
  return p.batch * p.positions_down * p.positions_across * p.channels;
}

std::int64_t elements_of(const Pooling& p) { return p.batch * p.height * p.width * p.channels; }

/// work(whether it is of the largest, the layout, T(0)): 16 bits lie channels-last alone.
template <class Work>
void with_images(Type type, const Pooling& of, const Work& work) {
  const auto with_layout = [&](auto is_max) {
    if (of.layout == Layout::plain) {
      return work(is_max, std::integral_constant<Layout, Layout::plain>{}, 0.0F);
    }
    with_float(type, [&](auto zero) {
      work(is_max, std::integral_constant<Layout, Layout::channels_last>{}, zero);
    });
  };
  of.kind == PoolKind::max ? with_layout(std::true_type{}) : with_layout(std::false_type{});
}

}  // namespace

void call(const PoolArguments<Called>& of, const Site& site) {
  const std::int64_t count = results(of.pooling);
  with_images(of.x.type, of.pooling, [&](auto is_max, auto layout, auto zero) {
    launch(pool_kernel<decltype(is_max)::value, decltype(layout)::value, decltype(zero)>,
           grid_for(count), site.stream, of.x, of.y, of.where, count, in_32_bits(of.pooling));
  });
}

void call(const PoolGradArguments<Called>& of, const Site& site) {
  const std::int64_t count = elements_of(of.pooling);
  with_images(of.dy.type, of.pooling, [&](auto is_max, auto layout, auto zero) {
    launch(pool_grad_kernel<decltype(is_max)::value, decltype(layout)::value, decltype(zero)>,
           grid_for(count), site.stream, of.made, of.where, of.dy, of.dx, count,
           in_32_bits(of.pooling), of.x_activation);
  });
}

void call(const GlobalAveragePoolArguments<Called>& of, const Site& site) {
  with_float(of.x.type, [&](auto zero) {
    launch(global_average_pool_kernel<decltype(zero)>, grid_for(of.batch * of.channels),
           site.stream, of.x, of.y, of.batch, of.pixels, of.channels, of.layout);
  });
}

void call(const GlobalAveragePoolGradArguments<Called>& of, const Site& site) {
  const std::int64_t count = of.batch * of.pixels * of.channels;
  with_float(of.dy.type, [&](auto zero) {
    launch(global_average_pool_grad_kernel<decltype(zero)>, grid_for(count), site.stream, of.dy,
           of.dx, count, of.pixels, of.channels, of.layout);
  });
}

void call(const ResampleArguments<Called>& of, const Site& site) {
  const std::int64_t pixels = of.transposed ? std::int64_t{of.down.from} * of.across.from
                                            : std::int64_t{of.down.to} * of.across.to;
  const std::int64_t count = of.batch * of.channels * pixels;
  const Resampled32 sizes{static_cast<int>(of.channels), of.down, of.across};
  const auto with_layout = [&](auto transposed) {
    const auto start = [&](auto layout, auto zero) {
      launch(resample_kernel<decltype(transposed)::value, decltype(layout)::value, decltype(zero)>,
             grid_for(count), site.stream, of.x, of.y, count, sizes);
    };
    if (of.layout == Layout::plain) {
      return start(std::integral_constant<Layout, Layout::plain>{}, 0.0F);
    }
    with_float(of.x.type, [&](auto zero) {
      start(std::integral_constant<Layout, Layout::channels_last>{}, zero);
    });
  };
  of.transposed ? with_layout(std::true_type{}) : with_layout(std::false_type{});
}

}  // namespace crossover::cuda
