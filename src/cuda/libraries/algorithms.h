// SPDX-License-Identifier: Apache-2.0
// By which of its library's algorithms a program computes: one that runs, or the fastest. The same
// for products and convolutions.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "../backend/timing.h"
#include "crossover/backend.h"

namespace crossover::cuda {

/// The library proposed algorithms for a form, and none of them runs. Whoever plans again knows.
struct NoneRuns : Unsupported {
  using Unsupported::Unsupported;
};

/// `Made` is a form by one of the algorithms, ready to run.
template <class Form, class Made>
class Algorithms {
 public:
  /// `proposed`: how many the library has for a form. `library`: its name, for sentences.
  Algorithms(std::string library, std::function<int(const Form&)> proposed)
      : library_(std::move(library)), proposed_(std::move(proposed)) {}

  /// Numbers of those that are left, the best guess first.
  [[nodiscard]] std::vector<int>& left(const Form& form) {
    const auto [at, is_new] = left_.try_emplace(form);
    if (is_new) {
      at->second.resize(static_cast<std::size_t>(proposed_(form)));
      std::iota(at->second.begin(), at->second.end(), 0);
    }
    return at->second;
  }

  /// The chosen one's number. Throws Unsupported where there is none.
  [[nodiscard]] int first(const Form& form) {
    if (left(form).empty()) {
      throw Unsupported(library_ + " has no algorithm for " + to_string(form));
    }
    return left(form).front();
  }

  /// Takes for the form the best guess that runs, or the fastest of the first eight that do, of
  /// equals the one that ranks higher. make(algorithm) and execute(made) throw a std::runtime_error
  /// where the library refuses after all. Throws NoneRuns.
  template <class Make, class Execute>
  std::shared_ptr<const Made> choose(const Form& form, bool fastest, const Make& make,
                                     const Execute& execute, cudaStream_t stream) {
    static_cast<void>(first(form));
    constexpr std::size_t most_timed = 8;
    std::vector<int> running;
    std::vector<std::shared_ptr<const Made>> all;
    std::string why;
    for (const int algorithm : left(form)) {
      try {
        std::shared_ptr<const Made> made = make(algorithm);
        execute(*made);
        all.push_back(std::move(made));
      } catch (const DeviceFailed&) {
        throw;
      } catch (const OutOfMemory&) {
        throw;
      } catch (const std::runtime_error& refused) {
        why = refused.what();
        continue;
      }
      running.push_back(algorithm);
      if (!fastest || running.size() == most_timed) {
        break;
      }
    }
    left(form) = running;
    if (running.empty()) {
      throw NoneRuns("none of " + library_ + "'s algorithms runs " + to_string(form) + ": " + why);
    }
    std::size_t chosen = 0;
    if (running.size() > 1) {
      chosen = fastest_of(all, form, execute, stream);
      left(form) = {running[chosen]};
    }
    return all[chosen];
  }

 private:
  /// So that a small one takes longer than the difference that events can tell.
  static int repeats(const Form& form) {
    constexpr double enough_flops = 1e9;
    constexpr double most = 8;
    return static_cast<int>(std::clamp(enough_flops / flops(form), 1.0, most));
  }

  /// All have run before: code is loaded at its first call, which a capture does not allow
  /// everywhere.
  template <class Execute>
  static std::size_t fastest_of(const std::vector<std::shared_ptr<const Made>>& all,
                                const Form& form, const Execute& execute, cudaStream_t stream) {
    std::vector<std::function<void()>> pieces;
    pieces.reserve(all.size());
    for (const auto& made : all) {
      pieces.emplace_back([&made = *made, &execute, times = repeats(form)] {
        for (int time = 0; time < times; ++time) {
          execute(made);
        }
      });
    }
    const std::vector<double> seconds = device_seconds(stream, pieces);
    return static_cast<std::size_t>(
        std::distance(seconds.begin(), std::min_element(seconds.begin(), seconds.end())));
  }

  std::string library_;
  std::function<int(const Form&)> proposed_;
  std::map<Form, std::vector<int>> left_;
};

}  // namespace crossover::cuda
