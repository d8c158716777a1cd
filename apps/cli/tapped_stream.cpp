#include "tapped_stream.hpp"

#include <fmt/format.h>

#include "connectors/gnuplot/gnuplot.hpp"
#include "sluice/filters/none.hpp"

namespace sluice::cli {

TappedStream::TappedStream(const DedupOptions& options, const Secret& secret)
    : nobody_(Hasher(HashKind::xxh3, secret), AnyFilter(None::make({}))),
      dedup_(options, nobody_, nowhere_, nullptr) {}

void TappedStream::run(std::span<FileSource> sources, const std::function<bool()>& go_on) {
  for (FileSource& source : sources)
    if (go_on()) dedup_.run(source, go_on);
}

std::string name_of(std::span<const FileSource> sources) {
  std::string name = sources.front().name();
  if (sources.size() > 1) name += fmt::format(" and {} more", sources.size() - 1);
  return name;
}

std::optional<FileSink> open_plot(const std::string& file, std::span<const FileSource> sources) {
  if (file.empty()) return std::nullopt;
  need_gnuplot("--plot", "leave --plot out");
  FileSink sink = FileSink::open(file);
  const FileIdentity identity = sink.identity();
  for (const FileSource& source : sources)
    if (identity.regular && source.identity() == identity)
      throw BadParameters(
          fmt::format("--plot '{}' is also the input: write to another file", file));
  return sink;
}

}  // namespace sluice::cli
