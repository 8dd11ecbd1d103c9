// SPDX-License-Identifier: Apache-2.0
#include "expected.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "crossover/verify.h"

namespace crossover::probe {
namespace {

constexpr std::int64_t word_bytes = sizeof(std::uint64_t);

/// Every byte is odd, so that none looks spoiled.
constexpr std::uint64_t pattern_word(std::int64_t number, std::uint64_t salt) {
  const std::uint64_t product =
      (static_cast<std::uint64_t>(number) + (salt << 56U) + 1) * 0x9E3779B97F4A7C15U;
  return (product ^ (product >> 29U)) | 0x0101010101010101U;
}

/// Calls use(byte's place in the span, bytes, their pattern) for each word and the rest.
template <class Use>
void for_each_word(std::size_t bytes, std::int64_t first, std::uint64_t salt, const Use& use) {
  const auto end = static_cast<std::int64_t>(bytes);
  for (std::int64_t at = 0; at < end; at += word_bytes) {
    use(static_cast<std::size_t>(at), static_cast<std::size_t>(std::min(word_bytes, end - at)),
        pattern_word((first + at) / word_bytes, salt));
  }
}

template <class T, class Expected>
void check_floats(std::span<const T> got, std::int64_t first, const char* what,
                  const Expected& expected) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::int64_t position = first + static_cast<std::int64_t>(i);
    const float right = expected(position);
    const float value = widened(got[i]);
    if (value != right) {
      std::ostringstream text;
      text.precision(9);
      text << what << " gave " << value << " instead of " << right << " at position " << position;
      throw Mismatch(text.str());
    }
  }
}

}  // namespace

void fill_pattern(std::span<std::byte> to, std::int64_t first, std::uint64_t salt) {
  for_each_word(to.size(), first, salt, [&](std::size_t at, std::size_t count, std::uint64_t word) {
    std::memcpy(&to[at], &word, count);
  });
}

void check_pattern(std::span<const std::byte> got, std::int64_t first, std::uint64_t salt) {
  for_each_word(got.size(), first, salt,
                [&](std::size_t at, std::size_t count, std::uint64_t word) {
                  if (std::memcmp(&got[at], &word, count) != 0) {
                    throw Mismatch("the copy differs from its source in the " +
                                   std::to_string(count) + " bytes from position " +
                                   std::to_string(first + static_cast<std::int64_t>(at)));
                  }
                });
}

ExpectedFma::ExpectedFma(std::int64_t length) {
  for (std::int64_t start = 0; start < fma_starts; ++start) {
    ends_.push_back(fma_start(start));
  }
  for (std::int64_t i = 0; i < length; ++i) {
    for (float& x : ends_) {
      x = std::fma(x, fma_factor, fma_summand);
    }
  }
}

void ExpectedFma::check(std::span<const float> got, std::int64_t first) const {
  check_floats(got, first, "the multiply-adds", [this](std::int64_t position) {
    return ends_[static_cast<std::size_t>(position % fma_starts)];
  });
}

void check_triad(std::span<const float> got, std::int64_t first) {
  check_floats(got, first, "the triad", [](std::int64_t position) {
    return triad_b(position) + triad_factor * triad_c(position);
  });
}

ExpectedProduct::ExpectedProduct(std::int64_t size) : size_(size) {
  for (std::int64_t k = 0; k < size; ++k) {
    sum_ += matrix_a(0, k) * matrix_b(k, 0);
  }
}

template <class T>
void ExpectedProduct::check(std::span<const T> got, std::int64_t first) const {
  check_floats(got, first, "the matrix product", [this](std::int64_t position) {
    return sum_ * static_cast<float>((1 + position / size_ % 3) * (1 + position % size_ % 3));
  });
}

template void ExpectedProduct::check(std::span<const float>, std::int64_t) const;
template void ExpectedProduct::check(std::span<const Bf16>, std::int64_t) const;
template void ExpectedProduct::check(std::span<const F16>, std::int64_t) const;

}  // namespace crossover::probe
