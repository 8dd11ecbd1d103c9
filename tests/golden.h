// SPDX-License-Identifier: Apache-2.0
// Whole training runs with the losses that PyTorch computes in float64 (fixtures/golden_*.json).
#pragma once

#include <array>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "crossover/training.h"
#include "support.h"

namespace crossover::test {

/// What the lowered epoch goes through before it is compiled.
enum class Form { plain, fused, update_fused };
inline constexpr std::array all_forms{Form::plain, Form::fused, Form::update_fused};
std::string label(Form form);  ///< as those of support.h

/// On how many threads a form trains where one number of them is enough: with sanitizers.
inline int threads_of(Form form) { return form == Form::plain ? 1 : 2; }
inline bool left_to_others(Form form, int threads) {
  return thinned() && threads != threads_of(form);
}

struct Golden {
  std::string name;
  Model model;
  std::int64_t params = 0;
  TrainingOptions options;
  std::vector<double> losses;
  std::size_t all_losses = 0;  ///< how many the file has; fewer are trained unless test_all()
  double sum_after = 0, norm_after = 0;
  bool large = false;           ///< takes nearly all of the time
  double tolerance = 0;         ///< of a loss in float32
  double sum_tolerance = 1e-4;  ///< of the parameters' sum in float32, times their norm

  friend std::ostream& operator<<(std::ostream& out, const Golden& golden) {
    return out << golden.name;
  }

  [[nodiscard]] Dataset data() const;

  [[nodiscard]] Training training(Form form, Precision precision = Precision::f32) const;
};

/// Of the fully connected networks.
std::vector<Golden> golden_mlps();
/// Of the others.
std::vector<Golden> golden_networks();

/// Operations that the case takes, of the kind that cost() counts.
double flops(const Golden& golden, const Workload& workload);

/// Trains for as many steps as there are losses, epoch after epoch, and compares. `run(first,
/// count)` runs part of an epoch, `losses()` and `values(id)` read back.
void expect_golden(const Golden& golden, const Workload& workload, double tolerance,
                   double sum_tolerance, double norm_tolerance,
                   const std::function<void(std::int64_t, std::int64_t)>& run,
                   const std::function<std::vector<double>()>& losses,
                   const std::function<std::vector<double>(Id)>& values);

/// The same with a Program at its start, to what float32 can meet.
void expect_golden(const Golden& golden, const Training& training, Program& program);

/// Compiles the first epoch of the case in options.precision, runs it and compares it with the
/// reference, as a row is before it is timed.
void expect_verified(const Golden& golden, Form form, const Backend& backend,
                     const CompileOptions& options);

}  // namespace crossover::test
