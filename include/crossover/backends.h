// SPDX-License-Identifier: Apache-2.0
// The kinds of devices that rows are measured on, and what is to be known of each before one is
// found. To add one: a folder under src/ with its Backend, and a line of the table in
// src/backends.cpp (docs/adding.md).
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "crossover/backend.h"
#include "crossover/ranks.h"

namespace crossover {

struct BackendKind {
  std::string name;  ///< in names of rows and in files: "cuda"; with it the flag --cuda
  std::string word;  ///< in sentences: "GPU"
  /// Computes on threads of this process: its rows say on how many, and have the executions of a
  /// CPU. Else they have those of a GPU.
  bool has_threads = false;
  /// What it reads is copied there, and may be more than it holds. It is a thing of its own, which
  /// can be lost, and has meters and clocks: Description tells its memory, and its name as the
  /// library "gpu".
  bool has_own_memory = false;
  /// The device, or why there is none. `ranks`: of which this process is one; they call it
  /// together, and it throws Unsupported on all of them where they can't have one each. Null: this
  /// process is alone.
  FoundBackend (*make)(Ranks* ranks) = nullptr;
  /// One that need not be here: it plans, and throws Unsupported with the reason where it would run
  /// on what is not here.
  std::unique_ptr<Backend> (*describe)(const std::string& reason) = nullptr;
};

/// In the order of rows. The first is the CPU, which is always there; each other has a flag. A
/// program that links the harness alone has a table of its own.
const std::vector<BackendKind>& backends();

/// All but the CPU.
inline std::span<const BackendKind> other_backends() { return std::span(backends()).subspan(1); }

/// std::out_of_range where none is called so.
inline const BackendKind& backend_named(const std::string& name) {
  const auto at = std::find_if(backends().begin(), backends().end(),
                               [&](const BackendKind& kind) { return kind.name == name; });
  if (at == backends().end()) {
    throw std::out_of_range("no backend is called '" + name + "'");
  }
  return *at;
}

}  // namespace crossover
