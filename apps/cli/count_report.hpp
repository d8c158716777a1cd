// What `sluice count` found, for people, for programs and as a picture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "connectors/files/files.hpp"
#include "sluice/count/census.hpp"

namespace sluice::cli {

// What a window, or a filter of all keys, would cost and hold back.
struct CountOption {
  std::string window = {};  // as --window takes it; empty: every key is remembered
  Estimate share = {};
  std::optional<std::uint64_t> bytes = {};  // of its filter
};

struct CountReport {
  std::string source = {};
  std::uint64_t unkeyed = 0;
  std::uint64_t records = 0;  // with a key
  Estimate distinct = {}, duplicates = {};
  bool exact = true;
  std::uint64_t one_in = 1, windows_one_in = 1;
  std::uint64_t others_most = 0;  // times that a key that is not listed came, at most
  std::vector<TopKey> top = {};   // `key` is text
  Timeline::Axis axis = Timeline::Axis::records;
  Timeline::Points bars = {}, points = {};  // few for the text, more for a picture
  std::vector<CountOption> options = {};
  std::string suggestion = {};                // a command, or empty
  std::optional<std::size_t> suggested = {};  // which of the options it is
  bool interrupted = false;
};

std::string as_text(const CountReport& report);
std::string as_json(const CountReport& report);
// Throws IoError and GnuplotFailed. `png`, otherwise SVG.
void draw(const CountReport& report, bool png, FileSink& sink);

}  // namespace sluice::cli
