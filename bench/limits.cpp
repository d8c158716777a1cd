// What the machine allows, measured before anything is held to it: random cache lines of tables as
// large as the filters' are, on their kind of pages and on small ones, by one thread and by two;
// hashing, copying, and a pipe between two processes.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "measure.hpp"
#include "options.hpp"
#include "probe.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/hash/hasher.hpp"

namespace sluice::bench {
namespace {

std::string two_digits(double value) {
  return fmt::format("{:.2f}", value);
}

void measure_ahead(const Options& options, Report& report) {
  constexpr std::uint64_t kTables[] = {128 << 10, 1 << 20, 8 << 20, 128 << 20, 1 << 30};
  constexpr unsigned kAhead[] = {0, 8, 16, 24, 32, 64};
  const std::uint64_t lines = options.quick ? 500'000 : 4'000'000;
  std::vector<std::string> columns = {"table", "ns, 32 ahead"};
  for (const unsigned ahead : kAhead) columns.push_back(fmt::format("{} ahead", ahead));
  report.table("Update of a random cache line, relative to 32 lines ahead", columns);
  for (const std::uint64_t bytes : kTables) {
    Probe probe(bytes);
    std::vector<std::function<double()>> subjects;
    for (const unsigned ahead : kAhead)
      subjects.push_back([&, ahead] { return probe.lines().update_ns(lines, ahead); });
    const std::vector<Samples> samples = take_turns(options.rounds(), subjects);
    const Samples& base = samples[4];
    std::vector<std::string> cells = {format_size(bytes), two_digits(median(base))};
    for (const Samples& each : samples) cells.push_back(two_digits(ratio(each, base)));
    report.row(cells);
  }
}

void measure_lines(const Options& options, Report& report) {
  struct Size {
    const char* name;
    const char* settings;
    Wish wish;
  };
  const Size kSizes[] = {
      {"blocked Bloom, 100 k keys at 1 %",
       "bloom,layout=blocked,probes=8",
       {.keys = 100'000, .fpr = 1e-2}},
      {"cohort, window of 100 k", "cohort,slot=24", {.keys = 100'000, .fpr = 1e-4}},
      {"blocked Bloom, 100 M keys at 1 %",
       "bloom,layout=blocked,probes=8",
       {.keys = 100'000'000, .fpr = 1e-2}},
      {"cohort, window of 50 M", "cohort,slot=24", {.keys = 50'000'000, .fpr = 1e-4}},
  };
  const std::uint64_t lines = options.quick ? 1'000'000 : 5'000'000;
  report.table(
      "Random cache lines, prefetched where that is faster, ns per line",
      {"table as large as that of", "bytes", "pages", "read", "update", "two lines per key",
       "read, two threads", "update, two threads", "two threads / one, updates"});
  for (const Size& size : kSizes) {
    const std::uint64_t bytes = forecast_filter(size.settings, size.wish).bytes / 4096 * 4096;
    for (const Pages pages : {Pages::as_filters_get, Pages::small}) {
      // Below a huge page there is only one kind.
      if (pages == Pages::small && bytes < (2 << 20)) continue;
      Probe probe(bytes, pages);
      const std::vector<Samples> samples =
          take_turns(options.rounds(),
                     {[&] { return probe.read_ns(lines); }, [&] { return probe.update_ns(lines); },
                      [&] { return probe.updates_ns(lines, 2); },
                      [&] { return probe.two_threads_read_ns(lines); },
                      [&] { return probe.two_threads_update_ns(lines); }});
      std::vector<std::string> cells = {size.name, format_size(bytes),
                                        pages == Pages::small ? "small" : "as for filters"};
      for (const Samples& each : samples) cells.push_back(two_digits(median(each)));
      cells.push_back(two_digits(ratio(samples[1], samples[4])));
      report.row(cells);
    }
  }
}

double hash_ns(std::size_t bytes, std::uint64_t keys) {
  const Hasher hasher(HashKind::xxh3, Secret::from_seed(1));
  std::vector<char> data(kLap + bytes, 'x');
  std::vector<std::string_view> views(kLap);
  std::vector<Digest> digests(kLap);
  for (std::size_t i = 0; i < kLap; ++i) {
    data[i] = static_cast<char>('a' + i % 26);
    views[i] = {data.data() + i, bytes};
  }
  LapClock clock;
  for (std::uint64_t done = 0; done < keys; done += kLap) {
    clock.start();
    hasher.digest(views, digests);
    clock.stop();
  }
  return clock.median_ns(kLap);
}

// Nanoseconds per byte. Two buffers out of the second-level cache.
double copy_ns() {
  constexpr std::size_t kBytes = 64 << 20;
  std::vector<char> from(kBytes, 'x'), to(kBytes, 'y');
  LapClock clock;
  for (int lap = 0; lap < 5; ++lap) {
    clock.start();
    std::memcpy(to.data(), from.data(), kBytes);
    clock.stop();
    std::swap(from, to);
  }
  return clock.median_ns(kBytes);
}

// Nanoseconds per byte through a pipe from a process to this one, in pieces of 64 KiB.
double pipe_ns(std::uint64_t bytes) {
  constexpr std::size_t kPiece = 64 << 10;
  std::vector<char> piece(kPiece, 'x');
  int ends[2];
  if (pipe(ends) != 0) throw IoError("cannot make a pipe", errno);
  const pid_t child = fork();
  if (child < 0) throw IoError("cannot start a process", errno);
  if (child == 0) {
    close(ends[0]);
    for (std::uint64_t done = 0; done < bytes; done += kPiece)
      if (write(ends[1], piece.data(), kPiece) <= 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  const auto started = std::chrono::steady_clock::now();
  std::uint64_t got = 0;
  for (ssize_t count = 1; count > 0; got += static_cast<std::uint64_t>(std::max<ssize_t>(count, 0)))
    count = read(ends[0], piece.data(), kPiece);
  const std::chrono::duration<double, std::nano> passed =
      std::chrono::steady_clock::now() - started;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return passed.count() / static_cast<double>(got);
}

void measure_rest(const Options& options, Report& report) {
  const std::uint64_t keys = options.quick ? 1'000'000 : 10'000'000;
  const std::vector<Samples> samples = take_turns(
      options.rounds(), {[&] { return hash_ns(8, keys); }, [&] { return hash_ns(32, keys); },
                         [&] { return hash_ns(100, keys); }, [] { return copy_ns(); },
                         [&] { return pipe_ns(options.quick ? 128 << 20 : 512 << 20); }});
  report.table("Hashing, copying, pipes", {"what", "", "GB per second"});
  const unsigned kBytes[] = {8, 32, 100};
  for (std::size_t i = 0; i < 3; ++i)
    report.row({fmt::format("XXH3-128 of keys of {} bytes, in batches", kBytes[i]),
                fmt::format("{:.2f} ns per key", median(samples[i])),
                two_digits(kBytes[i] / median(samples[i]))});
  report.row({"memcpy of 64 MiB", "", two_digits(1 / median(samples[3]))});
  report.row(
      {"a pipe between two processes, 64 KiB per write", "", two_digits(1 / median(samples[4]))});
}

}  // namespace

void run_limits(const Options& options, Report& report) {
  measure_lines(options, report);
  measure_ahead(options, report);
  measure_rest(options, report);
}

}  // namespace sluice::bench
