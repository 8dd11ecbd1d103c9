// SPDX-License-Identifier: Apache-2.0
#include "crossover/probe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>

#include "../step/overload.h"
#include "crossover/verify.h"
#include "expected.h"

namespace crossover {

// ---- What probes do, counted from their description.

namespace {

constexpr std::int64_t float_bytes = sizeof(float);

void require(std::int64_t number, std::int64_t most, const char* what) {
  if (number < 1 || number > most) {
    throw std::invalid_argument(std::string("a probe needs ") + what + " from 1 to " +
                                std::to_string(most) + ", not " + std::to_string(number));
  }
}

/// Whole numbers that the type holds come out of these sizes only: expected.h.
void require_exact(const MatrixProbe& probe) {
  constexpr std::int64_t least = 128;
  constexpr std::int64_t most = 8192;
  const bool is_exact = probe.size >= least && probe.size <= most &&
                        std::has_single_bit(static_cast<std::uint64_t>(probe.size));
  if (storage_of(probe.precision) != Type::f32 && !is_exact) {
    throw std::invalid_argument("a matrix probe in " + to_string(probe.precision) +
                                " needs a power of two from 128 to 8192 as its rows, not " +
                                std::to_string(probe.size));
  }
}

}  // namespace

Work work(const ProbeSpec& spec) {
  return std::visit(
      Overload{[](const CopyProbe& probe) {
                 const int copies = probe.asynchronous ? CopyProbe::copies_in_flight : 1;
                 const int directions = probe.direction == Direction::both ? 2 : 1;
                 return Work{.bytes = static_cast<double>(probe.bytes) * copies * directions,
                             .pieces = copies};
               },
               [](const FmaProbe& probe) {
                 return Work{.flops = 2.0 * static_cast<double>(probe.values) *
                                      static_cast<double>(probe.length)};
               },
               [](const MatrixProbe& probe) {
                 const auto size = static_cast<double>(probe.size);
                 return Work{.flops = 2 * size * size * size};
               },
               [](const TriadProbe& probe) {
                 return Work{.flops = 2.0 * static_cast<double>(probe.values),
                             .bytes = 3.0 * float_bytes * static_cast<double>(probe.values)};
               },
               [](const LaunchProbe& probe) { return Work{.pieces = probe.launches}; },
               [](const GraphNodeProbe& probe) { return Work{.pieces = probe.nodes}; },
               [](const auto&) { return Work{}; }},
      spec);
}

ProbeMemory memory_needed(const ProbeSpec& spec) {
  return std::visit(
      Overload{
          [](const CopyProbe& probe) {
            switch (probe.direction) {
              case Direction::both:
                return ProbeMemory{.host = 2 * probe.bytes, .device = 2 * probe.bytes};
              case Direction::device_to_device:
                return ProbeMemory{.device = 2 * probe.bytes};
              case Direction::host_to_host:
                return ProbeMemory{.host = 2 * probe.bytes};
              case Direction::host_to_device:
              case Direction::device_to_host:
                break;
            }
            return ProbeMemory{.host = probe.bytes, .device = probe.bytes};
          },
          [](const FmaProbe& probe) { return ProbeMemory{.device = probe.values * float_bytes}; },
          [](const MatrixProbe& probe) {
            constexpr std::int64_t workspace = 32 << 20;
            const std::int64_t matrix =
                probe.size * probe.size * bytes(storage_of(probe.precision));
            return ProbeMemory{.device = 3 * matrix + workspace};
          },
          [](const TriadProbe& probe) {
            return ProbeMemory{.device = 3 * probe.values * float_bytes};
          },
          [](const auto&) { return ProbeMemory{}; }},
      spec);
}

void check(const ProbeSpec& spec) {
  constexpr std::int64_t most_values = std::int64_t{1} << 40;
  constexpr std::int64_t most_rows = 1 << 20;
  constexpr std::int64_t most_nodes = 100'000;
  constexpr std::int64_t most_threads = 1 << 16;
  std::visit(
      Overload{[](const CopyProbe& probe) { require(probe.bytes, most_values, "bytes"); },
               [](const FmaProbe& probe) {
                 require(probe.values, most_values, "values");
                 require(probe.length, most_values, "multiply-adds of each value");
                 require(probe.threads, most_threads, "threads");
               },
               [](const MatrixProbe& probe) {
                 require(probe.size, most_rows, "rows");
                 require(probe.threads, most_threads, "threads");
                 require_exact(probe);
               },
               [](const TriadProbe& probe) {
                 require(probe.values, most_values, "values");
                 require(probe.threads, most_threads, "threads");
               },
               [](const LaunchProbe& probe) { require(probe.launches, most_nodes, "launches"); },
               [](const GraphNodeProbe& probe) { require(probe.nodes, most_nodes, "nodes"); },
               [](const ForkJoinProbe& probe) { require(probe.threads, most_threads, "threads"); },
               [](const auto&) {}},
      spec);
}

}  // namespace crossover

namespace crossover::probe {

namespace {

constexpr std::int64_t word_bytes = sizeof(std::uint64_t);

/// Every byte is odd, so that none looks spoiled.
constexpr std::uint64_t pattern_word(std::int64_t number, std::uint64_t salt) {
  const std::uint64_t product =
      (static_cast<std::uint64_t>(number) + (salt << 56U) + 1) * 0x9E3779B97F4A7C15U;
  return (product ^ (product >> 29U)) | 0x0101010101010101U;
}

/// Words of the pattern from `number` on. In blocks, so that the compiler makes vectors of them.
constexpr std::int64_t block_words = 512;
using Block = std::array<std::uint64_t, block_words>;

void fill_block(Block& block, std::int64_t number, std::uint64_t salt) {
  for (std::int64_t i = 0; i < block_words; ++i) {
    block[static_cast<std::size_t>(i)] = pattern_word(number + i, salt);
  }
}

/// Calls use(byte's place in the span, bytes, their pattern) for each block and the rest.
template <class Use>
void for_each_block(std::size_t bytes, std::int64_t first, std::uint64_t salt, const Use& use) {
  Block block{};
  for (std::size_t at = 0; at < bytes; at += sizeof block) {
    fill_block(block, (first + static_cast<std::int64_t>(at)) / word_bytes, salt);
    use(at, std::min(sizeof block, bytes - at), block.data());
  }
}

template <class T>
[[noreturn]] void fail(const char* what, T got, T right, std::int64_t position) {
  std::ostringstream text;
  text.precision(9);
  text << what << " gave " << widened(got) << " instead of " << widened(right) << " at position "
       << position;
  throw Mismatch(text.str());
}

/// Compares every bit with values that repeat: right at a position is period[position % size]. One
/// division for each repetition, none for a value: what a GPU writes in a millisecond is compared
/// in a tenth of a second, not in one.
template <class T>
void check_periodic(std::span<const T> got, std::int64_t first, std::span<const T> period,
                    const char* what) {
  const auto differ = [](std::span<const T> a, std::span<const T> b) {
    return std::memcmp(std::as_bytes(a).data(), std::as_bytes(b).data(), a.size_bytes()) != 0;
  };
  std::size_t at = static_cast<std::size_t>(first) % period.size();
  for (std::size_t done = 0; done < got.size(); at = 0) {
    const std::size_t count = std::min(got.size() - done, period.size() - at);
    if (differ(got.subspan(done, count), period.subspan(at, count))) {
      for (std::size_t i = 0; i < count; ++i) {
        if (differ(got.subspan(done + i, 1), period.subspan(at + i, 1))) {
          fail(what, got[done + i], period[at + i], first + static_cast<std::int64_t>(done + i));
        }
      }
    }
    done += count;
  }
}

/// Of all positions: both factors repeat.
std::vector<float> triad_period() {
  std::vector<float> period(std::size_t{triad_b_period} * triad_c_period);
  for (std::size_t i = 0; i < period.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    period[i] = triad_b(position) + triad_factor * triad_c(position);
  }
  return period;
}

}  // namespace

void fill_pattern(std::span<std::byte> to, std::int64_t first, std::uint64_t salt) {
  for_each_block(to.size(), first, salt,
                 [&](std::size_t at, std::size_t count, const std::uint64_t* words) {
                   std::memcpy(&to[at], words, count);
                 });
}

void check_pattern(std::span<const std::byte> got, std::int64_t first, std::uint64_t salt) {
  for_each_block(got.size(), first, salt,
                 [&](std::size_t at, std::size_t count, const std::uint64_t* words) {
                   if (std::memcmp(&got[at], words, count) != 0) {
                     throw Mismatch("the copy differs from its source in the " +
                                    std::to_string(count) + " bytes from position " +
                                    std::to_string(first + static_cast<std::int64_t>(at)));
                   }
                 });
}

ExpectedFma::ExpectedFma(std::int64_t length) {
  constexpr int copies = 64;  // so that a comparison is a long one
  for (std::int64_t start = 0; start < fma_starts; ++start) {
    ends_.push_back(fma_start(start));
  }
  for (std::int64_t i = 0; i < length; ++i) {
    for (float& x : ends_) {
      x = std::fma(x, fma_factor, fma_summand);
    }
  }
  const std::vector<float> once = ends_;
  for (int copy = 1; copy < copies; ++copy) {
    ends_.insert(ends_.end(), once.begin(), once.end());
  }
}

void ExpectedFma::check(std::span<const float> got, std::int64_t first) const {
  check_periodic<float>(got, first, ends_, "the multiply-adds");
}

void check_triad(std::span<const float> got, std::int64_t first) {
  static const std::vector<float> period = triad_period();
  check_periodic<float>(got, first, period, "the triad");
}

ExpectedProduct::ExpectedProduct(std::int64_t size) : size_(size) {
  for (std::int64_t k = 0; k < size; ++k) {
    sum_ += matrix_a(0, k) * matrix_b(k, 0);
  }
}

template <class T>
void ExpectedProduct::check(std::span<const T> got, std::int64_t first) const {
  std::vector<T> rows;  // the fourth is like the first
  rows.reserve(static_cast<std::size_t>(3 * size_));
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t column = 0; column < size_; ++column) {
      const float exact = sum_ * static_cast<float>((1 + row) * (1 + column % 3));
      rows.push_back(narrowed<T>(exact));
    }
  }
  check_periodic<T>(got, first, rows, "the matrix product");
}

template void ExpectedProduct::check(std::span<const float>, std::int64_t) const;
template void ExpectedProduct::check(std::span<const Bf16>, std::int64_t) const;
template void ExpectedProduct::check(std::span<const F16>, std::int64_t) const;

}  // namespace crossover::probe
