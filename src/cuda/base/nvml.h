// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library, loaded where it is: nothing is linked with it, and a machine without
// it, or with an older one, tells less.
#pragma once

#include <memory>
#include <string>

#include "crossover/backend.h"

namespace crossover::cuda {

class Nvml {
 public:
  /// Of the GPU on that place of the PCI bus ("0000:c1:00.0"); never throws for want of a library.
  explicit Nvml(const std::string& pci_bus_id);
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  [[nodiscard]] GpuFacts facts() const;
  [[nodiscard]] GpuState state() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;  ///< null where there is none, or it does not know the GPU
};

}  // namespace crossover::cuda
