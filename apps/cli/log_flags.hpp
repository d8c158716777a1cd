// --log: common logs by one word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "connectors/files/files.hpp"
#include "record_flags.hpp"

namespace sluice::cli {

// Whether the times of the log's records are read.
enum class LogTimes : std::uint8_t { no, if_there, needed };

// Sets the flags that --log stands for, and returns them as one could type them: "--log nginx means
// --key-regex '…' --time-format clf". Nothing without --log. Throws BadParameters for flags that cannot
// be combined and for names that the log does not have; IoError.
std::optional<std::string> apply_log(RecordFlags& flags, const std::vector<std::string>& files,
                                     LogTimes times, Archives archives);

// Rotated logs are named newest first (access.log, access.log.1, access.log.2.gz). Puts the files in
// the order of their first times, if all are regular files, and says so if that is another order.
std::optional<std::string> order_by_time(std::vector<std::string>& files,
                                         const DedupOptions& options, Archives archives);

}  // namespace sluice::cli
