// What the command and what people would use instead hold while a stream is read from a pipe: in memory
// and, if they sort, in temporary files. As a table and, with --out, as the README's picture.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "connectors/gnuplot/gnuplot.hpp"
#include "options.hpp"
#include "process.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/base/random.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kParts = 100;
constexpr std::uint64_t kWindow = 1'000'000;
constexpr double kDuplicates = 0.3;

struct Watched {
  std::string name;
  Command command;
  std::filesystem::path temporary = {};  // the folder of its temporary files
  std::vector<double> bytes = {};        // after each part of the stream
};

std::vector<Watched> watched(const std::filesystem::path& folder) {
  const std::string window = std::to_string(kWindow);
  return {{"awk '!seen[$0]++'", {"mawk", "!seen[$0]++"}},
          {"sort -u, with its temporary files", {"sort", "-u", "-T", folder}, folder},
          {"sluice dedup", {cli_program(), "dedup"}},
          {"sluice dedup --memory 64MiB", {cli_program(), "dedup", "--memory", "64MiB"}},
          {"sluice dedup --window 1M", {cli_program(), "dedup", "--window", window}}};
}

// An endless log: each line is new, or repeats one of the last million. The same for every command.
class Lines {
 public:
  explicit Lines(std::uint64_t lines_per_part) : lines_(lines_per_part) {}
  std::string_view next() {
    text_.clear();
    for (std::uint64_t i = 0; i < lines_; ++i) {
      const bool repeats = keys_ > 0 && random_.next_unit() < kDuplicates;
      const std::uint64_t back = repeats ? random_.next() % std::min(keys_, kWindow) : 0;
      const std::uint64_t key = repeats ? keys_ - 1 - back : keys_++;
      fmt::format_to(std::back_inserter(text_), "GET /ads/{:016x}/click?user={:08} 200\n",
                     key * 0x9e3779b97f4a7c15u, key);
    }
    return {text_.data(), text_.size()};
  }

 private:
  std::uint64_t lines_;
  std::uint64_t keys_ = 0;
  SplitMix64 random_{1};
  fmt::memory_buffer text_;
};

std::string script_of(const std::vector<Watched>& all, double lines_per_part) {
  std::string out =
      "set terminal svg size 760,380 font 'sans-serif,13' background '#ffffff' noenhanced\n"
      "set title 'Memory needed to remove duplicates from an endless log' textcolor rgb '#222222'\n"
      "set xlabel 'million lines read, 30 % of them repeats'\nset ylabel 'MiB'\n"
      "set border 3 lc rgb '#555555'\nset tics textcolor rgb '#333333' nomirror\n"
      "set grid ytics lc rgb '#e4e4e4' lt 1\nset key inside top left Left reverse samplen 2\n"
      "set xrange [0:*]\nset yrange [0:*]\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    out += fmt::format("$d{} << END\n0 0\n", i);
    for (std::size_t p = 0; p < all[i].bytes.size(); ++p)
      out += fmt::format("{:.4f} {:.3f}\n", lines_per_part * static_cast<double>(p + 1) / 1e6,
                         all[i].bytes[p] / (1 << 20));
    out += "END\n";
  }
  out += "plot ";
  for (std::size_t i = 0; i < all.size(); ++i)
    out += fmt::format("{}$d{} with lines lw 2.5 lc rgb '{}' title {}", i ? ", " : "", i,
                       gnuplot_colour(i), gnuplot_text(all[i].name));
  return out + "\n";
}

}  // namespace

void run_memory(const Options& options, Report& report) {
  const std::uint64_t lines = options.quick ? 1'000'000 : 20'000'000;
  const TemporaryFile temporary("sort");
  std::filesystem::create_directory(temporary.path());
  std::vector<Watched> all = watched(temporary.path());
  for (Watched& each : all) {
    Lines stream(lines / kParts);
    each.bytes = bytes_while_reading(
        each.command, kParts, [&stream] { return stream.next(); }, each.temporary);
  }
  std::erase_if(all, [](const Watched& each) { return each.bytes.empty(); });
  report.table(
      fmt::format("What is held while {} lines of 50 bytes are read from a pipe, 30 % duplicates",
                  in_short(lines)),
      {"command", "after a tenth", "after half", "at the end"});
  for (const Watched& each : all) {
    std::vector<std::string> cells = {each.name};
    for (const std::size_t part : {kParts / 10, kParts / 2, kParts})
      cells.push_back(format_size(static_cast<std::uint64_t>(each.bytes[part - 1])));
    report.row(cells);
  }
  report.flush();
  if (options.out.empty()) return;
  const std::filesystem::path directory(options.out);
  std::filesystem::create_directories(directory);
  std::ofstream out(directory / "memory.svg", std::ios::binary);
  out << run_gnuplot(script_of(all, static_cast<double>(lines / kParts)));
  if (!out.flush()) throw IoError("cannot write " + (directory / "memory.svg").string(), errno);
}

}  // namespace sluice::bench
