// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "crossover/probe.h"

namespace crossover::cpu {

/// See Backend::make_probe().
std::unique_ptr<Probe> make_probe(const ProbeSpec& spec);

}  // namespace crossover::cpu
