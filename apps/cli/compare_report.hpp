// What a comparison found, for people and for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compare_stream.hpp"
#include "sluice/lab/compare.hpp"
#include "sluice/lab/compare_filter.hpp"

namespace sluice::cli {

struct CompareReport {
  std::vector<CompareResult> results;
  CompareWish wish;
  CompareTruth truth = {};
  std::uint64_t unkeyed = 0;
  CompareStream::Source source = {};
  bool interrupted = false;
};

std::string as_table(const CompareReport& report);
std::string as_json(const CompareReport& report);

}  // namespace sluice::cli
