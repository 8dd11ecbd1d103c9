// SPDX-License-Identifier: Apache-2.0
#include "pool.h"

#include <type_traits>

#include "convert.cuh"
#include "grid.cuh"
#include "site.h"

namespace crossover::cuda {
namespace {

/// A Pooling in 32 bits: a GPU divides these several times faster.
struct Window32 {
  int channels, height, width, down, across, size, stride, padding;
  bool sums;
};

Window32 in_32_bits(const Pooling& p) {
  return {.channels = static_cast<int>(p.channels),
          .height = static_cast<int>(p.height),
          .width = static_cast<int>(p.width),
          .down = static_cast<int>(p.positions_down),
          .across = static_cast<int>(p.positions_across),
          .size = static_cast<int>(p.size),
          .stride = static_cast<int>(p.stride),
          .padding = static_cast<int>(p.padding),
          .sums = p.sums};
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
__device__ Span32 inside(int position, int extent, const Window32& w) {
  const int begin = position * w.stride - w.padding;
  return {begin > 0 ? begin : 0, begin + w.size < extent ? begin + w.size : extent};
}
/// The windows that hold a row or column.
__device__ Span32 holders(int place, int positions, const Window32& w) {
  const int padded = place + w.padding;
  const int first = padded < w.size ? 0 : (padded - w.size) / w.stride + 1;
  const int last = padded / w.stride + 1;
  return {first, last < positions ? last : positions};
}
/// How many rows or columns of a window lie in the image or the padding around it; 1 where windows
/// are summed.
__device__ int counted(int position, int extent, const Window32& w) {
  if (w.sums) {
    return 1;
  }
  const int begin = position * w.stride - w.padding;
  const int end = extent + w.padding;
  return (begin + w.size < end ? begin + w.size : end) - begin;
}

template <Layout layout, class T>
__global__ void max_pool_kernel(const T* x, T* y, std::uint8_t* where, std::int64_t count,
                                Window32 w) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const Place place = place_of<layout>(i, w.down, w.across, w.channels);
    const Span32 rows = inside(place.row, w.height, w);
    const Span32 columns = inside(place.column, w.width, w);
    float largest = 0;
    int which = -1;
    for (int row = rows.first; row < rows.last; ++row) {
      for (int column = columns.first; column < columns.last; ++column) {
        const float value = widen(x[at<layout>(place, row, column, w.height, w.width, w.channels)]);
        if (which < 0 || value > largest) {
          largest = value;
          which = (row - (place.row * w.stride - w.padding)) * w.size +
                  (column - (place.column * w.stride - w.padding));
        }
      }
    }
    y[i] = narrow<T>(largest);
    where[i] = static_cast<std::uint8_t>(which);
  }
}

template <Layout layout, class T>
__global__ void max_pool_grad_kernel(const T* y, const std::uint8_t* where, const T* dy, T* dx,
                                     std::int64_t count, Window32 w, Activation x_activation) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const Place place = place_of<layout>(i, w.height, w.width, w.channels);
    const Span32 down = holders(place.row, w.down, w);
    const Span32 across = holders(place.column, w.across, w);
    float sum = 0;
    for (int row = down.first; row < down.last; ++row) {
      for (int column = across.first; column < across.last; ++column) {
        const std::int64_t from = at<layout>(place, row, column, w.down, w.across, w.channels);
        const int own = (place.row - (row * w.stride - w.padding)) * w.size +
                        (place.column - (column * w.stride - w.padding));
        if (where[from] == own) {
          const float factor = x_activation == Activation::identity
                                   ? 1.0F
                                   : derivative_from_result(x_activation, widen(y[from]));
          sum += widen(dy[from]) * factor;
        }
      }
    }
    dx[i] = narrow<T>(sum);
  }
}

template <Layout layout, class T>
__global__ void average_pool_kernel(const T* x, T* y, std::int64_t count, Window32 w) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const Place place = place_of<layout>(i, w.down, w.across, w.channels);
    const Span32 rows = inside(place.row, w.height, w);
    const Span32 columns = inside(place.column, w.width, w);
    float sum = 0;
    for (int row = rows.first; row < rows.last; ++row) {
      for (int column = columns.first; column < columns.last; ++column) {
        sum += widen(x[at<layout>(place, row, column, w.height, w.width, w.channels)]);
      }
    }
    const int of = counted(place.row, w.height, w) * counted(place.column, w.width, w);
    y[i] = narrow<T>(sum / static_cast<float>(of));
  }
}

template <Layout layout, class T>
__global__ void average_pool_grad_kernel(const T* x, const T* dy, T* dx, std::int64_t count,
                                         Window32 w, Activation x_activation) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const Place place = place_of<layout>(i, w.height, w.width, w.channels);
    const Span32 down = holders(place.row, w.down, w);
    const Span32 across = holders(place.column, w.across, w);
    float sum = 0;
    for (int row = down.first; row < down.last; ++row) {
      const int rows = counted(row, w.height, w);
      for (int column = across.first; column < across.last; ++column) {
        const int of = rows * counted(column, w.width, w);
        sum += widen(dy[at<layout>(place, row, column, w.down, w.across, w.channels)]) /
               static_cast<float>(of);
      }
    }
    const float factor = x_activation == Activation::identity
                             ? 1.0F
                             : derivative_from_result(x_activation, widen(x[i]));
    dx[i] = narrow<T>(sum * factor);
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

std::int64_t results(const Pooling& p) {
  return p.batch * p.positions_down * p.positions_across * p.channels;
}

std::int64_t elements_of(const Pooling& p) { return p.batch * p.height * p.width * p.channels; }

/// work(T(0), the layout): 16 bits lie channels-last alone.
template <class Work>
void with_images(Type type, Layout layout, const Work& work) {
  if (layout == Layout::plain) {
    return work(0.0F, std::integral_constant<Layout, Layout::plain>{});
  }
  with_float(type, [&](auto zero) {
    work(zero, std::integral_constant<Layout, Layout::channels_last>{});
  });
}

}  // namespace

void call(const MaxPoolArguments<Called>& of, const Site& site) {
  const std::int64_t count = results(of.pooling);
  with_images(of.x.type, of.pooling.layout, [&](auto zero, auto layout) {
    launch(max_pool_kernel<decltype(layout)::value, decltype(zero)>, grid_for(count), site.stream,
           of.x, of.y, of.where, count, in_32_bits(of.pooling));
  });
}

void call(const MaxPoolGradArguments<Called>& of, const Site& site) {
  const std::int64_t count = elements_of(of.pooling);
  with_images(of.dy.type, of.pooling.layout, [&](auto zero, auto layout) {
    launch(max_pool_grad_kernel<decltype(layout)::value, decltype(zero)>, grid_for(count),
           site.stream, of.y, of.where, of.dy, of.dx, count, in_32_bits(of.pooling),
           of.x_activation);
  });
}

void call(const AveragePoolArguments<Called>& of, const Site& site) {
  const std::int64_t count = results(of.pooling);
  with_images(of.x.type, of.pooling.layout, [&](auto zero, auto layout) {
    launch(average_pool_kernel<decltype(layout)::value, decltype(zero)>, grid_for(count),
           site.stream, of.x, of.y, count, in_32_bits(of.pooling));
  });
}

void call(const AveragePoolGradArguments<Called>& of, const Site& site) {
  const std::int64_t count = elements_of(of.pooling);
  with_images(of.dy.type, of.pooling.layout, [&](auto zero, auto layout) {
    launch(average_pool_grad_kernel<decltype(layout)::value, decltype(zero)>, grid_for(count),
           site.stream, of.x, of.dy, of.dx, count, in_32_bits(of.pooling), of.x_activation);
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

}  // namespace crossover::cuda
