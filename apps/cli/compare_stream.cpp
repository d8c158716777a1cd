#include "compare_stream.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/stream/dedup.hpp"

namespace sluice::cli {
namespace {

// Stands where the pipeline has its filter, and hands the digests on. It lets everything through
// and remembers nothing.
class Tap {
 public:
  static constexpr FilterKind kKind = FilterKind::none;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{.no_false_negatives = false};
  struct Params {
    Comparison* comparison = nullptr;
    Settings settings() const { return {}; }
  };
  static Tap make(const Params& params) { return Tap(params); }

  Verdict observe(const Digest& digest) {
    params_.comparison->feed({&digest, 1});
    return Verdict::distinct;
  }
  void observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
    params_.comparison->feed(digests);
    std::ranges::fill(verdicts, Verdict::distinct);
  }
  bool may_contain(const Digest&) const noexcept { return false; }
  void may_contain(std::span<const Digest>, std::span<Verdict> verdicts) const {
    std::ranges::fill(verdicts, Verdict::distinct);
  }
  void insert(const Digest& digest) { observe(digest); }
  void insert(std::span<const Digest> digests) { params_.comparison->feed(digests); }
  void clear() noexcept {}
  Params params() const { return params_; }
  FilterStats stats() const { return {}; }
  void encode_header(Encoder&) const {}
  void encode_payload(Encoder&) const {}
  static Tap decode(Decoder&, Decoder&) { return Tap({}); }

 private:
  explicit Tap(const Params& params) : params_(params) {}
  Params params_;
};

class Nowhere final : public ByteSink {
 public:
  void write(std::string_view) override {}
};

Format format_of(const CompareStreamFlags& flags) {
  if (flags.nul + flags.csv + flags.tsv + flags.ndjson > 1)
    throw BadParameters("--null, --csv, --tsv and --ndjson exclude each other: give one of them");
  if (flags.no_header && !flags.csv && !flags.tsv)
    throw BadParameters("--no-header goes with --csv or --tsv");
  Format format;
  format.kind = flags.nul      ? Format::Kind::nul
                : flags.csv    ? Format::Kind::csv
                : flags.tsv    ? Format::Kind::tsv
                : flags.ndjson ? Format::Kind::json
                               : Format::Kind::lines;
  format.header = !flags.no_header;
  return format;
}

std::optional<SyntheticOptions> made_up(const CompareStreamFlags& flags, std::uint64_t seed) {
  if (flags.shape.empty()) {
    if (!flags.records.empty() || !flags.distinct.empty())
      throw BadParameters(fmt::format("{} goes with --stream uniform, zipf, power or bursty",
                                      flags.records.empty() ? "--distinct" : "--records"));
    return std::nullopt;
  }
  if (!flags.file.empty())
    throw BadParameters(
        fmt::format("--stream {} makes the records up, and '{}' has its own: give one of them",
                    flags.shape, flags.file));
  if (flags.nul || flags.csv || flags.tsv || flags.ndjson || flags.no_header || !flags.keys.empty())
    throw BadParameters(
        "--stream makes keys without records: --key and the record formats go with a FILE");
  SyntheticOptions options{.shape = parse_stream_shape("--stream", flags.shape), .seed = seed};
  if (!flags.records.empty()) options.records = parse_count("--records", flags.records);
  if (!flags.distinct.empty()) options.distinct = parse_share("--distinct", flags.distinct);
  return options;
}

}  // namespace

void add_stream_flags(CLI::App& command, CompareStreamFlags& flags) {
  const char* group = "Stream";
  const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    command.add_option(name, value, help)->type_name(type)->group(group);
  };
  const auto flag = [&](const char* name, bool& value, const char* help) {
    command.add_flag(name, value, help)->group(group);
  };
  command.add_option("file", flags.file, "The records; - or nothing is standard input")
      ->type_name("FILE");
  add("--stream", flags.shape, "Make the stream up instead of reading it",
      "uniform|zipf|power|bursty");
  add("--records", flags.records, "With --stream: how many records [1M]", "COUNT");
  add("--distinct", flags.distinct, "With --stream: the share whose key is new [50%]", "SHARE");
  command
      .add_option("--seed", flags.seed,
                  "The same seed gives the same stream, and the same digests of a file's keys")
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  flag("-0,--null", flags.nul, "Records end with a NUL byte instead of a newline");
  flag("--csv", flags.csv, "CSV with a header");
  flag("--tsv", flags.tsv, "The same with tabs");
  flag("--ndjson", flags.ndjson, "One JSON value a line");
  flag("--no-header", flags.no_header, "CSV and TSV: the first record is data");
  command
      .add_option("-k,--key", flags.keys,
                  "What makes two records the same, as in dedup; the whole record if not given")
      ->type_name("FIELD[,FIELD]")
      ->allow_extra_args(false)
      ->group(group);
}

CompareStream::CompareStream(const CompareStreamFlags& flags)
    : seed_(parse_count("--seed", flags.seed)), format_(format_of(flags)), keys_(flags.keys) {
  made_up_ = made_up(flags, seed_);
  if (made_up_)
    SyntheticStream{*made_up_};  // refused now, or not at all
  else
    source_ = FileSource::open(flags.file.empty() ? "-" : flags.file, -1);
}

std::optional<std::uint64_t> CompareStream::distinct() const {
  if (!made_up_) return std::nullopt;
  return SyntheticStream(*made_up_).distinct();
}

CompareStream::Source CompareStream::describe() const {
  if (!made_up_) return {.name = source_->name(), .seed = seed_};
  return {.name = std::string(name_of(made_up_->shape)),
          .generated = true,
          .share = made_up_->distinct,
          .seed = seed_};
}

void CompareStream::run(Comparison& comparison) {
  if (!made_up_) return read(comparison);
  SyntheticStream stream(*made_up_);
  std::vector<Digest> digests(Comparison::kBatch);
  while (const std::size_t count = stream.fill(digests))
    comparison.feed(std::span(digests).first(count));
}

void CompareStream::read(Comparison& comparison) {
  const Hasher hasher(HashKind::xxh3, Secret::from_seed(seed_));
  AnyFilter tap{Tap::make({&comparison})};
  Nowhere nowhere;
  DedupOptions options;
  options.format = format_;
  options.keys = keys_;
  Dedup dedup(options, hasher, tap, nowhere, nullptr);
  dedup.run(*source_, [] { return true; });
  unkeyed_ = dedup.counts().unkeyed;
}

}  // namespace sluice::cli
