// SPDX-License-Identifier: Apache-2.0
// By which of its library's algorithms a program computes: one that runs, or the fastest. The same
// for products, convolutions and attention.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../base/runtime.h"
#include "crossover/alive.h"
#include "crossover/backend.h"
#include "library.h"

namespace crossover::cuda {

/// The library proposed algorithms for a form, and none of them runs. Whoever plans again knows.
struct NoneRuns : Unsupported {
  using Unsupported::Unsupported;
};

template <class Arguments>
class Algorithms {
 public:
  using Form = typename Library<Arguments>::Form;
  using Made = std::shared_ptr<const Prepared<Arguments>>;

  explicit Algorithms(std::shared_ptr<Library<Arguments>> library) : library_(std::move(library)) {}

  /// Whether an algorithm is left for the form. Throws Unsupported where there is no library.
  [[nodiscard]] bool supports(const Form& form) { return !candidates(form).empty(); }

  /// Takes for the form the library's best guess that runs, or the fastest of the first that do
  /// (Form::most_timed), of equals the one that it ranks higher. Runs them on these operands, which
  /// it writes to like the form itself. Does nothing for a form that it has chosen for. Throws
  /// NoneRuns.
  void choose(const Arguments& of, bool fastest, const Workspace& workspace, cudaStream_t stream) {
    if (chosen_.contains(of.form)) {
      return;
    }
    static_cast<void>(best(of.form));
    std::vector<int> running;
    std::vector<Made> all;
    std::string why;
    for (const int algorithm : candidates(of.form)) {
      try {
        Made made = library_->make(of, algorithm);
        made->execute(stream, of, workspace);
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
      if (!fastest || running.size() == Form::most_timed) {
        break;
      }
    }
    candidates(of.form) = running;
    if (running.empty()) {
      throw NoneRuns("none of " + std::string(Form::library) + "'s algorithms runs " +
                     to_string(of.form) + ": " + why);
    }
    const std::size_t chosen = running.size() > 1 ? fastest_of(all, of, workspace, stream) : 0;
    candidates(of.form) = {running[chosen]};
    chosen_.insert(of.form);
    made_[fixed(of)] = all[chosen];
    alive();
  }

  /// By the algorithm that was chosen. Throws Unsupported where the library has none.
  [[nodiscard]] Made made(const Arguments& of) {
    Made& made = made_[fixed(of)];
    if (made == nullptr) {
      made = library_->make(of, best(of.form));
    }
    return made;
  }

  /// What the library calls the algorithm that was chosen for the form.
  [[nodiscard]] std::string name(const Form& form) {
    Arguments of{};
    of.form = form;
    return made(of)->name();
  }

 private:
  /// Numbers of those that are left, the best guess first.
  [[nodiscard]] std::vector<int>& candidates(const Form& form) {
    const auto [at, is_new] = candidates_.try_emplace(form);
    if (is_new) {
      at->second.resize(static_cast<std::size_t>(library_->algorithms(form)));
      std::iota(at->second.begin(), at->second.end(), 0);
    }
    return at->second;
  }

  [[nodiscard]] int best(const Form& form) {
    if (candidates(form).empty()) {
      throw Unsupported(std::string(Form::library) + " has no algorithm for " + to_string(form));
    }
    return candidates(form).front();
  }

  /// So that a small one takes longer than the difference that events can tell.
  static int repeats(const Form& form) {
    constexpr double enough_flops = 1e9;
    constexpr double most = 8;
    return static_cast<int>(std::clamp(enough_flops / flops(form), 1.0, most));
  }

  /// All have run before: code is loaded at its first call, which a capture does not allow
  /// everywhere.
  static std::size_t fastest_of(const std::vector<Made>& all, const Arguments& of,
                                const Workspace& workspace, cudaStream_t stream) {
    std::vector<std::function<void()>> pieces;
    pieces.reserve(all.size());
    for (const Made& made : all) {
      pieces.emplace_back([&, times = repeats(of.form)] {
        for (int time = 0; time < times; ++time) {
          made->execute(stream, of, workspace);
        }
      });
    }
    const std::vector<double> seconds = device_seconds(stream, pieces);
    return static_cast<std::size_t>(
        std::distance(seconds.begin(), std::min_element(seconds.begin(), seconds.end())));
  }

  std::shared_ptr<Library<Arguments>> library_;
  std::map<Form, std::vector<int>> candidates_;
  std::set<Form> chosen_;
  std::map<decltype(fixed(std::declval<Arguments>())), Made> made_;
};

using Products = Algorithms<CalledProduct>;
using Convolutions = Algorithms<CalledConvolution>;
using Sdpas = Algorithms<CalledSdpa>;

/// Plans that choose their algorithms alike may share what the libraries told and timed.
struct SharedAlgorithms {
  std::shared_ptr<Products> products;
  std::shared_ptr<Convolutions> convolutions;
  std::shared_ptr<Sdpas> sdpas;
};

}  // namespace crossover::cuda
