// SPDX-License-Identifier: Apache-2.0
// A 64-bit hash of everything that defines what a row trains: rows with the same one are
// comparable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "crossover/dataset.h"
#include "crossover/step.h"

namespace crossover {

/// Of the tensors (shape, type, role, source, start), the operations of each step with all that
/// they describe(), the order, and where rows are shuffled what counts the epochs; names of tensors
/// do not count. The same on every machine and in every process, and across versions as long as no
/// tensor or operation of the Workload gains a member.
///
/// It is computed word by word (64 bits): state = mix(state ^ word), from 0xcbf29ce484222325, where
/// mix is the finalizer of splitmix64 (random.h). Integers and enumerators are sign-extended,
/// doubles are their bits, texts are their length and then a word for each byte, a list is preceded
/// by its length, an operation by its name, and each of its members by the member's.
std::uint64_t fingerprint(const Workload& workload);

/// Of the rows: shape, inputs and labels, whatever their source.
std::uint64_t fingerprint(const Dataset& dataset);

/// Of a Workload together with its training data, each by its own fingerprint.
std::uint64_t fingerprint(std::uint64_t workload, std::uint64_t dataset);

/// Of bytes, FNV-1a; of several pieces of them that of those `before` goes in.
std::uint64_t fingerprint(std::string_view bytes, std::uint64_t before = 0xcbf29ce484222325);

/// 16 digits: "00c0ffee00c0ffee".
std::string hexadecimal(std::uint64_t number);

}  // namespace crossover
