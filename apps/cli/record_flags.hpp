// The flags that say how records are cut and keyed, for the commands that read records.
#pragma once

#include <string>
#include <vector>

#include "sluice/stream/dedup_options.hpp"
#include "time_flags.hpp"

namespace sluice::cli {

class Command;

struct RecordFlags {
  bool nul = false, csv = false, tsv = false, json = false, no_header = false, binary = false;
  std::vector<std::string> keys;
  std::string key_regex, key_bytes, delimiter;
  bool ignore_case = false, trim = false, empty_keys = false;
  std::string log;  // see log_flags.hpp
  std::string event_time, time_bytes;
  TimeFlags times;
};

void add_record_flags(Command& command, RecordFlags& flags);

// What gives the records' times: --event-time, --time-bytes, --key-regex (with a group `time`) or
// nullptr. Throws BadParameters for an expression that is none.
const char* time_flag(const RecordFlags& flags);

// What gives the key, for messages.
const char* key_flag(const KeyStyle& style);

// Sets the format, the keys and the fields of the times. Throws BadParameters for flags that cannot be
// combined.
void understand_records(const RecordFlags& flags, DedupOptions& options);

// Whether any of them is given.
bool any_given(const RecordFlags& flags);

}  // namespace sluice::cli
