// What it costs to keep state: snapshots of full filters in memory, against a copy of the same bytes
// with its checksum; and state files, against a plain write (with fsync) and read of the same bytes in
// the same directory. What is compared takes turns. CPU time (user and system) says more than the
// clock where others use the machine, so that both are told.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "connectors/files/state_file.hpp"
#include "kept.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "process.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/memory.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/seen.hpp"
#include "sluice/snapshot/chunks.hpp"
#include "sluice/snapshot/snapshot.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Cost {
  Samples wall, cpu;  // seconds, one per round
  void add(double wall_seconds, double cpu_seconds) {
    wall.push_back(wall_seconds);
    cpu.push_back(cpu_seconds);
  }
  // What `act` returns is destroyed after the clocks have stopped.
  template <class Act>
  void time(Act act) {
    const double wall_before = seconds(CLOCK_MONOTONIC);
    const double cpu_before = seconds(CLOCK_PROCESS_CPUTIME_ID);
    [[maybe_unused]] const auto kept = act();
    const double cpu_after = seconds(CLOCK_PROCESS_CPUTIME_ID);
    add(seconds(CLOCK_MONOTONIC) - wall_before, cpu_after - cpu_before);
  }
  friend Cost operator+(Cost one, const Cost& other) {
    std::ranges::transform(one.wall, other.wall, one.wall.begin(), std::plus<>());
    std::ranges::transform(one.cpu, other.cpu, one.cpu.begin(), std::plus<>());
    return one;
  }
};

double least(const Samples& samples) {
  return *std::ranges::min_element(samples);
}

double gigabytes_per_second(std::uint64_t bytes, double taken) {
  return static_cast<double>(bytes) / taken * 1e-9;
}

// --- in memory ----------------------------------------------------------------------------------

// Into bytes that are there already, as a file's or a socket's are.
class BufferEncoder final : public Encoder {
 public:
  explicit BufferEncoder(std::span<std::byte> out) : out_(out) {}
  void bytes(std::span<const std::byte> data) override {
    std::memcpy(out_.data(), data.data(), data.size());
    out_ = out_.subspan(data.size());
  }

 private:
  std::span<std::byte> out_;
};

// What no decoder can do without: memory of the kind that tables get, the bytes, and their checksum.
Memory copied(std::span<const std::byte> from) {
  Memory to(from.size());
  std::uint64_t checksum = 0;
  for (std::size_t at = 0; at < from.size(); at += kPiece) {
    const std::span piece = from.subspan(at, std::min(kPiece, from.size() - at));
    std::memcpy(to.data() + at, piece.data(), piece.size());
    checksum = chunk_checksum(checksum, std::span(to.data() + at, piece.size()));
  }
  if (checksum == 0) throw Error("a checksum that is hardly ever zero is");
  return to;
}

struct Subject {
  std::string name;
  std::string settings;
  std::uint64_t keys;
  double fpr;
  bool told = true;         // how many keys will come
  double decode_bar = 0;    // GB per CPU second; 0: none
  bool encode_bar = false;  // at least as fast as its decoder
};

void measure_in_memory(const Subject& subject, const Options& options, Report& report) {
  Kept kept(subject.settings, subject.keys, subject.fpr, subject.told);
  // A window a third beyond its length: slots of every age, and of those that left.
  kept.fill(kept.filter().ages() ? 1.3 : 1);
  const Hasher hasher(HashKind::xxh3, Secret::from_seed(1));
  BytesEncoder to;
  write_snapshot(hasher, kept.filter(), {}, to);
  std::vector<std::byte> bytes = to.take();
  Cost encode, decode, plain;
  for (int round = 0; round < options.rounds(); ++round) {
    plain.time([&] { return copied(bytes); });
    decode.time([&] {
      BytesDecoder from(bytes);
      return read_snapshot(from);
    });
    encode.time([&] {
      BufferEncoder again(bytes);
      return write_snapshot(hasher, kept.filter(), {}, again);
    });
  }
  const auto rate = [&](double taken) { return gigabytes_per_second(bytes.size(), taken); };
  const auto text = [](double value) { return fmt::format("{:.2f}", value); };
  report.row({subject.name, format_size(bytes.size()), text(rate(least(plain.cpu))),
              text(rate(least(decode.cpu))), text(rate(least(encode.cpu))),
              text(rate(median(decode.wall))), text(rate(median(encode.wall))),
              text(ratio(decode.cpu, plain.cpu)), text(ratio(encode.cpu, plain.cpu))});
  if (subject.decode_bar != 0)
    report.at_least(fmt::format("{}, full: GB decoded per CPU second", subject.name),
                    rate(least(decode.cpu)), subject.decode_bar);
  if (subject.encode_bar)
    report.at_most(fmt::format("{}, full: encoding / decoding", subject.name),
                   ratio(encode.cpu, decode.cpu), 1);
}

// --- state files --------------------------------------------------------------------------------

int opened(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (file < 0) throw IoError("cannot open '" + path + "'", errno);
  return file;
}

int write_plainly(const std::string& path, std::span<const std::byte> bytes) {
  const int file = opened(path, O_WRONLY | O_CREAT | O_TRUNC);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), std::min(kPiece, bytes.size()));
    if (written < 0) throw IoError("cannot write '" + path + "'", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  if (::fsync(file) != 0) throw IoError("cannot sync '" + path + "'", errno);
  return ::close(file);
}

Memory read_plainly(const std::string& path, std::uint64_t size) {
  const int file = opened(path, O_RDONLY);
  Memory bytes(size);
  for (std::span<std::byte> out = bytes.bytes(); !out.empty();) {
    const ssize_t got = ::read(file, out.data(), std::min(kPiece, out.size()));
    if (got <= 0) throw IoError("cannot read '" + path + "'", errno);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  ::close(file);
  return bytes;
}

// The names that saving leaves beside a state.
class StateName : public TemporaryFile {
 public:
  using TemporaryFile::TemporaryFile;
  ~StateName() {
    std::error_code ignored;
    for (const auto& file : files_of_state(path())) std::filesystem::remove(file, ignored);
  }
};

struct Kind {
  const char* name;
  Seen::Options options;
};

// A ratio by the least and by the median round, of the clock and of CPU time.
std::vector<std::string> ratios(const Cost& subject, const Cost& base) {
  std::vector<std::string> cells;
  for (const auto& [mine, plain] :
       {std::pair(&subject.cpu, &base.cpu), std::pair(&subject.wall, &base.wall)}) {
    cells.push_back(fmt::format("{:.2f}", least(*mine) / least(*plain)));
    cells.push_back(fmt::format("{:.2f}", ratio(*mine, *plain)));
  }
  return cells;
}

void measure_files(const Kind& kind, std::uint64_t keys, const Options& options, Report& report) {
  Seen::Options wish = kind.options;
  wish.seed = 1;
  Seen seen(wish);
  std::vector<Digest> digests(kLap);
  std::vector<Verdict> verdicts(kLap);
  for (std::uint64_t done = 0; done < keys; done += kLap) {
    for (std::size_t i = 0; i < kLap; ++i) digests[i] = digest_of(done + i);
    seen.filter().observe(digests, verdicts);
  }
  const std::vector<std::byte> bytes = seen.save();
  const TemporaryFile plain(fmt::format("plain-{}", kind.name));
  const StateName state(fmt::format("state-{}", kind.name));
  seen.save(std::filesystem::path(state.path()));
  Cost write, save, read, load;
  for (int round = 0; round < options.rounds(); ++round) {
    write.time([&] { return write_plainly(plain.path(), bytes); });
    save.time([&] {
      seen.save(std::filesystem::path(state.path()));
      return 0;
    });
    read.time([&] { return read_plainly(plain.path(), bytes.size()); });
    load.time([&] { return Seen::load(std::filesystem::path(state.path())); });
  }
  const auto row = [&](const char* what, const Cost& subject, const Cost& base) {
    std::vector<std::string> cells = {fmt::format("{}: {}", kind.name, what),
                                      format_size(bytes.size())};
    std::ranges::copy(ratios(subject, base), std::back_inserter(cells));
    for (const double taken :
         {least(subject.cpu), median(subject.wall), least(base.cpu), median(base.wall)})
      cells.push_back(fmt::format("{:.0f}", taken * 1e3));
    report.row(cells);
  };
  row("save / write and fsync", save, write);
  row("load / read", load, read);
  row("both / both", save + load, write + read);
  const auto bar = [&](const char* clock, double value) {
    report.at_most(fmt::format("{}, {} keys: saving and loading a state / plain write, fsync and "
                               "read, {}",
                               kind.name, in_short(keys), clock),
                   value, 3);
  };
  bar("CPU time", ratio((save + load).cpu, (write + read).cpu));
  bar("by the clock", ratio((save + load).wall, (write + read).wall));
}

}  // namespace

void run_snapshots(const Options& options, Report& report) {
  report.table("Snapshots of full filters in memory, GB/s (CPU: the best round; clock: the median)",
               {"filter", "bytes", "copy + checksum, CPU", "decode, CPU", "encode, CPU",
                "decode, clock", "encode, clock", "decode / copy", "encode / copy"});
  const std::uint64_t many = options.quick ? 10'000'000 : 40'000'000;
  std::vector<Subject> subjects;
  for (const unsigned slot : {16, 24, 32, 40, 48})
    subjects.push_back({fmt::format("cohort, {}-bit slots", slot),
                        fmt::format("cohort,slot={}", slot), many, slot == 16 ? 0.05 : 1e-3, true,
                        1});
  for (const unsigned slot : {16, 32, 64})
    subjects.push_back({fmt::format("growing, {}-bit slots", slot),
                        fmt::format("growing,slot={}", slot), many, slot == 16 ? 0.05 : 1e-6, false,
                        1});
  for (const unsigned filters : {1, 3, 8, 12, 24, 64})
    subjects.push_back({fmt::format("dynamic, {} filters", filters),
                        fmt::format("dynamic,keys={},ask=auto", many / filters), many, 1e-3, true,
                        0.2, true});
  subjects.push_back({"dynamic, 8 filters, plain",
                      fmt::format("dynamic,keys={},ask=auto,layout=plain", many / 8), many, 1e-3,
                      true, 0.2, true});
  subjects.push_back({"bloom", "bloom", many, 1e-6});
  subjects.push_back({"exact", "exact", many / 4, 1e-6});
  for (const Subject& subject : subjects)
    if (in_catalogue(subject.settings)) measure_in_memory(subject, options, report);
  report.flush();

  report.table("State files, in the directory for temporary files: ratios, and milliseconds",
               {"state", "bytes", "CPU, least", "CPU, median", "clock, least", "clock, median",
                "its CPU ms", "its ms", "plain CPU ms", "plain ms"});
  const std::uint64_t keys = options.quick ? 5'000'000 : 30'000'000;
  const Kind kKinds[] = {{"growing", {}}, {"bloom", {.keys = keys}}, {"cohort", {.window = keys}}};
  for (const Kind& kind : kKinds) measure_files(kind, keys, options, report);
  report.flush();
}

}  // namespace sluice::bench
