// What a comparison found, for people and for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compare_stream.hpp"
#include "sluice/stream/compare.hpp"

namespace sluice::cli {

struct CompareReport {
  std::vector<CompareResult> results;
  CompareWish wish;
  CompareCounts stream = {};
  std::uint64_t unkeyed = 0;
  CompareStream::Source source = {};

  // How many keys there were to remember: all, or as many as a window holds.
  std::uint64_t keys() const;
};

std::string as_table(const CompareReport& report);
std::string as_json(const CompareReport& report);

}  // namespace sluice::cli
