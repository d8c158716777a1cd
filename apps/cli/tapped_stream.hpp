// Reads records as dedup does, and gives their keys to another receiver than a filter: for commands that
// ask about a stream.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "connectors/files/files.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/judge/judge.hpp"
#include "sluice/stream/dedup.hpp"

namespace sluice::cli {

class TappedStream {
 public:
  // `options.tap` takes the keys. Throws BadParameters.
  TappedStream(const DedupOptions& options, const Secret& secret);

  // Reads the files one after another, until `go_on` says no. Throws IoError, BadRecord and
  // BadParameters.
  void run(std::span<FileSource> sources, const std::function<bool()>& go_on);

  const Dedup& dedup() const { return dedup_; }

 private:
  class Nowhere final : public ByteSink {
   public:
    void write(std::string_view) override {}
  };

  Judge nobody_;
  Nowhere nowhere_;
  Dedup dedup_;
};

// The name of the stream in a report: "access.log and 2 more".
std::string name_of(std::span<const FileSource> sources);

// Opens the FILE of --plot, unless it is empty. If it cannot be drawn, this says so before the stream is read. Throws
// GnuplotFailed, IoError, and BadParameters if it is one of the inputs.
std::optional<FileSink> open_plot(const std::string& file, std::span<const FileSource> sources);

}  // namespace sluice::cli
