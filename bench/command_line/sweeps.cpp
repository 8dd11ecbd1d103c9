// SPDX-License-Identifier: Apache-2.0
#include "command_line/sweeps.h"

#include "command_line/choices.h"
#include "crossover/catalogue.h"

namespace crossover::bench {

std::vector<Sweep> sweeps() {
  std::vector<std::string> standard = disc_family().names;
  standard.emplace_back("heart");
  std::vector<std::string> all = standard;
  const std::vector<std::string> fcn = fcn_family().names;
  all.insert(all.end(), fcn.begin(), fcn.end());
  // The networks of Shi et al. 2016: those whose steps take less than a second, then the others.
  const std::vector<std::string> small{"fcn-r", "alexnet-r", "resnet-56", "lstm"};
  std::vector<std::string> seven = small;
  seven.insert(seven.end(), {"fcn-s", "alexnet-s", "resnet-50"});
  const std::vector<Configuration> few = {{{"execution", "eager"}, {"data", "resident"}},
                                          {{"execution", "graph"}, {"data", "resident"}},
                                          {{"execution", "persistent"}, {"data", "resident"}},
                                          {{"execution", "eager"}, {"data", "pinned-async"}}};
  // Of every one, those that come to the same as another are left out: makes_sense().
  const std::vector<Configuration> every = every_gpu_mode({"execution", "data"});
  // What page-locked memory saves is seen eagerly, and what a graph does to its best use.
  std::vector<Configuration> most = every;
  std::erase_if(most, [](const Configuration& mode) {
    return value_of(mode, "execution") == "graph" && value_of(mode, "data") == "pinned";
  });
  // What anyone would run; the full sweep shows what it was chosen from.
  const std::vector<Configuration> fastest = {{{"execution", "auto"}}};
  const std::vector<Configuration> all_of_cpu = {{{"execution", "eager"}},
                                                 {{"execution", "winograd"}},
                                                 {{"execution", "fused"}},
                                                 {{"execution", "auto"}}};
  return {
      {"quick",
       {"disc-2", "disc-4", "disc-6", "disc-8", "disc-9", "disc-10", "heart"},
       {"fcn-r", "alexnet-r"},
       fastest,
       few,
       5,
       0.02},
      {"default", standard, small, fastest, most, 9, 0.1, {"f32"}, /*refines=*/true},
      {"full", all, seven, all_of_cpu, every, 15, 0.3, {"f32"}, /*refines=*/true},
      {"gpu",
       standard,
       {"alexnet-r"},
       fastest,
       most,
       5,
       0.03,
       find_axis("precision").values,
       /*refines=*/false,
       /*by_worth=*/true},
  };
}

}  // namespace crossover::bench
