// SPDX-License-Identifier: Apache-2.0
// How far what a program computed is from the reference.
#pragma once

#include <span>
#include <string>

namespace crossover {

/// Euclidean.
double norm(std::span<const double> values);

/// |got - expected|, where NaN anywhere gives NaN.
double distance(std::span<const double> got, std::span<const double> expected);

/// distance() over |expected|.
double relative_error(std::span<const double> got, std::span<const double> expected);

/// Keeps the larger error; throws Mismatch where it is over the tolerance, or no number at all.
void take(double error, double tolerance, const std::string& what, double& largest);

}  // namespace crossover
