// What `sluice compare` reads: the records of a file, or a stream made up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "connectors/files/files.hpp"
#include "sluice/stream/compare.hpp"
#include "sluice/stream/record.hpp"
#include "sluice/stream/synthetic.hpp"

namespace CLI {
class App;
}

namespace sluice::cli {

struct CompareStreamFlags {
  std::string file;
  std::string shape, records, distinct;  // --stream and its own
  std::string seed = "1";
  bool nul = false, csv = false, tsv = false, ndjson = false, no_header = false;
  std::vector<std::string> keys;
};

void add_stream_flags(CLI::App& command, CompareStreamFlags& flags);

class CompareStream {
 public:
  // Opens the file. Throws IoError, and BadParameters for flags that do not go together.
  explicit CompareStream(const CompareStreamFlags& flags);

  // Runs it to its end. Throws IoError, BadRecord and BadParameters.
  void run(Comparison& comparison);

  // How many keys it will have, where that is known before.
  std::optional<std::uint64_t> distinct() const;
  // What is read, if anything is.
  const FileSource* source() const { return source_ ? &*source_ : nullptr; }
  // Records without a key: left out.
  std::uint64_t unkeyed() const { return unkeyed_; }

  // For reports.
  struct Source {
    std::string name;  // "zipf", or the file's
    bool generated = false;
    double share = 0;  // generated: the share asked for
    std::uint64_t seed = 0;
  };
  Source describe() const;

 private:
  void read(Comparison& comparison);

  std::optional<SyntheticOptions> made_up_;
  std::optional<FileSource> source_;
  std::uint64_t seed_;
  Format format_;
  std::vector<std::string> keys_;
  std::uint64_t unkeyed_ = 0;
};

}  // namespace sluice::cli
