// `sluice generate clicks|lines`: synthetic streams on standard output or into a file.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "connectors/files/files.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/lab/generate.hpp"

namespace sluice::cli {
namespace {

// Large enough to make the cost of write calls negligible, small enough to stay in the second-level
// cache until the kernel copies it.
constexpr std::size_t kBufferBytes = std::size_t{256} << 10;

// The flags' texts: parsed by base/quantity when the subcommand runs.
struct Flags {
  std::string records = "1M";
  std::string duplicates;
  std::string malformed = "0.001";
  std::string skew = "1";
  std::string users = "100k";
  std::string length = "40";
  std::string seed = "1";
  std::string output;
};

void print_counts(const GenerateCounts& counts) {
  say(fmt::format("generated {} ({}): {} distinct, {}, {} malformed\n",
                  counted(counts.records, "record"), format_size(counts.bytes),
                  format_count(counts.distinct), counted(counts.duplicates, "duplicate"),
                  format_count(counts.malformed)));
}

int run(Generator& generator, const std::string& path) {
  warn_if_seems_packed("generate", path);
  FileSink output =
      path.empty() || path == "-" ? FileSink::standard_output() : FileSink::open(path);
  std::vector<char> buffer(std::max(kBufferBytes, generator.largest_record()));
  while (const std::size_t bytes = generator.fill(buffer)) output.write({buffer.data(), bytes});
  output.finish();
  print_counts(generator.counts());
  return kDone;
}

double skew_of(const std::string& text) {
  const std::optional<double> skew = read_number(text);
  if (!skew)
    throw BadParameters(fmt::format("--skew '{}' is not a number: give one from 0 to 4", text));
  return *skew;
}

std::unique_ptr<Generator> make_clicks(const Flags& flags) {
  return make_generator(ClickOptions{
      .records = parse_count("--records", flags.records),
      .duplicates = parse_share("--duplicates", flags.duplicates),
      .malformed = parse_share("--malformed", flags.malformed),
      .skew = skew_of(flags.skew),
      .users = parse_count("--users", flags.users),
      .seed = parse_count("--seed", flags.seed),
  });
}

std::unique_ptr<Generator> make_lines(const Flags& flags) {
  return make_generator(LineOptions{
      .records = parse_count("--records", flags.records),
      .duplicates = parse_share("--duplicates", flags.duplicates),
      .length = parse_size("--length", flags.length),
      .seed = parse_count("--seed", flags.seed),
  });
}

void add_common(Command& command, Flags& flags, const char* duplicates) {
  flags.duplicates = duplicates;
  command.option("-n,--records", flags.records, "Number of records, such as 500k or 10M", "COUNT");
  command.option("--duplicates", flags.duplicates,
                 "Share of records that repeat an earlier one, such as 0.3 or 30%", "SHARE");
  command.option("--seed", flags.seed, "The same seed gives the same bytes", "N");
  command.option("-o,--output", flags.output, "Write to this file instead of standard output",
                 "FILE");
}

void add_clicks(Command& generate) {
  Command command = generate.subcommand("clicks", "NDJSON clicks on ads: user, ad, time and value");
  const auto flags = std::make_shared<Flags>();
  add_common(command, *flags, "33.3%");
  command.option("--skew", flags->skew,
                 "How unequal users are: the r-th user clicks in proportion to 1/r^SKEW; from 0 "
                 "(all equal) to 4",
                 "SKEW");
  command.option("--users", flags->users, "Number of users, at most 100M", "COUNT");
  command.option("--malformed", flags->malformed,
                 "Share of records without a key: cut off, not JSON, or a field missing", "SHARE");
  command.footer(
      "A duplicate has the user and ad of an earlier record, the same value and a later time; "
      "recent records repeat most often.\n"
      "\n"
      "Example:\n"
      "  sluice generate clicks --records 2M | sluice dedup --json --key /user,/ad\n");
  command.run([flags] { return run(*make_clicks(*flags), flags->output); });
}

void add_lines(Command& generate) {
  Command command =
      generate.subcommand("lines", "Lines evt-<16 hex digits>,<hex digits> of equal length");
  const auto flags = std::make_shared<Flags>();
  add_common(command, *flags, "30%");
  command.option("--length", flags->length, "Line length in bytes without the newline, at least 20",
                 "BYTES");
  command.footer(
      "A duplicate is equally likely to repeat any earlier line.\n"
      "\n"
      "Example:\n"
      "  sluice generate lines --records 10M --duplicates 30% --output lines.txt\n");
  command.run([flags] { return run(*make_lines(*flags), flags->output); });
}

}  // namespace

void add_generate(Command& app) {
  Command generate =
      app.subcommand("generate", "Write a synthetic stream with a known number of duplicates");
  generate.footer(
      "The stream goes to standard output and the exact counts to standard error.\n"
      "\n"
      "Example:\n"
      "  sluice generate clicks --records 1M > clicks.ndjson\n");
  generate.need_subcommand("a stream that can be generated: give clicks or lines");
  add_clicks(generate);
  add_lines(generate);
}

}  // namespace sluice::cli
