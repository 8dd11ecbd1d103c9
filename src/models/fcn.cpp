// SPDX-License-Identifier: Apache-2.0
// fcn-r, fcn-s: the fully connected networks of Shi et al. 2016, on data of the size of MNIST and
// on synthetic data.
#include "shi.h"

namespace crossover {
namespace {

Task fcn(const std::string& name, const std::vector<std::int64_t>& widths, std::int64_t batch) {
  return shi_task(mlp(name, widths, Activation::sigmoid), batch, 0.05);
}

}  // namespace

Family fcn_family() {
  return {.names = {"fcn-r", "fcn-s"}, .make = [](const std::string& name) {
            return name == "fcn-r" ? fcn(name, {784, 2048, 4096, 1024, 10}, 1024)
                                   : fcn(name, {26752, 2048, 2048, 2048, 26752}, 64);
          }};
}

}  // namespace crossover
