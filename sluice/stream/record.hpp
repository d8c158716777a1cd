// Records in a read buffer, and the description of their format.
//
// A batch is a few hundred records cut from one buffer. Records and keys are views: nothing is
// copied on the way from the reader to the writer. Virtual calls are paid once per batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

// Records per batch: enough to hide memory latency behind each other, few enough to stay in the
// first-level cache with their keys, digests and verdicts.
inline constexpr std::size_t kBatchRecords = 512;

// How many bytes past the end of a read buffer may be read (never written): vector code and the
// JSON parser look ahead. These bytes have no meaning.
inline constexpr std::size_t kPaddingBytes = 64;

struct Record {
  const char* data = nullptr;
  std::size_t body = 0;   // bytes without the terminator: what keys are taken from
  std::size_t whole = 0;  // bytes with the terminator: what is written
  std::string_view text() const noexcept { return {data, body}; }
};

struct Format {
  enum class Kind : std::uint8_t { lines, nul, csv, tsv, json };
  Kind kind = Kind::lines;
  bool header = true;  // csv, tsv: the first record of an input names the columns
  // What separates fields. 0: the usual of the format, which is runs of blanks and tabs for lines
  // and nul (as in awk), a comma for csv, a tab for tsv.
  char delimiter = 0;
};

}  // namespace sluice
