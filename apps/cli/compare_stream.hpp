// What `sluice compare` reads: the records of a file, or a generated stream.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "connectors/files/files.hpp"
#include "record_flags.hpp"
#include "sluice/lab/compare.hpp"
#include "sluice/lab/synthetic.hpp"
#include "sluice/stream/dedup_options.hpp"

namespace sluice::cli {

class Command;

struct CompareStreamFlags : RecordFlags {
  std::vector<std::string> files;
  std::string shape, records, distinct;  // --stream and its own
  std::string seed = "1";
  std::string rate;
};

void add_stream_flags(Command& command, CompareStreamFlags& flags);

class CompareStream {
 public:
  // Opens the files. `wake` as for FileSource. `by_time`: there is a window of time. Throws IoError,
  // and BadParameters for flags that cannot be combined.
  CompareStream(const CompareStreamFlags& flags, int wake, bool by_time);

  // Throws BadParameters unless records have the times that the window needs.
  void check(const std::optional<WindowSpec>& window);

  // Runs it to its end, or until `go_on` says no. Throws IoError, BadRecord and BadParameters.
  void run(Comparison& comparison, const std::function<bool()>& go_on);

  // The number of distinct keys, if known in advance.
  std::optional<std::uint64_t> distinct() const;
  // The most keys in a time window, if the rate is known.
  std::optional<std::uint64_t> keys_in(const WindowSpec& window) const;
  // What is read, if anything is.
  const std::vector<FileSource>& sources() const { return sources_; }
  bool has_times() const { return options_.event_time.has_value(); }
  // Records without a key: left out.
  std::uint64_t unkeyed() const { return unkeyed_; }

  // For reports.
  struct Source {
    std::string name;  // "zipf", or the file's
    bool generated = false;
    double share = 0;  // generated: the share asked for
    double rate = 0;   // generated: records per second
    std::uint64_t seed = 0;
  };
  Source describe() const;

 private:
  void read(Comparison& comparison, const std::function<bool()>& go_on);
  double rate() const { return rate_.value_or(1000); }

  std::optional<SyntheticOptions> made_up_;
  std::vector<FileSource> sources_;
  std::uint64_t seed_;
  DedupOptions options_;  // how records are cut, keyed and timed
  const char* time_flag_ = nullptr;
  std::optional<double> rate_;
  std::uint64_t unkeyed_ = 0;
};

}  // namespace sluice::cli
