// SPDX-License-Identifier: Apache-2.0
// The networks to train, as the command line describes and changes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "axes/flag.h"
#include "crossover/catalogue.h"

namespace crossover::bench {

/// What the flags ask for, before the networks are put together.
struct NetworkFlags {
  std::optional<std::vector<std::int64_t>> mlp;  ///< widths
  std::vector<std::string> files;                ///< of networks in JSON
  std::vector<double> scales{1};                 ///< of each of them
  std::optional<Activation> activation;
  std::optional<LossFunction> loss;
  std::optional<Optimizer> optimizer;
  std::optional<double> learning_rate, weight_decay;
  std::optional<std::int64_t> rows;
  std::optional<std::string> data;  ///< the user's CSV file

  /// Whether they bring a network that is not in the catalogue.
  [[nodiscard]] bool bring_one() const { return mlp || !files.empty(); }
};

std::vector<Flag> network_flags(NetworkFlags& to);

/// A network in several sizes: a scale on which a crossover is found.
struct OwnLadder {
  std::string name;
  std::vector<std::string> networks;  ///< the smallest first
  std::int64_t batch = 0;
};

/// What --network and --scale bring.
struct OwnNetworks {
  std::vector<Task> tasks;         ///< each file in each of the sizes
  std::vector<OwnLadder> ladders;  ///< of each file that is measured in several
};

/// Reads the files. Throws UsageError.
OwnNetworks own_networks(const NetworkFlags& flags);

/// `own`: those of files, `named`: of --model, `otherwise`: of the sweep. Throws UsageError.
std::vector<Task> tasks_for(const NetworkFlags& flags, const std::vector<Task>& own,
                            const std::vector<std::string>& named,
                            const std::vector<std::string>& otherwise);

/// "sgd lr=0.1": what a row's name does not say.
std::string optimizer_label(const Optimizer& optimizer);

}  // namespace crossover::bench
