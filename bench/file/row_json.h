// SPDX-License-Identifier: Apache-2.0
// A row as the result file has it. Format: results/README.md.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "file/earlier_run.h"
#include "rows/row.h"

namespace crossover::bench {

/// Facts stand once; the repetitions have what another run would measure differently.
WrittenRow written_row(const std::string& name, const Row& row);

/// What written_row() has of a measured row, without warnings that the plan has anyway; of any
/// other row nothing. UsageError where it is no such row.
Record record_in(const WrittenRow& written, const std::vector<std::string>& planned_warnings);

/// Whole numbers as they are, of others six digits: no clock is steadier than a millionth. Null
/// where JSON has no such number.
nlohmann::ordered_json number_json(double value);

}  // namespace crossover::bench
