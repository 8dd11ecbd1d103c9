// SPDX-License-Identifier: Apache-2.0
// What the program was built from. cmake/commit.cmake writes the source at every build: alone, so
// that a commit compiles one line.
#pragma once

namespace crossover::build {

/// The commit and whether the tree differed, "<40 digits>-clean" or "<40 digits>-dirty", both as
/// long so that programs of the same sources differ in nothing else; empty where it is not known.
extern const char* const tree;

}  // namespace crossover::build
